/*
 * The stack of the calling thread as an entry of the generation's table: by frame pointers, by libunwind,
 * or by the host.
 */
#ifndef TRAIL_TRACER_STACK_H
#define TRAIL_TRACER_STACK_H

#include "tracer/section.h"

/* Where the layout of frames is known, `frame` is the address of one; elsewhere its return address. */
#if defined(__x86_64__) || defined(__aarch64__)
#define STACK_HAS_FRAMES 1
#define stack_frame()    ((uintptr_t)__builtin_frame_address(0))
#else
#define STACK_HAS_FRAMES 0
#define stack_frame()    ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))
#endif

/*
 * The caller must be the function that the host's code called: its frame's return address is the leaf.
 * The entry, or NULL: no stack (skip < 0), or no memory.
 */
#define stack_here(m, generation, skip)                                                            \
    (unlikely((skip) < 0) ? NULL                                                                   \
                          : stack_capture((m), (generation), (unsigned)(skip), stack_frame()))

const struct table_entry *stack_capture(trail_m *m, uint64_t generation, unsigned skip,
                                        uintptr_t frame);

/* The entry of given PCs, leaf first. */
const struct table_entry *stack_put(uint64_t generation, const uintptr_t *pcs, size_t n);

static inline uint64_t stack_id(const struct table_entry *entry)
{
    return entry ? entry->id : 0;
}

/* The table of a generation. */
static inline struct table *stack_table(uint64_t generation)
{
    return &tracer.stacks[tracer.v2 ? generation & 1 : 0];
}

/* PCs of a thread that a signal interrupted, for CPU samples: from its registers. */
size_t stack_of_context(const trail_m *m, const void *context, uintptr_t *pcs, size_t max);

/* Which of the ways works here; `frame` is that of the caller of trail_start. Loads libunwind. */
trail_unwinder stack_choose(trail_unwinder wanted, uintptr_t frame);

/* The bounds of the calling thread's stack. */
void stack_bounds(const void **low, const void **high);

#endif
