/*
 * Captures the calling thread's stack as an entry of the generation's table: by frame pointers,
 * libunwind, or the host.
 */
#pragma once

#include "tracer/section.h"

/*
 * Captures the stack of the host's code. Must be used in the function that the host called: the
 * return address of its frame is the leaf. Returns the entry, or NULL if skip < 0 or there is no
 * memory.
 */
#define stack_here(m, generation, skip)                                                            \
    (unlikely((skip) < 0) ? NULL                                                                   \
                          : stack_capture((m), (generation), (unsigned)(skip), stack_frame()))

const struct table_entry *stack_capture(trail_m *m, uint64_t generation, unsigned skip,
                                        uintptr_t frame);

/* Returns the entry for given PCs, leaf first; NULL if there is no memory. */
const struct table_entry *stack_put(uint64_t generation, const uintptr_t *pcs, size_t n);

static inline uint64_t stack_id(const struct table_entry *entry)
{
    return entry ? entry->id : 0;
}

/* Returns the table of a generation. */
static inline struct table *stack_table(uint64_t generation)
{
    return &tracer.stacks[tracer.v2 ? generation & 1 : 0];
}

/* Captures the stack of a thread that a signal interrupted, from its registers, for CPU samples. */
size_t stack_of_context(const trail_m *m, const void *context, uintptr_t *pcs, size_t max);

/* Selects a working unwinder, and may load libunwind for it. `frame`: of trail_start's caller. */
trail_unwinder stack_choose(trail_unwinder wanted, uintptr_t frame);

/*
 * Forgets the rules for code that may have been unloaded since the last call. Stacks of other code
 * at the same addresses are wrong until then, for one generation at most.
 */
void stack_forget_unloaded(void);

/*
 * Stores up to `max` PCs of the calling thread, starting at the caller of the function whose frame
 * is `frame`, without a table; returns their number. `m` may be NULL.
 */
size_t stack_list(const trail_m *m, uintptr_t frame, uintptr_t *pcs, size_t max);

/* Returns the bounds of the calling thread's stack. */
void stack_bounds(const void **low, const void **high);
