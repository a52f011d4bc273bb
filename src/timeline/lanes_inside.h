/* What lanes are made of, for the files that fill, keep and read them. */
#pragma once

#include <trail/lanes.h>

#include "timeline/bins.h"
#include "timeline/lane.h"
#include "timeline/timeline.h"

struct lane_list {
    struct lane *items;
    size_t count, capacity;
};

struct mark_list {
    trail_mark *items;
    size_t count, capacity;
};

struct trail_lanes {
    struct timeline timeline;
    trail_export_options options; /* zero: everything */
    struct lane_list lists[TRAIL_LANE_KINDS];
    struct store store;            /* of the lists' lanes */
    uint64_t spans, spans_between; /* spans, and those that do not begin at a tick of Go's clock */
    struct bins bins;
    struct mark_list logs, samples;
    bool has_wall;
    int64_t wall_ns; /* at time 0 */
    /* The goroutine just woken, its waker and the stack: used when it becomes runnable. */
    const struct timeline_goroutine *woken;
    uint32_t waker; /* lane + 1 */
    trail_stack waker_stack;
    trail_bar *bars;
    size_t bar_count, bar_capacity, bar_counts[3]; /* the last one by kind */
    trail_metric_value *metrics[TRAIL_METRICS];
    size_t metric_count[TRAIL_METRICS], metric_capacity[TRAIL_METRICS];
};

/* Returns lanes without events; NULL if out of memory. `reader` NULL: none will come. */
struct trail_lanes *lanes_make(trail_reader *reader);
