/*
 * Lanes: what every goroutine, P and thread did over time, stored so that any range can be drawn at
 * any width quickly. Built in one pass over the events; everything fed so far can be drawn at any
 * time.
 *
 * A lane is a row of the timeline: a goroutine, a P or a thread. Its spans follow one another, each
 * in one state. A drawing of a lane consists of cells: spans wide enough to be visible, and between
 * them mixtures, one pixel wide, with the share of each state.
 *
 * Memory: about 4 bytes per span; spans beyond 128 MiB are in a temporary file, in TMPDIR or
 * /var/tmp, or in memory if there can be none. A cell takes a few hundred nanoseconds, whatever the
 * number of spans in it. Times are nanoseconds since the first event of the trace.
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

/* The state of a lane. A P and a thread are running while a goroutine runs on them. */
typedef enum trail_span_state {
    TRAIL_SPAN_NONE, /* does not exist or is idle; for a goroutine after damage, unknown */
    TRAIL_SPAN_RUNNABLE,
    TRAIL_SPAN_RUNNING,
    TRAIL_SPAN_WAITING,
    TRAIL_SPAN_SYSCALL,
    TRAIL_SPAN_BLOCKED, /* in a system call, its P released */
    TRAIL_SPAN_STATES
} trail_span_state;

/* Returns "none", "runnable", "running", "waiting", "syscall" or "syscall without P". */
TRAIL_API const char *trail_span_state_name(unsigned state);

typedef struct trail_lanes trail_lanes;

/* Opens lanes over the events of `reader`, which must outlive them. NULL if out of memory. */
TRAIL_API trail_lanes *trail_lanes_open(trail_reader *reader);

/* Accepts NULL. */
TRAIL_API void trail_lanes_close(trail_lanes *lanes);

/*
 * Adds the events of one trail_reader_next_batch; call it before the next batch is read. Returns
 * false if out of memory.
 */
TRAIL_API bool trail_lanes_feed(trail_lanes *lanes, const trail_event *events, long count);

/* The time of the last event fed, in ns. */
TRAIL_API int64_t trail_lanes_end(const trail_lanes *lanes);

/* Totals so far, and the memory in use, including the temporary file. */
typedef struct trail_lanes_size {
    uint64_t events, spans;
    size_t bytes;
} trail_lanes_size;
TRAIL_API void trail_lanes_get_size(const trail_lanes *lanes, trail_lanes_size *size);

typedef struct trail_lane {
    int64_t id;       /* of the goroutine, P or thread */
    trail_name name;  /* a goroutine's start function; 0: not known */
    int64_t begin_ns; /* of its first span */
    int64_t end_ns;   /* of its last span */
    bool open;        /* still exists at the end */
    uint64_t spans;
    int64_t first_wait_ns;         /* start of its first waiting span; -1: none */
    int64_t parent;                /* lane of the goroutine that created it; -1: not known */
    int64_t ns[TRAIL_SPAN_STATES]; /* time in each state */
} trail_lane;

/* The number of lanes of a kind. Lanes are numbered from 0 in order of appearance. */
TRAIL_API size_t trail_lanes_count(const trail_lanes *lanes, trail_lane_kind kind);

/* Fills *row. `lane` must be less than trail_lanes_count. */
TRAIL_API void trail_lanes_get(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                               trail_lane *row);

/* Only the name of a lane. */
TRAIL_API trail_name trail_lanes_name(const trail_lanes *lanes, trail_lane_kind kind, size_t lane);

/* Time in each state from the lane's start up to `ns`, or up to its end if that is earlier. */
TRAIL_API void trail_lanes_sums(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                int64_t ns, int64_t sums[TRAIL_SPAN_STATES]);

/* The newest lane of a goroutine (numbers are reused), or the lane of a P or thread; -1: none. */
TRAIL_API int64_t trail_lanes_find(const trail_lanes *lanes, trail_lane_kind kind, int64_t id);

typedef struct trail_cell {
    int64_t begin_ns, end_ns;
    uint64_t first;                /* number of its first span in the lane */
    uint64_t count;                /* 1: this span, the whole cell is in `state`; more: a mixture */
    unsigned state;                /* of the span; of a mixture the state with the most time */
    int64_t ns[TRAIL_SPAN_STATES]; /* of a mixture: time in each state */
} trail_cell;

/*
 * Computes the cells of [from_ns, to_ns) at `width` pixels (1 to 65536). Fills at most `width`
 * cells, in order and without overlap; time without a state has no cell. Returns their number.
 */
TRAIL_API size_t trail_lanes_cells(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                   int64_t from_ns, int64_t to_ns, size_t width, trail_cell *cells);

typedef struct trail_span {
    int64_t begin_ns, end_ns;
    bool open; /* not ended by the end of the trace */
    unsigned state;
    /* Of waiting, and of a system call that waits: what for; see trail_lanes_wait_for. */
    trail_name reason;
    /*
     * Goroutine: its stack at the transition into the state; for runnable after a wait, the stack
     * of the waker.
     */
    trail_stack stack;
    /*
     * The related lane: for a running goroutine its P; for a runnable one the goroutine that woke
     * it; for a P or thread the goroutine that runs on it. -1: none, or not known.
     */
    int64_t other;
} trail_span;

