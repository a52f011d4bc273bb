/*
 * Regions: where a goroutine's time went between the start and end of a user region (§9.1), as the
 * difference of two readings of its times. Open regions are linked from their goroutine, innermost
 * first.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/activity.h"
#include "analyze/goroutines.h"
#include "analyze/groups.h"
#include "base/objects.h"

/* The slowest region of a name. */
struct region_slowest {
    trail_longest span;
    struct task_spent spent;
};

struct regions {
    struct trail_analysis *analysis;
    bool wanted;        /* some answer needs them */
    trail_region *rows; /* ended regions; at the end by goroutine and start */
    size_t count, capacity;
    struct groups groups;
    struct objects slowest; /* of names: struct region_slowest */
};
