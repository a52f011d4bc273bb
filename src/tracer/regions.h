/*
 * Regions belong to the goroutine in which they began. A scope (TRAIL_REGION, trail::region) may
 * end while its goroutine waits, or on a thread that no longer runs it because the goroutine
 * continued on another. Such an end is kept until the goroutine runs and the region is its
 * innermost one, because readers accept it only there (§6.5).
 */
#pragma once

#include "tracer/section.h"

/* Number of ends that are kept; atomic. */
extern uint32_t regions_kept;

/* Forgets ends kept in earlier sessions. */
void regions_reset(void);
void regions_after_fork(void);

void regions_write_kept(trail_m *m, uint64_t generation);

/* Writes the kept ends of the goroutine that the thread runs. */
static inline void regions_settle(trail_m *m, uint64_t generation)
{
    if (unlikely(__atomic_load_n(&regions_kept, __ATOMIC_RELAXED)))
        regions_write_kept(m, generation);
}

void regions_forget(trail_g *g);

/* Called when the goroutine ends: its open regions end with it, even if their scopes end later. */
static inline void regions_end(trail_g *g)
{
    if (unlikely(g->regions_session_ == tracer.first_generation && g->region_count_))
        regions_forget(g);
}
