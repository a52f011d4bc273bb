/*
 * Pauses the reading of a trace while a page opens, which needs the processors from its first
 * request until it has the data of its first picture.
 */
#pragma once

#include "serve/model.h"

/* Atomic; ns of CLOCK_MONOTONIC. */
struct rest {
    int64_t began, until;
};

/* Pauses reading for `ms`, but not again within 10 s. May be called from any thread. */
void rest_begin(struct rest *rest, int ms);

/* Continues reading. May be called from any thread. */
void rest_end(struct rest *rest);

/* Called before each batch. Returns at once if there is nothing to draw yet. */
void rest_before_reading(const struct rest *rest, struct model *model);
