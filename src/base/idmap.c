/* ID map: insertion, and deletion by shifting entries back. */
#include "base/idmap.h"

#include <stdlib.h>
#include <string.h>

#define IDMAP_FIRST_LOG2 4

static void insert_new(struct idmap *map, uint64_t id, void *value)
{
    size_t i = idmap_home(map, id);
    while (map->slots[i].value)
        i = (i + 1) & map->mask;
    map->slots[i] = (struct idmap_slot){.id = id, .value = value};
}

static bool grow(struct idmap *map)
{
    unsigned log2 = map->slots ? 64 - map->shift + 1 : IDMAP_FIRST_LOG2;
    size_t slots = (size_t)1 << log2;
    struct idmap bigger = {
        .slots = calloc(slots, sizeof *bigger.slots),
        .mask = slots - 1,
        .shift = 64 - log2,
        .count = map->count,
    };
    if (!bigger.slots)
        return false;
    for (size_t i = 0; map->slots && i <= map->mask; i++)
        if (map->slots[i].value)
            insert_new(&bigger, map->slots[i].id, map->slots[i].value);
    free(map->slots);
    *map = bigger;
    return true;
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
    insert_new(map, id, value);
    map->count++;
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
