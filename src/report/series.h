/*
 * Series: how many goroutines were in which state over the time, and the heap, in a fixed number of
 * slots. As in the activity of an analysis, slots double their length whenever there are too many, so
 * that memory is fixed and the end need not be known.
 */
#ifndef TRAIL_REPORT_SERIES_H
#define TRAIL_REPORT_SERIES_H

#include "report/looks.h"

enum { SERIES_SLOTS = 512 };

struct series_slot {
    int64_t ns[LOOKS];   /* goroutines' time in each state */
    uint64_t heap, goal; /* the greatest in it; 0: none was told */
};

/* series_init, then series_feed each batch, series_finish. Large: not for the stack. */
struct series {
    struct looks looks;
    struct series_slot slots[SERIES_SLOTS];
    int64_t slot_ns;
    int64_t counts[LOOKS + 1];
    bool begun, has_from, has_to, has_heap;
    int64_t from_ns, to_ns;   /* of the window, relative; then absolute */
    int64_t begin_ns, end_ns; /* what was counted */
    int64_t last_ns;          /* up to here it is counted */
    bool has_wall;            /* the clock on the wall, at some moment */
    trail_clock_snapshot wall;
};

/* The window is that of the analysis. */
void series_init(struct series *series, const trail_reader *reader,
                 const trail_analysis_options *window);

/* False when memory is out. */
bool series_feed(struct series *series, const trail_event *events, long count);

/* Up to the end of what was analysed. */
void series_finish(struct series *series, int64_t end_ns);
void series_free(struct series *series);

/* How many slots have something, and the length of one of them: the last is shorter. */
size_t series_count(const struct series *series);
int64_t series_length(const struct series *series, size_t slot);

#endif
