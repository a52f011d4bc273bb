/*
 * Find: follows each goroutine through the steps of a pattern.
 *
 * Of several partial hits that are equally far, the one that began last is kept: whatever can
 * follow an older one can follow it too, and gives a shorter hit. The exception is a state that
 * began before its last step, which cannot follow it but may follow an older one. So two are kept
 * per step: one for the current state and one for later states. Memory: these two, for each live
 * goroutine.
 */
#pragma once

#include "analyze/pattern.h"
#include "base/objects.h"

struct trail_analysis;

/* The steps of a pattern found so far. Followed in memory by one trail_hit_step per step of the
 * pattern. */
struct partial {
    bool set;
    int64_t begin_ns, after_ns; /* begin of the first step; end of the last */
    uint64_t place;             /* of the last step */
    trail_hit_step steps[];
};

/*
 * A goroutine alive. Its states are numbered: states have even places, and events between them odd
 * ones.
 */
struct seeker {
    uint64_t place; /* of the current state */
    bool known;     /* the start of the current state is in the window */
    uint8_t state;  /* trail_go_state */
    int64_t begin_ns;
    int64_t free_from_ns; /* end of the last hit: hits do not overlap */
    trail_name name;      /* start function */
    trail_name reason;
    trail_stack stack;
    char *partials; /* two per step but the last; NULL: none is set */
};

struct find {
    struct trail_analysis *analysis;
    const trail_find_options *options;
    struct objects seekers; /* of goroutines: struct seeker */
    struct slab partial_slab;
    size_t partial_size; /* size of one, in bytes */
    uint8_t *verdicts;   /* per stack: two per choice (in, by): 0 unknown, 1 no, 2 yes */
    size_t verdict_count, verdict_capacity;
    trail_hit_step *hit;
    bool stopped; /* the caller wants no more hits */
};
