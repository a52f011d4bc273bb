/*
 * Utilisation: the share of the Ps that was left to the program over time, or whether each P was
 * left to it (§9.3). A series is a list of points at which the share changes.
 *
 * Go counts a background worker twice: when its label comes, it is already known to run, and its
 * mark is never removed. After a few cycles each P counts as permanently taken by the collector;
 * and because a series that ends with 0 ends where that 0 came, Go's figures then cover the first
 * cycles only. Corrected, a worker counts once, while it runs and at most until it waits, and a
 * series continues to the end.
 */
#pragma once

#include <trail/analyze.h>

#include "base/idmap.h"

struct util_point {
    int64_t time_ns;
    double util;
};

struct util_series {
    struct util_point *points;
    size_t count, capacity;
};

/* The number of Ps from a time on. */
struct util_procs {
    int64_t time_ns;
    size_t count;
};

struct util_proc {
    int64_t gc; /* number of reasons why the collector has it */
    size_t series;
};

/* Set `flags`; zero-initialise the rest. */
struct utilisation {
    unsigned flags;
    struct util_series *series;
    size_t series_count, series_capacity;
    struct util_proc *procs;
    size_t proc_count, proc_capacity;
    size_t taken; /* Ps that the collector has */
    struct util_procs *history;
    size_t history_count, history_capacity;
    struct idmap marks; /* goroutine -> util_mark, as a pointer */
    int64_t stw;
    bool past_first; /* generation */
};

/* The two curves of an analysis; one without flags was not requested. */
struct utilisations {
    const trail_reader *reader;
    struct utilisation curves[2];
};

/* MARK: Windows (utilisation_windows.c) */

/* Returns the smallest share in any window of this length, over all series. */
double utilisation_least(const struct utilisation *utilisation, int64_t window_ns);

/* Sets the worst windows without overlap, at most `most`, worst first. */
size_t utilisation_worst(const struct utilisation *utilisation, int64_t window_ns,
                         trail_mmu_window *worst, size_t most);

/*
 * Returns the share that at least `share` of all windows of this length reach, over all series: for
 * 1 the smallest, for 0.5 the median. Exact to 1e-8.
 */
double utilisation_quantile(const struct utilisation *utilisation, int64_t window_ns,
                            double quantile);
