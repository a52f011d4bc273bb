/*
 * Bins: how many lanes were in each state over the whole trace, as time integrals in a fixed number
 * of bins. When the trace outgrows them, pairs of bins are merged into one.
 */
#pragma once

#include <trail/lanes.h>

enum { BINS = 1 << 14, BIN_SHIFT_AT_FIRST = 10 };

/* Initialised by bins_init. */
struct bins {
    unsigned shift; /* a bin is 2^shift ns */
    int64_t now[TRAIL_LANE_COUNTERS];
    int64_t since_ns[TRAIL_LANE_COUNTERS]; /* everything earlier is in the bins */
    int64_t (*ns)[TRAIL_LANE_COUNTERS];    /* BINS elements */
    /*
     * What remains to be added: late[0] + ... + late[i] for all of bin i. A goroutine that existed
     * long before it was found thus costs two additions, not one per bin. NULL until needed.
     */
    int64_t (*late)[TRAIL_LANE_COUNTERS];
    bool has_late;
};

/* Returns false if out of memory. */
bool bins_init(struct bins *bins);
void bins_free(struct bins *bins);

/* Changes a counter by 1 or -1 from `ns` on, which may be before the latest time. */
void bins_change(struct bins *bins, trail_lane_counter counter, int by, int64_t ns);

/* Adds everything up to `ns` to the bins; after a change they are incomplete until then. */
void bins_flush(struct bins *bins, int64_t ns);
