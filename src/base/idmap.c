/* ID map: insertion, and deletion by shifting entries back. */
#include "base/idmap.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/order.h"

#define IDMAP_FIRST_LOG2 4

/*
 * Runs of hashed IDs in a half-full table are longer than n slots with a probability of about
 * exp(-0.19 n) each: 5 in a million, unless the IDs were chosen. With chosen IDs a look-up takes
 * half a run, which still fits in few cache lines.
 */
#define LONGEST_RUN 64

static size_t insert_new(struct idmap *map, uint64_t id, void *value)
{
    size_t i = idmap_home(map, id);
    while (map->slots[i].value)
        i = (i + 1) & map->mask;
    map->slots[i] = (struct idmap_slot){.id = id, .value = value};
    return i;
}

/* Moves all entries to `1 << log2` new slots. */
static bool rehash(struct idmap *map, unsigned log2, uint64_t times, bool drawn)
{
    size_t slots = (size_t)1 << log2;
    struct idmap other = {
        .slots = calloc(slots, sizeof *other.slots),
        .mask = slots - 1,
        .shift = 64 - log2,
        .drawn = drawn,
        .times = times,
        .count = map->count,
    };
    if (!other.slots)
        return false;
    for (size_t i = 0; map->slots && i <= map->mask; i++)
        if (map->slots[i].value)
            (void)insert_new(&other, map->slots[i].id, map->slots[i].value);
    free(map->slots);
    *map = other;
    return true;
}

static bool grow(struct idmap *map)
{
    if (!map->slots)
        return rehash(map, IDMAP_FIRST_LOG2, HASH_TIMES, false);
    return rehash(map, 64 - map->shift + 1, map->times, false);
}

/* Returns the number of used slots around slot `i`, or LONGEST_RUN + 1 if there are more. */
static size_t run_around(const struct idmap *map, size_t i)
{
    size_t length = 1;
    for (size_t k = i; length <= LONGEST_RUN && map->slots[k = (k + 1) & map->mask].value;)
        length++;
    for (size_t k = i; length <= LONGEST_RUN && map->slots[k = (k - 1) & map->mask].value;)
        length++;
    return length;
}

/* If there is no memory for other slots the map is only slower. */
static void shorten_run(struct idmap *map)
{
    (void)rehash(map, 64 - map->shift, hash_random() | 1, true);
}

bool idmap_put(struct idmap *map, uint64_t id, void *value)
{
    if (map->slots) {
        size_t i = idmap_home(map, id);
        for (; map->slots[i].value; i = (i + 1) & map->mask) {
            if (map->slots[i].id == id) {
                map->slots[i].value = value;
                return true;
            }
        }
    }
    if ((!map->slots || map->count * 2 > map->mask) && !grow(map))
        return false;
    size_t slot = insert_new(map, id, value);
    map->count++;
    if (!map->drawn && run_around(map, slot) > LONGEST_RUN)
        shorten_run(map);
    return true;
}

void *idmap_remove(struct idmap *map, uint64_t id)
{
    if (map->count == 0)
        return NULL;
    size_t hole = idmap_home(map, id);
    while (map->slots[hole].value && map->slots[hole].id != id)
        hole = (hole + 1) & map->mask;
    void *value = map->slots[hole].value;
    if (!value)
        return NULL;
    /* Closes the hole: moves back every later entry of the run whose home is not after it. */
    for (size_t i = (hole + 1) & map->mask; map->slots[i].value; i = (i + 1) & map->mask) {
        size_t home = idmap_home(map, map->slots[i].id);
        if (((i - home) & map->mask) >= ((i - hole) & map->mask)) {
            map->slots[hole] = map->slots[i];
            hole = i;
        }
    }
    map->slots[hole].value = NULL;
    map->count--;
    return value;
}

static int by_id(const void *a, const void *b)
{
    const struct idmap_slot *x = a, *y = b;
    return ORDER(x->id, y->id);
}

struct idmap_slot *idmap_sorted(const struct idmap *map)
{
    struct idmap_slot *all = calloc(map->count + 1, sizeof *all);
    size_t count = 0;
    if (!all)
        return NULL;
    IDMAP_EACH(slot, map)
        all[count++] = *slot;
    qsort(all, count, sizeof *all, by_id);
    return all;
}

void idmap_clear(struct idmap *map)
{
    if (map->slots)
        memset(map->slots, 0, (map->mask + 1) * sizeof *map->slots);
    map->count = 0;
}

void idmap_free(struct idmap *map)
{
    free(map->slots);
    *map = (struct idmap){0};
}

void idmap_free_values(struct idmap *map)
{
    IDMAP_EACH(slot, map)
        free(slot->value);
    idmap_free(map);
}
