/*
 * Utilisation: which share of the Ps was left to the program, as a function of time, or whether each
 * P was (§9.3). A series is a list of points at which the share changes.
 *
 * Go counts a background worker twice: when its label comes, it is already known to run, and its
 * mark is never taken away. So after a few cycles each P seems to be the collector's for good, and
 * because a series that ends with 0 has ended where that came, Go's figures are then of the first
 * cycles only. Corrected, a worker counts once, as long as it runs, and no longer than until it
 * waits; and a series goes on to the end.
 */
#ifndef TRAIL_ANALYZE_UTILISATION_H
#define TRAIL_ANALYZE_UTILISATION_H

#include <trail/analyze.h>

#include "base/idmap.h"

struct analysis_part;

struct util_point {
    int64_t time_ns;
    double util;
};

struct util_series {
    struct util_point *points;
    size_t count, capacity;
};

/* How many Ps there were from a time on. */
struct util_procs {
    int64_t time_ns;
    size_t count;
};

struct util_proc {
    int64_t gc; /* reasons why it is the collector's */
    size_t series;
};

/* Set `flags` and leave the rest zero. */
struct utilisation {
    unsigned flags;
    struct util_series *series;
    size_t series_count, series_capacity;
    struct util_proc *procs;
    size_t proc_count, proc_capacity;
    struct util_procs *history;
    size_t history_count, history_capacity;
    struct idmap marks; /* goroutine -> util_mark, as a pointer */
    int64_t stw;
    bool past_first; /* generation */
};

/* The two curves of an analysis; one without flags is not asked for. */
struct utilisations {
    const trail_reader *reader;
    struct utilisation curves[2];
};

extern const struct analysis_part utilisation_part;

/* MARK: Windows (utilisation_windows.c) */

/* The least share that any window of this length has, over all series. */
double utilisation_least(const struct utilisation *utilisation, int64_t window_ns);

/* The worst windows that do not overlap, at most `most`, the worst first. */
size_t utilisation_worst(const struct utilisation *utilisation, int64_t window_ns,
                         trail_mmu_window *worst, size_t most);

/*
 * The share that so many of all windows of this length do not fall below, over all series: for 1 the
 * least, for 0.5 the median. Within 1e-8.
 */
double utilisation_quantile(const struct utilisation *utilisation, int64_t window_ns,
                            double quantile);

#endif
