/*
 * Finding: follows each goroutine through the steps of a pattern.
 *
 * Of those that have come equally far, the one that began last is kept, for whatever goes on with
 * an older one goes on with it too, and is shorter. Only a state that began before its last step
 * cannot follow it, but may follow an older one: so two are kept at each step, for the state that
 * is on and for those that come. Memory is that, for goroutines alive.
 */
#ifndef TRAIL_ANALYZE_FIND_H
#define TRAIL_ANALYZE_FIND_H

#include "analyze/pattern.h"
#include "base/idmap.h"
#include "base/slab.h"

struct analysis_part;
struct trail_analysis;

/* Some steps of a pattern, found. Followed by so many trail_hit_step as the pattern has steps. */
struct partial {
    bool set;
    int64_t begin_ns, after_ns; /* of the first step; the end of the last */
    uint64_t place;             /* of the last */
    trail_hit_step steps[];
};

/*
 * A goroutine alive. The states that it is in are numbered: they are at even places, and what
 * happens between them at the odd ones.
 */
struct seeker {
    uint64_t place; /* of the state that is on */
    bool known;     /* its beginning is in the window */
    uint8_t state;  /* trail_go_state */
    int64_t begin_ns;
    int64_t free_from_ns; /* hits do not overlap: the last one ended here */
    trail_name name;      /* start function */
    trail_name reason;
    trail_stack stack;
    char *partials; /* two for each step but the last; NULL: none is set */
};

struct find {
    struct trail_analysis *analysis;
    const trail_find_options *options;
    struct idmap seekers; /* goroutine -> struct seeker */
    struct slab seeker_slab, partial_slab;
    size_t partial_size; /* of one */
    uint8_t *verdicts;   /* of each stack: two for each choice (in, by): 0 not known, 1 no, 2 yes */
    size_t verdict_count, verdict_capacity;
    trail_hit_step *hit;
    bool stopped; /* no more hits are wanted */
};

extern const struct analysis_part find_part;

#endif
