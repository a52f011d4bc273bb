/*
 * Overview: figures that both `trail summary` and `trail report` compute from several answers: sums
 * over all groups of goroutines, waits across them, sums over garbage collections.
 */
#pragma once

#include <stdbool.h>
#include <trail/analyze.h>

#include "words/vocabulary.h"

/* A share of all goroutines' time: a reason for waiting, or a range. */
struct overview_part {
    trail_string name;
    trail_name of; /* its name: trail_analysis_wait_for */
    int64_t ns;
};

/*
 * Returns where the time of all goroutines went, corrected for open system calls. Sets *parts (the
 * caller frees it) to the reasons of waits or, with `ranges`, to the ranges, longest first.
 */
trail_times overview_times(const trail_analysis *answers, bool ranges, struct overview_part **parts,
                           size_t *count);

/* Waits of one group for one reason. */
struct overview_wait {
    const trail_wait_group *group;
    const trail_wait *wait;
    bool system; /* a goroutine of the runtime; sorted after all others */
    bool idle;   /* mostly waits for work; sorted after waits that can be improved */
};

/* Returns waits by sum, largest first; the caller frees the result. With `idle`, waits for work are
 * sorted among the others. NULL if out of memory. */
struct overview_wait *overview_waits(const trail_analysis *answers, bool idle, size_t *count);

/* Returns "about ", or "" if quantiles of the histogram are exact. */
const char *overview_about(const trail_histogram *spread);

enum { OVERVIEW_SIZE = 400 };

/*
 * Writes the largest figures of a trace without findings into `buf` of OVERVIEW_SIZE, and returns
 * it: "most waited for: sync (1.20 s, the longest at main.work (main.go:7)); longest wait: 200 ms;
 * GC: 3 % of the time", without GC if there was none. `words` names the reason.
 */
const char *overview_largest(const trail_analysis *answers, const struct vocabulary *words,
                             char *buf);

/* The sentence for a trace without findings, without its full stop. */
static inline const char *overview_nothing(const trail_activity *activity)
{
    return activity->lost_ns > 0 ? "No known problem found where states are known"
                                 : "No known problem found";
}

/* Returns the name under which the waits of goroutines with this name are added up (names_kind). */
trail_name overview_kind(const trail_analysis *answers, trail_name name);

/* How many goroutines there are of such a kind, and for how long they ran. */
struct overview_group {
    uint64_t count;
    int64_t exec_ns;
};
struct overview_group overview_group(const trail_analysis *answers, trail_name kind);

/* Whether what CPU slots lacked is left out, because most of it would be inferred. */
static inline bool overview_lacks_switches(const trail_activity *activity, int64_t length_ns)
{
    return activity->inferred_ns > length_ns / 2;
}

static inline int64_t pause_length(const trail_gc_pause *pause)
{
    return pause->end_ns - pause->begin_ns;
}

/* Returns the longest stop-the-world pause, or NULL, and the sum of all. */
const trail_gc_pause *overview_pauses(const trail_analysis *answers, size_t *count,
                                      int64_t *sum_ns);

/* Sets when a cycle was marking within the analysed window. Returns false if that is unknown. */
bool overview_marked(const trail_analysis_span *span, const trail_gc_cycle *cycle,
                     int64_t *begin_ns, int64_t *end_ns);

/* Returns the total time of mark phases within the analysed window. */
int64_t overview_marking(const trail_analysis *answers);

/*
 * Notes that memory ran out, so that an answer of these functions, of the tiles or of the report is
 * incomplete.
 */
void overview_lacks(void);
bool overview_is_whole(void);
