/*
 * Describes goroutines to readers of a trace or generation that lacks their creation: the start
 * function, and the name and kind set by the host.
 *
 *               start function                              name, kind
 *   v1          GoCreate of the snapshot (§2.7)             line (wire/goroutine.h), at the snapshot
 *   22          line, with the status of each generation    line, with the status of each generation
 *   23, 26      GoStatusStack of each generation (§7.4)     line, with the status of each generation
 */
#pragma once

#include "tracer/event.h"

/*
 * v1: the PC of an unknown start function. The goroutine analysis of Go 1.19 and earlier crashes on
 * a goroutine that starts without a stack.
 */
#define IDENTITY_UNKNOWN_PC ((uintptr_t)1)
#define IDENTITY_UNKNOWN    "(unknown)"

/* Returns the stack of a start function, one return address (§2.7). v2: NULL if unknown. */
const struct table_entry *identity_stack(uint64_t generation, const trail_g *g);

/*
 * Returns the stack that is shown for a waiting goroutine: `waits`, which may be NULL, with the
 * start function as its outermost frame, because readers name a goroutine after the root of its
 * first stack (§9.1). A stack that was cut at the job's root already ends with it.
 */
const struct table_entry *identity_under(uint64_t generation, const trail_g *g,
                                         const struct table_entry *waits);

/*
 * Writes the goroutine's line, if it needs one. `status`: along with a GoStatus, which has no stack
 * in format 22. `m` may be NULL.
 */
void identity_note(trail_m *m, uint64_t generation, const trail_g *g, bool status);

/* Called on creation; the hot path for a goroutine without a name. */
static inline void identity_created(trail_m *m, uint64_t generation, const trail_g *g)
{
    if (unlikely(__atomic_load_n(&g->named_, __ATOMIC_RELAXED)))
        identity_note(m, generation, g, false);
}
