/*
 * From readings of the program's clock to nanoseconds of CLOCK_MONOTONIC: straight lines between pairs of
 * readings that the collector takes while it runs. So times are right however long it runs, and never run
 * backwards.
 */
#ifndef TRAIL_COLLECT_TICKS_H
#define TRAIL_COLLECT_TICKS_H

#include <stddef.h>
#include <stdint.h>

#include "host/clock.h"

#define TICKS_ANCHORS 64

struct ticks {
    struct clock clock;
    struct ticks_anchor {
        uint64_t ticks, ns;
        double ns_per_tick; /* from here on, to the next */
    } anchors[TICKS_ANCHORS];
    size_t count;
};

/* The first pair. */
void ticks_init(struct ticks *ticks);
/* Another, half a millisecond later at least: spans can be converted, within a thousandth; times not yet. */
void ticks_settle(struct ticks *ticks);
/* Takes another pair, if the last is old enough. */
void ticks_step(struct ticks *ticks);
/* And the last one. */
void ticks_end(struct ticks *ticks);
uint64_t ticks_now(const struct ticks *ticks);
/* Good between the oldest anchor that is kept and the newest; beyond, the nearest line goes on. */
int64_t ticks_to_ns(const struct ticks *ticks, uint64_t at);
/* The other way round. */
uint64_t ticks_from_ns(const struct ticks *ticks, int64_t ns);
/* The length of a span in ns. */
int64_t ticks_to_span(const struct ticks *ticks, uint64_t span);
/* The length of a span; 1 at least. */
uint64_t ticks_of_ns(const struct ticks *ticks, uint64_t ns);

#endif
