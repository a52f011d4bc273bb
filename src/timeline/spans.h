/*
 * Spans: how long the state, range or task that an event ends has lasted, for printers. They need
 * neither names nor Ps, which analyze/follow.h keeps for each goroutine. One entry per open span,
 * so memory is bounded by what is alive.
 */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

#include "base/objects.h"

/* Initialised by SPANS_NONE: empty and ready. */
#define SPANS_NONE ((struct spans){.open = OBJECTS_OF(int64_t)})
struct spans {
    struct objects open; /* of the keys of open spans: when it began, int64_t */
    bool failed;         /* out of memory: durations are missing */
};

/*
 * Records what `event` begins. Returns the duration in ns of what it ends, or -1 if it ends
 * nothing, or nothing that began in the trace. Called with each event, in order.
 */
int64_t spans_observe(struct spans *spans, const trail_event *event);
void spans_free(struct spans *spans);
