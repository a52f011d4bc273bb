/*
 * Lanes: what every goroutine, P and thread did and when, kept so that any stretch of it can
 * be drawn at any width at once. It is made in one pass over the events; what has been fed can be
 * drawn at any time.
 *
 * A lane is a row of the picture: a goroutine, a P or a thread. Its spans follow each other; in each
 * it is in one state. A picture of a lane is made of cells: spans that are wide enough to be seen, and
 * between them mixtures, a pixel wide, that tell how much of which state is in them.
 *
 * Memory: some 7 bytes a span, and a cell's price of some hundred nanoseconds however many spans are in
 * it. Times are nanoseconds since the first event of the trace.
 *
 * An object may be used by one thread at a time.
 */
#ifndef TRAIL_LANES_H
#define TRAIL_LANES_H

#include <trail/analyze.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum trail_lane_kind {
    TRAIL_LANE_GOROUTINE,
    TRAIL_LANE_PROC,
    TRAIL_LANE_THREAD,
    TRAIL_LANE_KINDS
} trail_lane_kind;

/* What a lane is doing. A P and a thread are running while a goroutine runs on them. */
typedef enum trail_span_state {
    TRAIL_SPAN_NONE, /* is not there, or has no work: nothing is drawn */
    TRAIL_SPAN_RUNNABLE,
    TRAIL_SPAN_RUNNING,
    TRAIL_SPAN_WAITING,
    TRAIL_SPAN_SYSCALL,
    TRAIL_SPAN_BLOCKED, /* in a system call, and its P was taken away */
    TRAIL_SPAN_STATES
} trail_span_state;

/* "none", "runnable", "running", "waiting", "syscall", "syscall without P". */
TRAIL_API const char *trail_span_state_name(unsigned state);

typedef struct trail_lanes trail_lanes;

/* Events come from `reader`, which must outlive the lanes. NULL when memory is out. */
TRAIL_API trail_lanes *trail_lanes_open(trail_reader *reader);
TRAIL_API void trail_lanes_close(trail_lanes *lanes);

/* Takes what trail_reader_next_batch has delivered, until the next call of that. False: no memory. */
TRAIL_API bool trail_lanes_feed(trail_lanes *lanes, const trail_event *events, long count);

/* The time of the last event so far. */
TRAIL_API int64_t trail_lanes_end(const trail_lanes *lanes);

/* Spans, lanes and bytes in use, for those who watch over memory. */
typedef struct trail_lanes_size {
    uint64_t events, spans;
    size_t bytes;
} trail_lanes_size;
TRAIL_API void trail_lanes_get_size(const trail_lanes *lanes, trail_lanes_size *size);

typedef struct trail_lane {
    int64_t id;       /* of the goroutine, P or thread */
    trail_name name;  /* a goroutine's start function; 0: not known */
    int64_t begin_ns; /* of its first span */
    int64_t end_ns;   /* of its last one */
    bool open;        /* it is still there at the end */
    uint64_t spans;
    int64_t first_wait_ns; /* begin of the first span in which it waits; -1: there is none */
    int64_t parent;        /* lane of the goroutine that created it; -1: not known */
    int64_t ns[TRAIL_SPAN_STATES];
} trail_lane;

/* How many lanes there are of a kind. Lanes have numbers from 0 in order of appearance. */
TRAIL_API size_t trail_lanes_count(const trail_lanes *lanes, trail_lane_kind kind);

/* `lane` must be less than trail_lanes_count. */
TRAIL_API void trail_lanes_get(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                               trail_lane *row);

/* Its name alone. */
TRAIL_API trail_name trail_lanes_name(const trail_lanes *lanes, trail_lane_kind kind, size_t lane);

/* How long it was in each state from its begin up to `ns`, and not behind its end. */
TRAIL_API void trail_lanes_sums(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                int64_t ns, int64_t sums[TRAIL_SPAN_STATES]);

/* The goroutine's newest lane (numbers may be used again); -1 if it has none. P, thread: its lane. */
TRAIL_API int64_t trail_lanes_find(const trail_lanes *lanes, trail_lane_kind kind, int64_t id);

typedef struct trail_cell {
    int64_t begin_ns, end_ns;
    uint64_t first; /* number of its first span in the lane */
    uint64_t count; /* 1: this span, all of the cell is of `state`; more: a mixture */
    unsigned state; /* of the span; of a mixture the one that takes most of the time */
    int64_t ns[TRAIL_SPAN_STATES]; /* of a mixture: how long it was in each */
} trail_cell;

/*
 * The picture of [from_ns, to_ns) in `width` pixels (at least 1, at most 65536). Fills at most `width`
 * cells, in order and without overlap; where nothing is, there is no cell. Returns how many.
 */
TRAIL_API size_t trail_lanes_cells(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                   int64_t from_ns, int64_t to_ns, size_t width, trail_cell *cells);

