/*
 * Converts readings of the program's clock to nanoseconds of CLOCK_MONOTONIC, by straight lines
 * between pairs of readings of both clocks that the collector takes while it runs. Times thus stay
 * accurate in long recordings, and never decrease.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "host/clock.h"

#define TICKS_ANCHORS 64

struct ticks {
    struct clock clock;
    struct ticks_anchor {
        uint64_t ticks, ns;
        double ns_per_tick; /* from this pair to the next */
    } anchors[TICKS_ANCHORS];
    size_t count;
};

/* Takes the first pair. */
void ticks_init(struct ticks *ticks);
/* Takes a second pair, at least half a millisecond later: spans can be converted to within 0.1 %,
 * but not times yet. */
void ticks_settle(struct ticks *ticks);
/* Takes another pair if the last one is old enough. */
void ticks_step(struct ticks *ticks);
/* Takes the last pair. */
void ticks_end(struct ticks *ticks);
uint64_t ticks_now(const struct ticks *ticks);
/* Accurate between the oldest pair kept and the newest; beyond them the nearest line is
 * extended. */
int64_t ticks_to_ns(const struct ticks *ticks, uint64_t at);
/* The inverse. */
uint64_t ticks_from_ns(const struct ticks *ticks, int64_t ns);
/* Returns the length of a span in ns. */
int64_t ticks_to_span(const struct ticks *ticks, uint64_t span);
/* Returns the length of a span in ticks, at least 1. */
uint64_t ticks_of_ns(const struct ticks *ticks, uint64_t ns);
