/*
 * What a goroutine is, for readers of a trace or generation without its creation: its start
 * function, and the name and kind that the host has given it.
 *
 *               start function                              name, kind
 *   v1          GoCreate of the snapshot (§2.7)             line (wire/goroutine.h), at the snapshot
 *   22          line, with the status of each generation    line, with the status of each generation
 *   23, 26      GoStatusStack of each generation (§7.4)     line, with the status of each generation
 */
#ifndef TRAIL_TRACER_IDENTITY_H
#define TRAIL_TRACER_IDENTITY_H

#include "tracer/event.h"

/*
 * In v1, that of a start function which is not known: the goroutine analysis of Go 1.19 and earlier
 * crashes if a goroutine has no stack when it starts.
 */
#define IDENTITY_UNKNOWN_PC ((uintptr_t)1)
#define IDENTITY_UNKNOWN    "(unknown)"

/* Returns the stack of a start function: one PC, as a return address (§2.7). v2: NULL if unknown. */
const struct table_entry *identity_stack(uint64_t generation, const trail_g *g);

/*
 * Returns the stack with which a waiting goroutine is shown: `waits`, which may be NULL, with the
 * start function as its outermost frame. Readers name a goroutine after the root of its first stack
 * (§9.1). If the stack is cut at the job's root, it begins with the start function already.
 */
const struct table_entry *identity_under(uint64_t generation, const trail_g *g,
                                         const struct table_entry *waits);

/*
 * Writes the goroutine's line, if it has one. `status`: with a GoStatus, which in format 22 has no
 * stack. `m` may be NULL.
 */
void identity_note(trail_m *m, uint64_t generation, const trail_g *g, bool status);

/* Called at a creation. The hot path of a goroutine without name. */
static inline void identity_created(trail_m *m, uint64_t generation, const trail_g *g)
{
    if (unlikely(__atomic_load_n(&g->named_, __ATOMIC_RELAXED)))
        identity_note(m, generation, g, false);
}

#endif
