/*
 * What a span of OTLP waited for: while it is open, the times of its goroutine by state are added
 * up, and its longest waits are kept. A goroutine's times count for all spans that are open on it,
 * its regions and the tasks that it began; each wait is an event of the innermost. A task on which
 * another goroutine works has no times; its regions have them.
 */
#pragma once

#include "timeline/timeline.h"

/* How many of a span's longest waits are kept. */
#define OTLP_WAITS 16

struct otlp_wait {
    int64_t begin_ns, ns;
    int64_t waker;     /* TRAIL_NONE: unknown */
    trail_name what;   /* the reason, or what a recording shows: "mutex cache_mu" */
    trail_stack stack; /* where */
};

/* Times of an open span. */
struct otlp_times {
    int64_t ns[TIMELINE_STATES];
    struct otlp_wait waits[OTLP_WAITS];
    size_t count;
    uint64_t dropped; /* shorter waits, which are not kept */
};

/* Keeps a wait if it is one of the longest. */
void otlp_times_keep(struct otlp_times *times, const struct otlp_wait *wait);

/* Sorts the waits by their start. */
void otlp_times_sort(struct otlp_times *times);

/*
 * Whether a goroutine in this state waits for something, possibly in a call that a recording
 * describes.
 */
static inline bool otlp_is_wait(const struct timeline_goroutine *g)
{
    enum timeline_state state = timeline_state_of(g);
    return state == TIMELINE_WAITING ||
           ((state == TIMELINE_SYSCALL || state == TIMELINE_BLOCKED) && g->reason != 0);
}
