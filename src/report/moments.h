/*
 * Moments: the parts of a trace to draw, with what goroutines did in them: the worst case of each
 * finding, and the longest waits. They are chosen after a first pass over the trace; in a second
 * pass each goroutine that is active in a moment gets a lane: bins of time with the time in each
 * state. Memory does therefore not depend on the number of events.
 */
#pragma once

#include "report/drawn.h"
#include "words/vocabulary.h"

enum { MOMENTS = 8, MOMENT_LANES = 200, MOMENT_SHOWN = 10, LANE_BINS = 360, MOMENT_WAKES = 64 };

/* The states of a lane: the drawn ones, with waits split by class. */
enum { LANE_STATES = DRAWN_WAITING + WAIT_CLASSES, LANE_LABELS = 12 };

/* A wait long enough for its name to be written on it; never a wait for work. */
struct lane_label {
    int64_t from_ns, to_ns;
    trail_name wait; /* in moments.drawn.names */
};

/* One goroutine in a moment. */
struct lane {
    int64_t id;
    trail_name name;       /* in moments.drawn.names */
    uint64_t wakes, woken; /* number of wake-ups of the moment's goroutine, and by it */
    double run_ns;         /* running time */
    int64_t shared_ns; /* how long it waited for the lock for which the moment's goroutine did */
    bool is_aside;     /* of Go's runtime, hardly ran, and had nothing to do with the goroutine */
    float ns[LANE_BINS][LANE_STATES];
    struct lane_label labels[LANE_LABELS];
    size_t label_count;
};

/* A wake-up of the moment's goroutine. */
struct moment_wake {
    int64_t ns, waker;
};

struct moment {
    char title[512];          /* what this is the worst case of */
    size_t finding;           /* index + 1; 0: none */
    int64_t goroutine;        /* TRAIL_NONE: no particular one */
    int64_t ended_by;         /* the last to wake it within the case; TRAIL_NONE: none */
    int64_t begin_ns, end_ns; /* the case itself */
    int64_t from_ns, to_ns;   /* the drawn range, with a margin */
    int64_t label_ns;         /* shorter waits have no room for a name */
    struct lane **lanes;      /* once closed, the most relevant first */
    size_t lane_count, lane_capacity;
    uint64_t left_out; /* changes of goroutines that got no lane */
    struct idmap by_id;
    struct moment_wake wakes[MOMENT_WAKES];
    size_t wake_count;
    bool closed;
};

/* Call moments_pick, moments_open, then moments_feed. Zero-initialised: empty. */
struct moments {
    struct moment list[MOMENTS];
    size_t count, open;
    struct drawn_states drawn;
    bool no_memory;
};

/* Chooses the moments. */
void moments_pick(struct moments *moments, const trail_analysis *answers,
                  const struct vocabulary *words);

/* Returns the moment whose picture shows a case: another of its goroutine at that time, about as
 * long. NULL: none. */
const struct moment *moments_showing(const struct moments *moments, int64_t goroutine,
                                     int64_t begin_ns, int64_t end_ns);

/* Return 1 if more events can matter, 0 if all moments are over, -1 if out of memory. */
void moments_open(struct moments *moments, const trail_reader *reader);
int moments_feed(struct moments *moments, const trail_event *events, long count);

/* Called at the end of the trace. */
void moments_finish(struct moments *moments);
void moments_free(struct moments *moments);
