/*
 * Activity: how many goroutines ran or were ready, and how many Ps were idle meanwhile, as sums and
 * in slices of time; why Ps were idle; conspicuous stretches; which P delayed a stop-the-world
 * pause.
 *
 * Slices double their length whenever there are too many, so memory is fixed and the end of the
 * trace need not be known.
 *
 * `serial_ns` and `queue_ns` are clocks: they advance only while at most one goroutine works, and
 * while work is ready and no P is idle. The difference of two readings is how much of the time
 * between them was of that kind.
 */
#pragma once

#include <trail/analyze.h>

#include "base/objects.h"

struct trail_analysis;

enum { ACTIVITY_SLICES = 128, ACTIVITY_PROCS = 1024 };

/* Which conspicuous stretch is under way; 0: none. */
enum stretch { STRETCH_NONE, STRETCH_LONE, STRETCH_QUEUE, STRETCHES };

/* Stretches of one kind that were long enough to count. */
struct stretch_sum {
    uint64_t count;
    int64_t ns;
    trail_longest longest;
};

/* Longer stretches in which one goroutine alone had work, of those with one start function. */
struct alone_sum {
    trail_name name;
    int64_t ns;
    uint64_t count, goroutines; /* goroutines: how often it was a different one than before */
    int64_t last;
    trail_longest longest;
};

/* The P that stopped last before a stop-the-world pause. */
struct late_stop {
    trail_name name; /* start function of the longest */
    uint64_t count;
    int64_t ns;            /* in all, from the requests to stop until that P stopped */
    trail_longest longest; /* of these */
    int64_t pause_ns;      /* length of that pause */
};

/* How a goroutine spent its time. */
struct task_spent {
    bool known;
    int64_t exec_ns, ready_ns, assist_ns; /* assists: also part of the other states */
};

struct task_kind {
    trail_task_kind row;       /* first: pointers to rows are pointers to it */
    struct task_spent slowest; /* of the slowest task, if it stayed on one goroutine */
    int64_t goroutine;         /* on which that ended */
};

struct activity {
    struct trail_analysis *analysis;
    trail_activity sums; /* complete but for what activity_finish computes */
    trail_activity_slice slices[ACTIVITY_SLICES];
    size_t slice; /* index of the current slice */
    int64_t slice_end_ns;
    int64_t last_ns;                          /* counted up to here */
    int64_t running, runnable, procs_running; /* current values */
    int64_t max_procs, most_running;
    int64_t lock_waiters;
    int64_t most_known; /* the most that may run, more are corrected: max_procs; -1 if `inferred` */
    bool inferred;      /* which goroutines run is not recorded now, but inferred */
    bool lost;          /* since the last Sync, a state became unknown */
    int64_t known_since_ns; /* the end of the last time with unknown states */
    uint64_t lone;          /* XOR of the IDs of all running goroutines: the ID, if one runs */
    int64_t serial_ns, queue_ns;
    int64_t unused_ns; /* time in which goroutines were ready while fewer ran than there are Ps */
    int64_t queue_at[ACTIVITY_PROCS]; /* queue_ns when the goroutine on the P began to run */
    enum stretch stretch;
    int64_t stretch_since_ns;
    struct stretch_sum stretches[STRETCHES];
    /* Stretches in which one goroutine alone was running or ready, by its start function. */
    bool alone;
    int64_t alone_since_ns;
    struct alone_sum *alone_sums;
    size_t alone_count, alone_capacity;
    bool stopping;
    int64_t stop_since_ns, stop_owner;
    int64_t stop_left_ns, stop_left_by;
    struct late_stop late;
    /* Kinds of tasks. */
    struct objects open_tasks; /* struct open_task */
    trail_task_kind **kinds;
    size_t kind_count, kind_capacity;
    struct idmap kind_by_name;
};
