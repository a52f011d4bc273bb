/* Plan: what changes mean for each class, lock, wait and region of the chains. */
#ifndef TRAIL_REPLAY_PLAN_H
#define TRAIL_REPLAY_PLAN_H

#include "analyze/chains.h"
#include "replay/change.h"

struct plan {
    float *classes; /* factor of the running time, by class */
    float *locks;   /* factor of the time in which it is held, by lock */
    bool *free;     /* by lock: it makes no thread wait */
    float *waits;   /* factor of delays, by wait; 0: none, for waits for other threads, too */
    unsigned cpus;
    bool no_gc;
    trail_name regions[REPLAY_CHANGES]; /* whose insides have another factor */
    float region_factors[REPLAY_CHANGES];
    size_t region_count;
};

/* Returns false on out of memory; free it then, too. */
bool plan_make(struct plan *plan, const struct chains *chains, const struct change *changes,
               size_t count);
void plan_free(struct plan *plan);

/*
 * Whether there is something that the change applies to. *certain: it is known when it happens, as
 * opposed to estimated from CPU samples.
 */
bool plan_applies(const struct chains *chains, const struct change *change, bool *certain);

/* The name of a wait: of its object, or of the function that waits; of its kind without either. */
trail_name plan_wait_name(const struct chains *chains, const struct chain_wait *wait);

#endif
