/*
 * ID map: from any 64-bit ID to a pointer. Open addressing with linear probing, at most half full,
 * and deletion by shifting back, so that a table through which millions of goroutines pass stays as
 * small as the number alive. IDs come from files: the hash is a multiplication, so that runs of IDs
 * spread well, and an adversary can only make it slower, never larger.
 */
#ifndef TRAIL_BASE_IDMAP_H
#define TRAIL_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap_slot {
    uint64_t id;
    void *value; /* NULL: the slot is free */
};

/* Zero-initialised is empty and ready. Not thread-safe. */
struct idmap {
    struct idmap_slot *slots;
    size_t mask;    /* number of slots - 1, a power of two less one */
    unsigned shift; /* 64 - log2(number of slots) */
    size_t count;
};

static inline size_t idmap_home(const struct idmap *map, uint64_t id)
{
    return (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> map->shift);
}

/* The value of `id`, or NULL. */
static inline void *idmap_find(const struct idmap *map, uint64_t id)
{
    if (map->count == 0)
        return NULL;
    size_t i = idmap_home(map, id);
    while (map->slots[i].value) {
        if (map->slots[i].id == id)
            return map->slots[i].value;
        i = (i + 1) & map->mask;
    }
    return NULL;
}

/* Sets the value of `id` (not NULL). False when memory is out. */
bool idmap_put(struct idmap *map, uint64_t id, void *value);

/* Removes `id` and returns its value, NULL if it was not there. */
void *idmap_remove(struct idmap *map, uint64_t id);

/* Removes all. Keeps the memory. */
void idmap_clear(struct idmap *map);

/* Gives the memory back; the values are the caller's. */
void idmap_free(struct idmap *map);

#endif
