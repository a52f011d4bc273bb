/*
 * Tasks and regions that last longer than a limit (trail_flight_on_slow). While there is a limit,
 * the start of each that it applies to is kept in a table without locks; a thread of its own writes
 * the snapshots, so that a thread of the host never does.
 */
#pragma once

#include "tracer/section.h"

/* Whether there is a limit; atomic. */
extern uint32_t slow_on;

/* The depth of a region that is not nested is 1. Regions nested deeper than SLOW_DEEPEST are not
 * timed. */
enum { SLOW_TASK_DEPTH, SLOW_DEEPEST = 63 };

void slow_keep(uint64_t id, uint32_t depth, const char *name);
void slow_check(uint64_t id, uint32_t depth);

/* A task (its ID, SLOW_TASK_DEPTH) or a region (its goroutine, its depth) begins. */
static inline void slow_begin(uint64_t id, uint32_t depth, const char *name)
{
    if (unlikely(__atomic_load_n(&slow_on, __ATOMIC_RELAXED)))
        slow_keep(id, depth, name);
}

static inline void slow_end(uint64_t id, uint32_t depth)
{
    if (unlikely(__atomic_load_n(&slow_on, __ATOMIC_RELAXED)))
        slow_check(id, depth);
}

/* Removes the limit, after a snapshot in progress. No lock is held. */
void slow_stop(void);

void slow_after_fork(void);
