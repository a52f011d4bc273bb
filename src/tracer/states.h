/* The status of goroutines and Ps, once per generation and before their other events (§7.4). */
#pragma once

#include "tracer/section.h"

/* Ends a stop of the world by a goroutine that ends (gc.c). */
void stw_abandon(trail_m *m, uint64_t generation);

/* The same if the thread's goroutine has stopped it. */
static inline void stw_end_with(trail_m *m, uint64_t generation)
{
    uint64_t stopper = __atomic_load_n(&tracer.stopper, __ATOMIC_RELAXED);
    if (unlikely(stopper && stopper == m->g->id))
        stw_abandon(m, generation);
}

/* Writes that the thread's goroutine, which is in a system call, ends; releases its P (proc.c). */
bool states_destroy_in_syscall(trail_m *m, uint64_t generation);
/* v2: the same for a thread that holds a P that it took during the call, and keeps it. */
void states_destroy_beside_proc(trail_m *m, uint64_t generation);

/*
 * v2: ends `generation` for an M that wrote nothing in it: writes the status of what it runs and
 * holds, so that a recording that begins with that generation is complete. Does so once. m->lock_
 * is held.
 */
void states_close(trail_m *m, uint64_t generation, struct trail_writer_ *writer);

/*
 * v2: the same while the last generation of a session is still on, because states may change after
 * the session. Uses the M's own writer, which the M does not use before its first section. m->lock_
 * is held.
 */
void states_write_early(trail_m *m, uint64_t generation);

void states_lock(trail_m *m);
void states_unlock(trail_m *m);

/* v2: claims a waiting or runnable goroutine without an event, and writes its status. */
void states_claim(trail_g *g, uint64_t generation, struct trail_writer_ *writer);

/*
 * v2: writes the status of an idle P unless the generation has the status of any P, or will have it
 * when an M is closed: Go 1.22 and 1.23 reject a generation without one. Called before the next
 * generation begins. ps_lock is held.
 */
void states_claim_proc(uint64_t generation, struct trail_writer_ *writer);

/*
 * Whether readers of this session see `g`, which waits, as runnable: it was created waiting in a
 * format that cannot show that. Its first unblock then has no event.
 */
static inline bool is_shown(const trail_g *g, unsigned how)
{
    return unlikely(__atomic_load_n(&g->shown_, __ATOMIC_RELAXED) == how) &&
           /* Pairs with the exchange in claim, before which an older session's value is cleared. */
           state_in_session(__atomic_load_n(&g->state_, __ATOMIC_ACQUIRE)) &&
           (state_load(&g->state_) & STATE_MASK) == TRAIL_G_WAITING_;
}

static inline void set_shown(trail_g *g, unsigned how)
{
    __atomic_store_n(&g->shown_, (uint8_t)how, __ATOMIC_RELAXED);
}

/* v2: copies the stack of a waiting goroutine to the tables of the next generation. */
void states_carry_stack(trail_g *g, uint64_t generation);

/* v2: writes what every generation has once (§7.7), from the first thread that runs a goroutine. */
void states_announce(trail_m *m, uint64_t generation);
