/*
 * Regions: what goroutines did between the begin and end of a user region (§9.1): the difference of
 * two readings of their times. Open regions hang on their goroutine, innermost first.
 */
#ifndef TRAIL_ANALYZE_REGIONS_H
#define TRAIL_ANALYZE_REGIONS_H

#include <trail/analyze.h>

#include "analyze/goroutines.h"
#include "analyze/groups.h"

struct analysis_part;

struct regions {
    struct trail_analysis *analysis;
    bool wanted;        /* some answer looks at them */
    trail_region *rows; /* of those that are over; at the end by goroutine and start */
    size_t count, capacity;
    struct groups groups;
};

extern const struct analysis_part regions_part;

#endif