/* Fills *row. Returns false if the lane has no such span. */
TRAIL_API bool trail_lanes_span(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                uint64_t span, trail_span *row);

/* Iterates over a lane's spans from `span` on, also between feeds. The fields are private. */
typedef struct trail_span_cursor {
    trail_lane_kind kind;
    size_t lane;
    uint64_t next; /* number of the span that trail_lanes_next returns next */
    int64_t begin_ns;
    uint32_t times, details;
} trail_span_cursor;
TRAIL_API void trail_lanes_seek(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                uint64_t span, trail_span_cursor *cursor);

/* Fills *row with the next span. Returns false at the end. */
TRAIL_API bool trail_lanes_next(const trail_lanes *lanes, trail_span_cursor *cursor,
                                trail_span *row);

/*
 * The number of the span that contains `ns`, or of the next one after it; the lane's number of
 * spans if there is none.
 */
TRAIL_API uint64_t trail_lanes_span_at(const trail_lanes *lanes, trail_lane_kind kind, size_t lane,
                                       int64_t ns);

/* Texts and stacks of the rows above. Valid until the next feed. */
TRAIL_API trail_string trail_lanes_text(const trail_lanes *lanes, trail_name name);

/* What the wait of a span's `reason` is for; its `object` is the lanes' name of it. */
TRAIL_API trail_wait_for trail_lanes_wait_for(const trail_lanes *lanes, trail_name wait);
TRAIL_API size_t trail_lanes_stack(const trail_lanes *lanes, trail_stack stack,
                                   const trail_place **places);

/* One more than the largest trail_stack. */
TRAIL_API size_t trail_lanes_stack_count(const trail_lanes *lanes);

/* An interval in addition to the states: a range of the runtime, a region or a task. */
typedef enum trail_bar_kind { TRAIL_BAR_RANGE, TRAIL_BAR_REGION, TRAIL_BAR_TASK } trail_bar_kind;
typedef struct trail_bar {
    int64_t begin_ns, end_ns; /* end_ns of an open one: the end of the trace so far */
    trail_bar_kind kind;
    bool open;
    bool has_begun;    /* it began in the trace */
    trail_range range; /* of a range */
    trail_name name;
    trail_stack stack;
    int64_t lane;    /* of the goroutine that began it; -1: none, or not known */
    int64_t proc;    /* of a range of a P: its number; otherwise TRAIL_NONE */
    uint64_t task;   /* of a task: its own ID, of a region: its task; 0, TRAIL_NO_TASK: none */
    uint64_t parent; /* of a task */
    uint32_t depth;  /* nesting depth in its goroutine, from 0 */
} trail_bar;

/* All bars, in the order of their first events. Valid until the next feed. */
TRAIL_API size_t trail_lanes_bars(const trail_lanes *lanes, const trail_bar **bars);

/* The number of bars of a kind. */
TRAIL_API size_t trail_lanes_count_bars(const trail_lanes *lanes, trail_bar_kind kind);

/* The values of a metric, in time order. Valid until the next feed. */
typedef struct trail_metric_value {
    int64_t time_ns;
    uint64_t value;
} trail_metric_value;
TRAIL_API size_t trail_lanes_metric(const trail_lanes *lanes, trail_metric metric,
                                    const trail_metric_value **values);

/* A point in time on a lane: a log message or a CPU sample. */
typedef struct trail_mark {
    int64_t time_ns;
    uint32_t lane, thread; /* lanes of its goroutine and thread; UINT32_MAX: none, or not known */
    uint32_t proc;         /* of a sample; of a log UINT32_MAX */
    trail_stack stack;     /* 0: not known */
    trail_name name;       /* of a log: "CATEGORY: MESSAGE", or only the message; of a sample 0 */
} trail_mark;

/* All points, in time order. Valid until the next feed. */
TRAIL_API size_t trail_lanes_logs(const trail_lanes *lanes, const trail_mark **marks);
TRAIL_API size_t trail_lanes_samples(const trail_lanes *lanes, const trail_mark **marks);

/* Counts over time: goroutines by state, Ps and threads in use. */
typedef enum trail_lane_counter {
    TRAIL_COUNTER_RUNNABLE,
    TRAIL_COUNTER_RUNNING,
    TRAIL_COUNTER_WAITING,
    TRAIL_COUNTER_SYSCALL, /* with or without a P */
    TRAIL_COUNTER_PROCS,
    TRAIL_LANE_COUNTERS
} trail_lane_counter;

/*
 * Integrals of the counters over time, in bins of equal length from time 0 on: a count of 2 over a
 * bin of 1,000 ns is 2,000. The last bin contains the end of the trace. Valid until the next feed.
 */
typedef struct trail_lane_bins {
    int64_t bin_ns;
    size_t count;
    const int64_t (*ns)[TRAIL_LANE_COUNTERS];
} trail_lane_bins;
TRAIL_API void trail_lanes_get_bins(const trail_lanes *lanes, trail_lane_bins *bins);

/* The wall clock at time 0, in ns since 1970. Returns false if the trace has none. */
TRAIL_API bool trail_lanes_wall(const trail_lanes *lanes, int64_t *wall_ns);

#ifdef __cplusplus
}
#endif

#endif
