/* Plan: what changes mean for each class, lock, wait and region of the chains. */
#pragma once

#include "analyze/chains.h"
#include "replay/change.h"

struct plan {
    float *classes; /* factor of the running time, by class */
    float *locks;   /* factor of the time it is held, by lock */
    bool *free;     /* by lock: no thread waits for it */
    float *waits;   /* factor of delays, by wait; 0: none, as for waits for other threads */
    unsigned cpus;
    bool no_gc;
    trail_name regions[REPLAY_CHANGES]; /* regions with a different factor inside */
    float region_factors[REPLAY_CHANGES];
    size_t region_count;
    trail_name pool; /* start function whose number of threads is changed; 0: none */
    unsigned pool_size;
};

/* Returns false if out of memory; free it even then. */
bool plan_make(struct plan *plan, const struct chains *chains, const struct change *changes,
               size_t count);
void plan_free(struct plan *plan);

/*
 * Whether the change applies to anything. *certain: its times are recorded, not estimated from CPU
 * samples.
 */
bool plan_applies(const struct chains *chains, const struct change *change, bool *certain);

/* The start function of threads that is meant by `name`; 0: no thread has one. */
trail_name plan_thread_name(const struct chains *chains, const char *name);

/* Twice as many threads as have this start function; 0: too many for a pool, or the main thread. */
unsigned plan_twice_threads(const struct chains *chains, trail_name name);

/* The name of a wait: its object, else the function that waits, else its kind. */
trail_name plan_wait_name(const struct chains *chains, const struct chain_wait *wait);

/* The program's own function that waits; 0: unknown. */
trail_name plan_wait_function(const struct chains *chains, const struct chain_wait *wait);

/* Whether CHANGE_IO changes the waits of a function of that name. */
bool plan_is_waiting_function(const struct chains *chains, const char *name);
