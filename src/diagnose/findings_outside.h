/* Rows of waits for what is outside the program (outside.h), for several kinds of findings. */
#pragma once

#include "diagnose/findings.h"
#include "diagnose/waits.h"

#define POLL_EXEC_MOST 100000 /* what looks for something runs for less between two looks */
#define AT_ONCE        1.5    /* goroutines that wait for the same kind of thing, on average */
#define OUTSIDE_LEAST  INT64_C(50000000)

/* The waits of a row. */
static inline struct several outside_words(const struct outside_row *row)
{
    return several(row->spread.count, "wait", row->spread.sum_ns, row->longest.ns);
}

/* Returns how many wait there at the same time, on average while any does. */
static inline double outside_at_once(const struct outside_row *row)
{
    return share_of(row->spread.sum_ns, blame_union_ns(&row->at_least_one));
}

/* Whether several wait there at the same time. */
static inline bool outside_are_many(const struct outside_row *row)
{
    return outside_at_once(row) >= AT_ONCE;
}
