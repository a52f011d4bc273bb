/*
 * Filter: decides event by event what is printed (trail_filter in include/trail/export.h). It sees
 * every event of the trace in order, because times count from the first.
 */
#ifndef TRAIL_PRINT_FILTER_H
#define TRAIL_PRINT_FILTER_H

#include <trail/export.h>

enum filter_verdict {
    FILTER_SKIP,
    FILTER_TAKE,
    FILTER_TAKE_LAST, /* take it; nothing after it can pass */
    FILTER_STOP       /* neither this nor anything after it can pass */
};

struct filter {
    const trail_filter *rules; /* NULL: everything passes */
    bool started;
    int64_t first_ns; /* time of the first event */
    uint64_t taken;
};

enum filter_verdict filter_event(struct filter *filter, const trail_event *event);
enum filter_verdict filter_v1_event(struct filter *filter, const trail_v1_event *event);

#endif
