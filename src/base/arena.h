/*
 * Arena: memory that lives exactly as long as its owner (a reader, a generation) and is dropped
 * whole. Blocks double in size, so that a big owner needs few of them; reset keeps the newest,
 * largest block, so that generation after generation runs in the same memory.
 */
#ifndef TRAIL_BASE_ARENA_H
#define TRAIL_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena_block;

/* Zero-initialised is empty and ready. Not thread-safe. */
struct arena {
    struct arena_block *newest;
    size_t used; /* bytes of the newest block that are handed out */
};

/* Returns `size` bytes aligned for any object, not zeroed; NULL when memory is out. */
void *arena_alloc(struct arena *arena, size_t size);

/* A copy of `size` bytes followed by a NUL; NULL when memory is out. */
char *arena_copy(struct arena *arena, const void *data, size_t size);

/* Takes back all that was handed out. */
void arena_reset(struct arena *arena);

/* Gives all memory back to the system; the arena is empty and ready again. */
void arena_free(struct arena *arena);

#endif
