/* Arena: blocks that double in size. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_FIRST        ((size_t)4096)
#define ARENA_LARGEST_STEP ((size_t)1 << 20)

struct arena_block {
    struct arena_block *older;
    size_t size; /* of data */
    alignas(max_align_t) unsigned char data[];
};

static struct arena_block *arena_grow(struct arena *arena, size_t size)
{
    size_t step = arena->newest ? arena->newest->size * 2 : ARENA_FIRST;
    if (step > ARENA_LARGEST_STEP)
        step = ARENA_LARGEST_STEP;
    if (step < size)
        step = size;
    if (step > SIZE_MAX - sizeof(struct arena_block))
        return NULL;
    struct arena_block *block = malloc(sizeof *block + step);
    if (!block)
        return NULL;
    block->older = arena->newest;
    block->size = step;
    arena->newest = block;
    arena->used = 0;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align)
        return NULL;
    size = (size + align - 1) & ~(align - 1);
    struct arena_block *block = arena->newest;
    if (!block || block->size - arena->used < size) {
        block = arena_grow(arena, size);
        if (!block)
            return NULL;
    }
    void *at = block->data + arena->used;
    arena->used += size;
    return at;
}

char *arena_copy(struct arena *arena, const void *data, size_t size)
{
    char *copy = size < SIZE_MAX ? arena_alloc(arena, size + 1) : NULL;
    if (!copy)
        return NULL;
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

static void free_blocks(struct arena_block *block)
{
    while (block) {
        struct arena_block *older = block->older;
        free(block);
        block = older;
    }
}

void arena_reset(struct arena *arena)
{
    if (!arena->newest)
        return;
    free_blocks(arena->newest->older);
    arena->newest->older = NULL;
    arena->used = 0;
}

void arena_free(struct arena *arena)
{
    free_blocks(arena->newest);
    arena->newest = NULL;
    arena->used = 0;
}
