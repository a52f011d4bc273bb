/*
 * Misuses: tasks, regions and logs that the program used against the rules
 * (TRAIL_EVENT_MISUSED). They are counted, and the first is kept for the findings.
 */
#pragma once

#include <trail/analyze.h>

struct trail_analysis;

struct misuses {
    struct trail_analysis *analysis;
    uint64_t count;
    /* Of the first. */
    const char *what, *rule; /* "region", "ended before ..." */
    trail_name name;
    trail_stack stack;
    trail_longest first; /* its moment */
};
