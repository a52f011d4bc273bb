/*
 * Slab: objects of one size at addresses that never change, with a free list. For the states of
 * goroutines, Ps and Ms, which come and go while other objects point to them.
 */
#pragma once

#include "base/arena.h"

/* Set object_size (at least that of a pointer) and leave the rest zero. Not thread-safe. */
struct slab {
    size_t object_size;
    void *free_list; /* each free object's first word points to the next */
    struct arena arena;
};

/* Returns a zeroed object; NULL if out of memory. */
void *slab_get(struct slab *slab);

/* Returns `object` to the free list. */
void slab_put(struct slab *slab, void *object);

/* Frees all objects. */
void slab_free(struct slab *slab);
