/*
 * Series: the number of goroutines in each state over time, and the heap, in a fixed number of
 * slots. Slots double in length whenever there are too many, so memory is fixed and the length of
 * the trace need not be known.
 */
#pragma once

#include "report/drawn.h"

enum { SERIES_SLOTS = 512 };

struct series_slot {
    int64_t ns[DRAWN_STATES]; /* goroutines' time in each state */
    uint64_t heap, goal;      /* the maximum in the slot; 0: none recorded */
};

/* Call series_init, series_feed with each batch, then series_finish. Large: not for the stack. */
struct series {
    const trail_reader *reader;
    struct drawn_states drawn;
    struct series_slot slots[SERIES_SLOTS];
    int64_t slot_ns;
    int64_t counts[DRAWN_STATES + 1];
    bool begun, has_from, has_to, has_heap;
    int64_t from_ns, to_ns;   /* the window, relative; absolute after the first event */
    int64_t begin_ns, end_ns; /* the counted range */
    int64_t last_ns;          /* counted up to here */
    bool has_wall;            /* the wall clock is known for some time */
    trail_clock_snapshot wall;
};

/* Uses the window of the analysis. */
void series_init(struct series *series, const trail_reader *reader,
                 const trail_analysis_options *window);

/* Returns false if out of memory. */
bool series_feed(struct series *series, const trail_event *events, long count);

/* Counts up to the end of the analysed window. */
void series_finish(struct series *series, int64_t end_ns);
void series_free(struct series *series);

/* Return the number of slots in use, and the length of a slot; the last one is shorter. */
size_t series_count(const struct series *series);
int64_t series_length(const struct series *series, size_t slot);
