/*
 * v2 merge: the events of all threads of a generation in one sequence (§6.4).
 *
 * Each thread has a cursor at its next event. The cursors form a binary min-heap by that event's
 * time, the frontier. Its head is offered to the model (v2_order); if it has to wait, the others
 * are offered in order of time. At equal times the shape of the heap decides, so it is maintained
 * exactly as in Go: up, else down (base/heap.h).
 */
#pragma once

#include "base/heap.h"
#include "read/v2/order.h"

/* An entry of the heap, with a copy of the time, so that sifting accesses only one array. */
struct v2_head {
    int64_t time_ns;
    struct v2_cursor *cursor;
};

static inline bool v2_head_before(const struct v2_head *a, const struct v2_head *b)
{
    return a->time_ns < b->time_ns;
}

HEAP(v2_heads, struct v2_head, v2_head_before)

struct v2_frontier {
    struct v2_head *heads;
    size_t count;
};

enum v2_merge {
    V2_MERGE_PAUSE,    /* the output is full, or the head is later than until_ns */
    V2_MERGE_END,      /* the batch of entry *which is at its end: its cursor needs the next */
    V2_MERGE_STUCK,    /* every thread waits: the trace is broken */
    V2_MERGE_FAILED,   /* *order->error is set, for the event of entry *which */
    V2_MERGE_LATE,     /* every thread waits up to entry *which, which is late */
    V2_MERGE_MALFORMED /* the bytes at entry *which are no event; the previous event is dropped */
};

/*
 * Delivers events to order->output while it is before `full` and the head is not later than
 * `until_ns`. The frontier must not be empty. `until_ns` applies to the head only, not to threads
 * that are offered instead of it.
 */
typedef enum v2_merge v2_merge_fn(struct v2_order *order, struct v2_frontier *frontier,
                                  int64_t until_ns, const trail_event *full, size_t *which);

/* The merge for any CPU, the one for x86-64 with BMI2, and the faster one on this CPU. */
v2_merge_fn v2_merge_any, v2_merge_bmi2;
v2_merge_fn *v2_merge_best(void);

/*
 * The same for a lenient order: takes one event. STUCK: the event of entry `*which` waits for a
 * lost one.
 */
enum v2_merge v2_merge_one(struct v2_order *order, struct v2_frontier *frontier, size_t *which);

/*
 * Makes the model fit the event of entry `which`, which waits or has failed, and delivers or skips
 * the event. At most V2_MAX_FORCED implied events precede it. Returns PAUSE, END or MALFORMED; the
 * last also for bytes that are well-formed by chance.
 */
enum v2_merge v2_merge_forced(struct v2_order *order, struct v2_frontier *frontier, size_t which);

/*
 * Decodes the first event of the cursor's batch, which is not empty. Returns false if it is
 * malformed.
 */
bool v2_cursor_start(const struct v2_clock *clock, struct v2_cursor *cursor);

/* Heap operations. `update` follows a change of entry i's time. */
void v2_frontier_push(struct v2_frontier *frontier, struct v2_cursor *cursor);
void v2_frontier_update(struct v2_frontier *frontier, size_t i);
void v2_frontier_remove(struct v2_frontier *frontier, size_t i);
