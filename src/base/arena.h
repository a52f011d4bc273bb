/*
 * Arena: memory that lives exactly as long as its owner (a reader, a generation) and is freed as a
 * whole. Blocks double in size, so that a large owner needs few of them. A reset keeps the newest,
 * largest block for the next generation.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_block;

/* Zero-initialized: empty and ready to use. Not thread-safe. */
struct arena {
    struct arena_block *newest;
    size_t used; /* bytes allocated from the newest block */
};

/* Returns `size` bytes aligned for any object, not zeroed; NULL if out of memory. */
void *arena_alloc(struct arena *arena, size_t size);

/* Returns a copy of `size` bytes followed by a NUL; NULL if out of memory. */
char *arena_copy(struct arena *arena, const void *data, size_t size);

/* Frees all allocations, and keeps the newest block. */
void arena_reset(struct arena *arena);

/* Frees all memory; the arena is empty and ready to use again. */
void arena_free(struct arena *arena);
