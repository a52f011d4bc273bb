/*
 * Objects: one for each ID, at an address that never changes. For what is known of goroutines, Ps,
 * locks and the like: they come and go, and other objects point to them.
 */
#pragma once

#include "base/idmap.h"
#include "base/slab.h"

/* Initialised by OBJECTS_OF. Not thread-safe. */
struct objects {
    struct idmap map; /* ID -> object; callers only read it: IDMAP_EACH, idmap_sorted */
    struct slab slab;
};

#define OBJECTS_OF(type)                                                                           \
    (struct objects)                                                                               \
    {                                                                                              \
        .slab.object_size = sizeof(type) < sizeof(void *) ? sizeof(void *) : sizeof(type)          \
    }

/* Returns the object of the ID, or NULL. */
static inline void *objects_find(const struct objects *objects, uint64_t id)
{
    return idmap_find(&objects->map, id);
}

/* Returns the object of the ID, a new one, zeroed, if there is none; NULL if out of memory. */
void *objects_get(struct objects *objects, uint64_t id);

/* Frees the object of the ID, if there is one. */
void objects_drop(struct objects *objects, uint64_t id);

/* Frees all objects, and keeps the memory. */
void objects_clear(struct objects *objects);

/* Frees the memory. */
void objects_free(struct objects *objects);
