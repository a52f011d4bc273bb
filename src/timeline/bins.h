/*
 * Bins: how many were in each state over the whole trace, as time integrals in a fixed number of
 * pieces of time. When the trace outgrows them, each two become one.
 */
#ifndef TRAIL_TIMELINE_BINS_H
#define TRAIL_TIMELINE_BINS_H

#include <trail/lanes.h>

enum { BINS = 1 << 14, BIN_SHIFT_AT_FIRST = 10 };

/* bins_init first. */
struct bins {
    unsigned shift; /* a bin is 2^shift ns */
    int64_t now[TRAIL_LANE_COUNTERS];
    int64_t since_ns[TRAIL_LANE_COUNTERS]; /* what was before is in the bins */
    int64_t (*ns)[TRAIL_LANE_COUNTERS];    /* BINS of them */
};

/* False when memory is out. */
bool bins_init(struct bins *bins);
void bins_free(struct bins *bins);

/* One more (`by` 1) or less (-1) from `ns` on; before the latest time is told too, if seldom. */
void bins_change(struct bins *bins, trail_lane_counter counter, int by, int64_t ns);

/* Everything up to `ns` is in the bins. */
void bins_flush(struct bins *bins, int64_t ns);

#endif
