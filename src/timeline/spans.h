/*
 * Spans: for how long what an event ends had lasted - a goroutine's state, a range, a task. One
 * entry for each that is open, so that memory is bounded by what is alive.
 */
#ifndef TRAIL_TIMELINE_SPANS_H
#define TRAIL_TIMELINE_SPANS_H

#include <trail/read.h>

#include "base/idmap.h"
#include "base/slab.h"

/* Zero-initialised is empty and ready. */
struct spans {
    struct idmap open; /* key of what is open -> struct span */
    struct slab slab;
};

/*
 * Takes note of what `event` begins, and returns how long what it ends has lasted, in ns; -1 if it
 * ends nothing, or nothing whose beginning is in the trace. To be called with each event in order.
 */
int64_t spans_observe(struct spans *spans, const trail_event *event);
void spans_free(struct spans *spans);

#endif
