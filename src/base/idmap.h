/*
 * ID map: from any 64-bit ID to a pointer. Open addressing with linear probing, at most half full,
 * and deletion by shifting back, so that the table stays as small as the number of live goroutines
 * while millions come and go.
 *
 * The hash is multiplication by `times`. The initial value spreads runs of IDs well and is the same
 * in every process. But IDs come from files and may be chosen to collide: when a run of used slots
 * gets too long, `times` is drawn at random, which makes the hash universal (Dietzfelbinger et al.,
 * "A reliable randomized algorithm for the closest-pair problem", 1997).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap_slot {
    uint64_t id;
    void *value; /* NULL: the slot is free */
};

/* Zero-initialized: empty and ready to use. Not thread-safe. */
struct idmap {
    struct idmap_slot *slots;
    size_t mask;    /* number of slots - 1; the number is a power of two */
    unsigned shift; /* 64 - log2(number of slots) */
    bool drawn;     /* `times` was drawn since the table last grew */
    uint64_t times; /* odd */
    size_t count;
};

static inline size_t idmap_home(const struct idmap *map, uint64_t id)
{
    return (size_t)((id * map->times) >> map->shift);
}

/* Returns the value of `id`, or NULL. */
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

/* Returns the entry after `slot`, the first one for NULL; NULL if there is none. */
static inline const struct idmap_slot *idmap_next(const struct idmap *map,
                                                  const struct idmap_slot *slot)
{
    const struct idmap_slot *end = map->slots ? map->slots + map->mask + 1 : NULL;
    slot = slot ? slot + 1 : map->slots;
    while (slot < end && !slot->value)
        slot++;
    return slot < end ? slot : NULL;
}

/*
 * Returns a copy of all entries sorted by ID, which the caller frees; NULL: out of memory. For
 * loops whose order reaches an output: the order of IDMAP_EACH depends on the hash, which may be
 * random.
 */
struct idmap_slot *idmap_sorted(const struct idmap *map);

/* Loops over all entries, in no useful order: the body must not change the map. */
#define IDMAP_EACH(slot, map)                                                                      \
    for (const struct idmap_slot *slot = NULL; (slot = idmap_next(map, slot)) != NULL;)

/*
 * The same over the values, which are `type *`. A loop has declarations of one type: `item##_slot`
 * is declared as a value, but points to a slot, and is never read as anything else.
 */
#define IDMAP_VALUES(type, item, map)                                                              \
    for (type * item, *item##_slot = NULL;                                                         \
         (item##_slot = idmap_after(map, item##_slot)) != NULL &&                                  \
         (item = idmap_value(item##_slot)) != NULL;)

static inline void *idmap_after(const struct idmap *map, const void *slot)
{
    return (void *)(uintptr_t)idmap_next(map, slot);
}

static inline void *idmap_value(const void *slot)
{
    return ((const struct idmap_slot *)slot)->value;
}

/* Sets `id` to a value other than NULL. Returns false if out of memory. */
bool idmap_put(struct idmap *map, uint64_t id, void *value);

/* Removes `id` and returns its value; NULL if it is not in the map. */
void *idmap_remove(struct idmap *map, uint64_t id);

/* Removes all entries and keeps the memory. */
void idmap_clear(struct idmap *map);

/* Frees the map's memory; the values belong to the caller. */
void idmap_free(struct idmap *map);

/* The same, and free(3) for each value. */
void idmap_free_values(struct idmap *map);
