/*
 * Moments: the parts of a trace that are worth a picture - the worst case of each finding, the longest
 * waits - and what the goroutines did in them. Which these are is known after a first reading; in a
 * second one each goroutine that does something in a moment gets a lane: bins of time, with how long
 * it was in which state in each. So the memory does not depend on how much happens.
 */
#ifndef TRAIL_REPORT_MOMENTS_H
#define TRAIL_REPORT_MOMENTS_H

#include "report/looks.h"
#include "words/vocabulary.h"

enum { MOMENTS = 8, MOMENT_LANES = 400, MOMENT_SHOWN = 10, LANE_BINS = 360, MOMENT_WAKES = 64 };

/* One goroutine in a moment. */
struct lane {
    int64_t id;
    trail_name name;       /* of moments.looks.names */
    uint64_t wakes, woken; /* how often it woke the moment's goroutine, and was woken by it */
    double run_ns;         /* how long it ran */
    float ns[LANE_BINS][LOOKS];
};

/* The moment's goroutine was woken. */
struct moment_wake {
    int64_t ns, waker;
};

struct moment {
    char title[512];          /* of what it is the longest or worst */
    size_t finding;           /* index + 1; 0: of no finding */
    int64_t goroutine;        /* whose it is; TRAIL_NONE: of no one */
    int64_t begin_ns, end_ns; /* what is shown, */
    int64_t from_ns, to_ns;   /* with something around it */
    struct lane **lanes;      /* the most interesting first, once it is closed */
    size_t lane_count, lane_capacity;
    uint64_t left_out; /* changes of goroutines that got no lane */
    struct idmap by_id;
    struct moment_wake wakes[MOMENT_WAKES];
    size_t wake_count;
    bool closed;
};

/* moments_pick, moments_open, then feed. Zero-initialised is empty. */
struct moments {
    struct moment list[MOMENTS];
    size_t count, open;
    struct looks looks;
    bool no_memory;
};

/* Chooses them. */
void moments_pick(struct moments *moments, const trail_analysis *answers,
                  const struct vocabulary *words);

/* Returns 1 if more can matter, 0 if all moments are over, -1 when memory is out. */
void moments_open(struct moments *moments, const trail_reader *reader);
int moments_feed(struct moments *moments, const trail_event *events, long count);

/* The trace is over. */
void moments_finish(struct moments *moments);
void moments_free(struct moments *moments);

#endif
