/*
 * v2 order: the model of goroutines, Ps and Ms that puts the events of all threads into one
 * consistent order (§6.5). The merge offers the next event of a thread; the model takes it, asks to
 * wait because another thread's event must come first, or finds that the trace contradicts itself.
 *
 * Time stamps of different threads are not trusted for order. What is trusted is each thread's own
 * order and the sequence numbers of goroutines and Ps, which count from 0 in every generation.
 *
 * The state follows what is alive: a destroyed goroutine leaves nothing behind. Names of tasks and
 * of active regions are copied, because they outlive the generation that defines them.
 */
#ifndef TRAIL_READ_V2_ORDER_H
#define TRAIL_READ_V2_ORDER_H

#include <trail/read.h>

#include "base/idmap.h"
#include "base/slab.h"
#include "read/tables.h"
#include "read/v2/decode.h"

/* A range in flight on a goroutine or P: the begin event's type and, for STW, its kind string's ID.
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

/* Sequence numbers are per generation: n succeeds only an n-1 of the same one. */
struct v2_seq {
    uint64_t generation, n;
};

struct v2_g {
    void *link; /* of the slab; nothing else may be here */
    int64_t id; /* TRAIL_NONE once destroyed: an M may still hold a stale pointer, see v2_m */
    uint8_t status;
    struct v2_seq seq;
    struct v2_ranges ranges;
    struct v2_region *regions; /* inner-most first */
};

struct v2_p {
    int64_t id;
    uint8_t status;
    struct v2_seq seq;
    struct v2_ranges ranges;
};

/*
 * `g_id` and `p_id` are what the model says; `g` and `p` are only a shortcut to them. `g` is
 * checked against `g_id` before use: a hostile trace can bind a goroutine to two Ms and destroy it
 * on one.
 */
struct v2_m {
    int64_t id;
    bool seen; /* an event of it was offered: until then the model does not know it */
    int64_t g_id, p_id;
    struct v2_g *g;
    struct v2_p *p;
    uint64_t cursor_epoch; /* `cursor` belongs to this generation of the reader */
    uint32_t cursor;
};

enum v2_gc { V2_GC_UNDETERMINED, V2_GC_NOT_RUNNING, V2_GC_RUNNING };

/* A step emits no more events than this. */
#define V2_MAX_EMIT 3

/*
 * A thread's place in one of its batches, at an event that is decoded but not taken. `last_ns` is
 * the event's time (§6.2).
 */
struct v2_cursor {
    const uint8_t *at, *end; /* what is left of the batch, behind the event */
    const uint8_t *event;    /* where the event begins */
    int64_t last_ns;
    struct v2_wire_event wire;
    struct v2_m *m;
    int64_t thread;
    int64_t batch_ns;    /* time of the batch */
    uint32_t batch;      /* the reader's index of the thread's next batch */
    uint32_t last_batch; /* and of its last */
};

/* Nanoseconds per tick; `exact` is the same where that is a whole number below 2^31. */
struct v2_clock {
    double ns_per_tick;
    uint64_t exact;
    uint64_t exact_until; /* up to so many ticks `exact` may be used */
};

/* Nanoseconds of a number of ticks: trunc(ticks * ns_per_tick), as Go computes it on amd64. */
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

/* Where events go. All are later than the one before. */
struct v2_output {
    trail_event *next; /* room for V2_MAX_EMIT more than is asked for */
    int64_t last_ns;   /* time of the event emitted last */
};

/* Owned by a reader, one thread. Zero-initialised is not ready: v2_order_init. */
struct v2_order {
    struct v2_output output;
    uint64_t generation;
    struct tables *tables; /* the reader's, of the current generation */
    struct idmap gs, ps, ms, tasks;
    uint64_t initial_generation; /* 0 until the first event */
    struct v2_clock clock;
    uint64_t steps; /* wire events taken */
    uint64_t gc_seq;
    enum v2_gc gc;
    trail_string_handle range_names[TRAIL_RANGES];
    struct slab g_slab, p_slab, m_slab, task_slab;
    struct v2_m nobody; /* stands for "no thread": never binds anything for longer than a step */
    trail_error *error;
};

void v2_order_init(struct v2_order *order, struct tables *tables, trail_error *error);
void v2_order_fini(struct v2_order *order);

/*
 * Tells that events of `generation` follow and that the tables are those of it. False: out of
 * memory.
 */
bool v2_order_generation(struct v2_order *order, uint64_t generation, double ns_per_tick);

/* The M of a thread ID of the file, made if need be; NULL when memory is out. */
struct v2_m *v2_order_m(struct v2_order *order, uint64_t thread);

/*
 * Offers the cursor's event to the model. ADVANCED: what it means was put at order->output, which
 * has moved on, and each event is later than the one before it.
 */
enum v2_step v2_order_advance_any(struct v2_order *order, struct v2_cursor *cursor);

#endif
