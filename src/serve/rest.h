/*
 * When the reading of a trace rests: a page that opens needs the processors, from its first request until it has the data of
 * its first picture.
 */
#ifndef TRAIL_SERVE_REST_H
#define TRAIL_SERVE_REST_H

#include "serve/model.h"

struct rest {
    int64_t until; /* atomic: ns of the monotonic clock */
};

/* Reading rests for so many ms; with 0 it goes on. May be called from any thread. */
void rest_for(struct rest *rest, int ms);

/* Called before each batch. Returns at once if there is nothing to draw yet. */
void rest_before_reading(const struct rest *rest, struct model *model);

#endif
