/*
 * v2 order: the model of goroutines, Ps and Ms that puts the events of all threads into one
 * consistent order (§6.5). The merge offers the next event of a thread; the model accepts it, makes
 * it wait because another thread's event must come first, or reports a contradiction.
 *
 * Time stamps of different threads do not determine the order; each thread's own order does,
 * together with the sequence numbers of goroutines and Ps, which count from 0 in every generation.
 *
 * The state is bounded by what is alive: a destroyed goroutine leaves nothing behind. Names of
 * tasks and of open regions are copied, because they outlive the generation that defines them.
 */
#pragma once

#include <trail/read.h>

#include "base/objects.h"
#include "read/tables.h"
#include "read/v2/decode.h"

/*
 * An open range of a goroutine or P: the begin event's type and, for STW, the ID of its kind
 * string.
 */
struct v2_range {
    uint8_t type;
    uint64_t kind;
};

struct v2_ranges {
    struct v2_range *items;
    size_t count, capacity;
};

struct v2_region;
struct v2_guess;
struct v2_successors;

/* Sequence numbers are per generation: n succeeds only n - 1 of the same generation. */
struct v2_seq {
    uint64_t generation, n;
};

struct v2_g {
    void *link; /* used by the slab; no other data may be here */
    int64_t id; /* TRAIL_NONE once destroyed: an M may still have a stale pointer, see v2_m */
    uint8_t status;
    struct v2_seq seq;
    struct v2_ranges ranges;
    struct v2_region *regions; /* innermost first */
};

struct v2_p {
    void *link; /* as in v2_g */
    int64_t id;
    uint8_t status;
    struct v2_seq seq;
    struct v2_ranges ranges;
};

/*
 * `g_id` and `p_id` are the state; `g` and `p` cache pointers to them. `g` is checked against
 * `g_id` before use: a hostile trace can bind a goroutine to two Ms and destroy it on one.
 */
struct v2_m {
    int64_t id;
    bool seen; /* one of its events was offered; until then it is not part of the model */
    int64_t g_id, p_id;
    struct v2_g *g;
    struct v2_p *p;
    uint64_t cursor_epoch; /* the reader's epoch in which `cursor` is valid */
    uint32_t cursor;
};

enum v2_gc { V2_GC_UNDETERMINED, V2_GC_NOT_RUNNING, V2_GC_RUNNING };

/* The maximum number of events that a step emits. */
#define V2_MAX_EMIT 3

/*
 * A thread's position in one of its batches, at an event that is decoded but not accepted.
 * `last_ns` is the event's time (§6.2).
 */
struct v2_cursor {
    const uint8_t *at, *end; /* the rest of the batch, after the event */
    const uint8_t *event;    /* the event's first byte */
    int64_t last_ns;
    struct v2_wire_event wire;
    struct v2_m *m;
    int64_t thread;
    int64_t batch_ns;    /* time of the batch */
    uint32_t batch;      /* the reader's index of the thread's next batch */
    uint32_t last_batch; /* and of its last batch */
    uint32_t gaps;       /* in the generation before the batch */
    int64_t bound_ns;    /* latest time of a sound event of the batch, if the order is lenient */
    bool looked_at;      /* the batch was examined: see late() in the reader */
    bool pending;        /* the event is in the frontier; see doubt() in the reader */
};

/* Nanoseconds per tick; `exact` is the same if it is an integer below 2^31, else 0. */
struct v2_clock {
    double ns_per_tick;
    uint64_t exact;
    uint64_t exact_until; /* the number of ticks up to which `exact` may be used */
    /*
     * What is a long time between two events: 10 ms, or as many ticks as Go's clock has in that
     * time. The frequency may be any number in traces that no program has written.
     */
    int64_t moment_ns;
};

#define V2_MOMENT_NS    INT64_C(10000000)
#define V2_MOMENT_TICKS (V2_MOMENT_NS / 64)

/* Converts ticks to nanoseconds: trunc(ticks * ns_per_tick), as Go computes it on amd64. */
static inline int64_t v2_ticks_to_ns(double ns_per_tick, uint64_t ticks)
{
    double ns = (double)ticks * ns_per_tick;
    return ns < 0x1p63 ? (int64_t)ns : INT64_MIN;
}

enum v2_step {
    V2_ADVANCED,
    V2_WAIT,  /* another thread's event must come first */
    V2_FAILED /* *order->error is set, without its position */
};

/* Receives events, with strictly increasing times. */
struct v2_output {
    trail_event *next; /* has room for V2_MAX_EMIT more events than `full` in v2/merge.h */
    int64_t last_ns;   /* time of the last event emitted */
};

/* Owned by a reader; one thread at a time. Initialize with v2_order_init. */
struct v2_order {
    struct v2_output output;
    struct v2_output before; /* the step that ended a batch: V2_MERGE_END */
    uint64_t generation;
    struct tables *tables;     /* the reader's, for the current generation */
    struct objects gs, ps, ms; /* of struct v2_g, v2_p, v2_m */
    struct idmap tasks;
    uint64_t initial_generation; /* 0 until the first event */
    struct v2_clock clock;
    uint64_t steps; /* wire events accepted */
    uint64_t gc_seq;
    enum v2_gc gc;
    trail_string_handle range_names[TRAIL_RANGES];
    /* Goroutines and Ps without a state since events of this generation were lost: see
     * v2/hole.h. */
    struct idmap forgotten_gs, forgotten_ps;
    struct idmap ended_gs;                  /* in this generation, since then */
    uint64_t highest_g;                     /* in the model at that time */
    const struct v2_successors *successors; /* of this generation; NULL: no event lags */
    int64_t usual_end_ns; /* later events must be examined before they are accepted */
    int64_t looked_ns;    /* time of the last event examined */
    bool lenient;         /* events are lost: see v2/force.h */
    bool incomplete;      /* definitions in the generation's tables may be lost, too */
    uint64_t forced;      /* events for which the model was changed */
    uint64_t dropped;     /* events that could not be used even then */
    uint64_t forced_work; /* threads searched for this */
    bool strict;          /* a misused annotation is an error */
    uint64_t misused;     /* misused annotations that were delivered */
    uint64_t unknown;     /* IDs without string or stack, dropped by a reader that is not strict */
    struct v2_m nobody;   /* the M for "no thread": its bindings last only one step */
    trail_error *error;
    struct v2_guess *guess; /* the previous state is unknown: see v2/guess.h. NULL: it is known */
};

void v2_order_init(struct v2_order *order, struct tables *tables, trail_error *error);
void v2_order_fini(struct v2_order *order);

/* Empties an order of goroutines and Ps, as before the first event. */
void v2_order_restart(struct v2_order *order);

/* Begins `generation`, whose tables are loaded. Returns false if out of memory. */
bool v2_order_generation(struct v2_order *order, uint64_t generation, double ns_per_tick);

/* Returns the M of a thread ID of the file, created if needed; NULL if out of memory. */
struct v2_m *v2_order_m(struct v2_order *order, uint64_t thread);

/*
 * Offers the cursor's event to the model. ADVANCED: its events were written to order->output, with
 * increasing times.
 */
enum v2_step v2_order_advance_any(struct v2_order *order, struct v2_cursor *cursor);