typedef struct trail_span {
    int64_t begin_ns, end_ns;
    bool open; /* it has not ended by the end of the trace */
    unsigned state;
    trail_name reason; /* waiting: why */
    /* Goroutine: with which it came into the state; runnable after a wait: that of who woke it. */
    trail_stack stack;
    /*
     * What belongs to it: the lane of the P on which a goroutine runs; of the goroutine that woke it
     * (runnable); of the goroutine that runs on a P or thread. -1: none, or not known.
     */
    int64_t other;
} trail_span;

/* False if the lane has no such span. */
TRAIL_API bool trail_lanes_span(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                uint64_t span, trail_span *row);

/* One span after the other, from `span` on; more may be fed in between. The fields are its own. */
typedef struct trail_span_cursor {
    trail_lane_kind kind;
    size_t lane;
    uint64_t next; /* number of the span that trail_lanes_next tells */
    int64_t begin_ns;
    uint32_t times, details;
} trail_span_cursor;
TRAIL_API void trail_lanes_seek(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                uint64_t span, trail_span_cursor *cursor);

/* False if there are no more. */
TRAIL_API bool trail_lanes_next(const trail_lanes *lanes, trail_span_cursor *cursor,
                                trail_span *row);

/* The number of the span at `ns`, or the next one if none is there; the lane's count if none comes. */
TRAIL_API uint64_t trail_lanes_span_at(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                       int64_t ns);

/* Text and stacks of the rows; valid until the next feed. */
TRAIL_API trail_string trail_lanes_text(const trail_lanes *lanes, trail_name name);
TRAIL_API size_t trail_lanes_stack(const trail_lanes *lanes, trail_stack stack,
                                   const trail_place **places);

/* Stacks are numbers below this. */
TRAIL_API size_t trail_lanes_stack_count(const trail_lanes *lanes);

/* Something that lasts, beside the states: a range of the runtime, a region, a task. */
typedef enum trail_bar_kind { TRAIL_BAR_RANGE, TRAIL_BAR_REGION, TRAIL_BAR_TASK } trail_bar_kind;
typedef struct trail_bar {
    int64_t begin_ns, end_ns; /* end: that of the trace so far while it is open */
    trail_bar_kind kind;
    bool open;
    bool has_begun;    /* its begin is in the trace */
    trail_range range; /* of a range */
    trail_name name;
    trail_stack stack;
    int64_t lane;    /* of the goroutine that began it; -1: none, or not known */
    int64_t proc;    /* of a P's range its number; TRAIL_NONE of others */
    uint64_t task;   /* its own, or the region's; 0 and TRAIL_NO_TASK are none */
    uint64_t parent; /* of a task */
    uint32_t depth;  /* how many are around it in its goroutine */
} trail_bar;

/* All of them, in the order in which they were told of. Valid until the next feed. */
TRAIL_API size_t trail_lanes_bars(const trail_lanes *lanes, const trail_bar **bars);

/* How many there are of a kind. */
TRAIL_API size_t trail_lanes_count_bars(const trail_lanes *lanes, trail_bar_kind kind);

/* The values of a metric, in order of time. */
typedef struct trail_metric_value {
    int64_t time_ns;
    uint64_t value;
} trail_metric_value;
TRAIL_API size_t trail_lanes_metric(const trail_lanes *lanes, trail_metric metric,
                                    const trail_metric_value **values);

/* A moment on a lane: a log, or a CPU sample. */
typedef struct trail_mark {
    int64_t time_ns;
    uint32_t lane, thread; /* of a goroutine, of a thread; UINT32_MAX: none, or not known */
    uint32_t proc;         /* of a sample; of a log UINT32_MAX */
    trail_stack stack;     /* where it was; 0: not known */
    trail_name name;       /* of a log: "CATEGORY: MESSAGE", or the message alone; of a sample 0 */
} trail_mark;

/* All of them, in order of time. Valid until the next feed. */
TRAIL_API size_t trail_lanes_logs(const trail_lanes *lanes, const trail_mark **marks);
TRAIL_API size_t trail_lanes_samples(const trail_lanes *lanes, const trail_mark **marks);

/* How many there were at a time: goroutines by state, Ps and threads at work. */
typedef enum trail_lane_counter {
    TRAIL_COUNTER_RUNNABLE,
    TRAIL_COUNTER_RUNNING,
    TRAIL_COUNTER_WAITING,
    TRAIL_COUNTER_SYSCALL, /* with or without a P */
    TRAIL_COUNTER_PROCS,
    TRAIL_LANE_COUNTERS
} trail_lane_counter;

/*
 * The sums of a counter over time, in bins of equal length from 0 on: 2 in a bin of 1000 ns is 2000.
 * The last of `count` is that of the end. Valid until the next feed.
 */
typedef struct trail_lane_bins {
    int64_t bin_ns;
    size_t count;
    const int64_t (*ns)[TRAIL_LANE_COUNTERS];
} trail_lane_bins;
TRAIL_API void trail_lanes_get_bins(const trail_lanes *lanes, trail_lane_bins *bins);

/* The wall clock at time 0 in nanoseconds since 1970. False: the trace does not tell. */
TRAIL_API bool trail_lanes_wall(const trail_lanes *lanes, int64_t *wall_ns);

#ifdef __cplusplus
}
#endif

#endif
