/*
 * Activity: how many goroutines ran and could have run, and how many Ps were idle meanwhile, as
 * sums over the time and in slices of it; what an idle P lacked; stretches of idleness that look
 * wrong; who was late for a stop of the world.
 *
 * Slices double their length whenever there are too many, so that the memory is fixed and the end
 * need not be known.
 *
 * `serial_ns` and `queue_ns` are clocks: they run only while at most one goroutine works, and while
 * work waits and no P is idle. Whoever wants to know how much of his time was such reads them twice.
 */
#ifndef TRAIL_ANALYZE_ACTIVITY_H
#define TRAIL_ANALYZE_ACTIVITY_H

#include <trail/analyze.h>

#include "base/idmap.h"
#include "base/slab.h"

struct analysis_part;
struct trail_analysis;

enum { ACTIVITY_SLICES = 128, ACTIVITY_PROCS = 1024 };

/* What is odd now; 0 is nothing. */
enum stretch { STRETCH_NONE, STRETCH_LONE, STRETCH_QUEUE, STRETCHES };

/* Stretches of one kind that were long enough. */
struct stretch_sum {
    uint64_t count;
    int64_t ns;
    trail_longest longest;
};

/* Who left a P last while the world was being stopped. */
struct late_stop {
    uint64_t count;
    trail_longest longest; /* from the wish to stop until that one stopped */
    int64_t pause_ns;      /* the whole of that pause */
};

struct activity {
    struct trail_analysis *analysis;
    trail_activity sums; /* but for what the end makes */
    trail_activity_slice slices[ACTIVITY_SLICES];
    size_t slice; /* the present one */
    int64_t slice_end_ns;
    int64_t last_ns;                          /* up to here it is counted */
    int64_t running, runnable, procs_running; /* now */
    int64_t max_procs, most_running;
    int64_t lock_waiters;
    uint64_t lone; /* IDs of all that run, exclusively ored: if one runs, it is that one */
    int64_t serial_ns, queue_ns;
    int64_t queue_at[ACTIVITY_PROCS]; /* queue_ns when the P's goroutine began to run */
    enum stretch stretch;
    int64_t stretch_since_ns;
    struct stretch_sum stretches[STRETCHES];
    bool stopping;
    int64_t stop_since_ns, stop_owner;
    int64_t stop_left_ns, stop_left_by;
    struct late_stop late;
    /* Kinds of tasks. */
    struct idmap open_tasks; /* -> struct open_task */
    struct slab task_slab;
    trail_task_kind **kinds;
    size_t kind_count, kind_capacity;
    struct idmap kind_by_name;
};

extern const struct analysis_part activity_part;

#endif
