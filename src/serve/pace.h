/* Answers that examine many spans let other requests run in between. */
#pragma once

#include "serve/model.h"

/* Spans examined before other requests may run. */
#define YIELD_SPANS (UINT64_C(1) << 19)

struct pace {
    struct model *model;
    uint64_t seen;
};

/* Called between model_lock and model_unlock, which it may undo for a moment. */
static inline void walk_on(struct pace *pace, uint64_t spans)
{
    pace->seen += spans;
    if (pace->seen >= YIELD_SPANS) {
        pace->seen = 0;
        model_yield(pace->model);
    }
}
