/*
 * Regions: what goroutines did between the begin and end of a user region (§9.1): the difference of
 * two readings of their times. Open regions hang on their goroutine, innermost first.
 */
#ifndef TRAIL_ANALYZE_REGIONS_H
#define TRAIL_ANALYZE_REGIONS_H

#include <trail/analyze.h>

#include "analyze/goroutines.h"
#include "analyze/groups.h"

/* Rows of regions that are over. Zero-initialised is empty and ready. */
struct regions {
    trail_region *rows;
    size_t count, capacity;
    struct groups groups;
};

/* RegionBegin or RegionEnd. False when memory is out. */
bool regions_event(struct trail_analysis *analysis, const trail_event *event);

/* A goroutine created inside a region takes a nameless one of the same task with it. */
bool regions_inherit(struct trail_analysis *analysis, struct goroutine *g,
                     const trail_event *event);

/* The goroutine is over: so are its regions, unless it is one of the runtime's. */
bool regions_end_with(struct trail_analysis *analysis, struct goroutine *g, int64_t now,
                      int64_t end_ns);

/* Time counts from now on only. */
void regions_count_from(struct goroutine *g);

/* Sorts the rows and gives each goroutine its own. */
void regions_finish(struct trail_analysis *analysis);

/* Drops what is open. */
void regions_free_open(struct goroutine *g);
void regions_free(struct regions *regions);

#endif
