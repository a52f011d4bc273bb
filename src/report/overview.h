/*
 * Overview: what `trail summary` and `trail report` both tell and no analysis has as such: sums over
 * all groups of goroutines, waits across them, sums over garbage collections.
 */
#ifndef TRAIL_REPORT_OVERVIEW_H
#define TRAIL_REPORT_OVERVIEW_H

#include <trail/analyze.h>

/* A share of all goroutines' time: a reason of waiting, or a range. */
struct overview_part {
    trail_string name;
    int64_t ns;
};

/*
 * Where all goroutines' time went, corrected for system calls that are open; and in *parts (to be
 * freed) the reasons why they were blocked, or with `ranges` these, the longest first.
 */
trail_times overview_times(const trail_analysis *answers, bool ranges, struct overview_part **parts,
                           size_t *count);

/* Waits of one group for one reason. */
struct overview_wait {
    const trail_wait_group *group;
    const trail_wait *wait;
    bool system; /* a goroutine of the runtime: its waits are behind all others */
    bool idle;   /* most of it is waiting for work, which is behind what can be mended */
};

/* By sum, the greatest first, waits for work among the others only with `idle`; to be freed. NULL: memory is out. */
struct overview_wait *overview_waits(const trail_analysis *answers, bool idle, size_t *count);

enum { OVERVIEW_SIZE = 400 };

/*
 * The largest figures, for where there is no finding: "most waited for: sync (1.20 s); longest wait: 200 ms; GC: 3 %".
 * Into `buf` of OVERVIEW_SIZE, which is returned.
 */
const char *overview_largest(const trail_analysis *answers, char *buf);

/* The group of goroutines with that start function; NULL: there is none. */
const trail_group *overview_group(const trail_analysis *answers, trail_name name);

static inline int64_t pause_length(const trail_gc_pause *pause)
{
    return pause->end_ns - pause->begin_ns;
}

/* The longest stop of the world, and the sum of all; NULL: there is none. */
const trail_gc_pause *overview_pauses(const trail_analysis *answers, size_t *count,
                                      int64_t *sum_ns);

/* How long collections marked, as far as it is in what was analysed. */
int64_t overview_marking(const trail_analysis *answers);

#endif
