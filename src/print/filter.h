/*
 * Filter: decides for each event whether it is printed (trail_filter in include/trail/export.h). It
 * must see every event of the trace in order, because times count from the first.
 */
#pragma once

#include <trail/export.h>

enum filter_verdict {
    FILTER_SKIP,
    FILTER_TAKE,
    FILTER_TAKE_LAST, /* print it; no later event can pass */
    FILTER_STOP       /* neither this nor any later event can pass */
};

struct filter {
    const trail_filter *rules; /* NULL: everything passes */
    bool started;
    int64_t first_ns; /* time of the first event */
    uint64_t taken;
};

enum filter_verdict filter_event(struct filter *filter, const trail_event *event);
enum filter_verdict filter_v1_event(struct filter *filter, const trail_v1_event *event);
