/*
 * What readers are told of goroutines and Ps besides the events: that they exist, and in which state, once
 * in a generation, before anything else is said of them (§7.4).
 */
#ifndef TRAIL_TRACER_STATES_H
#define TRAIL_TRACER_STATES_H

#include "tracer/section.h"

/*
 * v2: ends generation `generation` for an M that wrote nothing in it: what it runs and holds is told in it
 * all the same, so that a recording that begins with that generation is complete. m->lock_ is held. Once;
 * after that it does nothing.
 */
void states_close(trail_m *m, uint64_t generation, struct trail_writer_ *writer);

/*
 * v2: the same while the last generation of a session is still on, in the M's own writer, which it does not
 * use before its first section: when the session is over, states are no longer those of the session.
 */
void states_tell_early(trail_m *m, uint64_t generation);

void states_lock(trail_m *m);
void states_unlock(trail_m *m);

/* v2: claims a goroutine that waits or is runnable, and that nobody touched in the generation. */
void states_claim(trail_g *g, uint64_t generation, struct trail_writer_ *writer);

/* v2: takes the stack of a goroutine that waits over into the tables of the next generation. */
void states_carry_stack(trail_g *g, uint64_t generation);

/* v2: what every generation has once (§7.7): the first thread that runs a goroutine tells it. */
void states_announce(trail_m *m, uint64_t generation);

#endif
