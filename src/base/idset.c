/* A set of IDs that only grows. */
#include "base/idset.h"

#include <stdlib.h>

/* Returns the slot of `id`, or the free slot for it. */
static size_t idset_slot(const struct idset *set, uint64_t id)
{
    size_t mask = set->size - 1;
    size_t i = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & mask;
    while (set->slots[i] != 0 && set->slots[i] != id)
        i = (i + 1) & mask;
    return i;
}

static bool idset_grow(struct idset *set)
{
    struct idset grown = {.size = set->size ? set->size * 2 : 64};
    grown.slots = calloc(grown.size, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < set->size; i++)
        if (set->slots[i] != 0)
            grown.slots[idset_slot(&grown, set->slots[i])] = set->slots[i];
    free(set->slots);
    set->slots = grown.slots;
    set->size = grown.size;
    return true;
}

bool idset_add(struct idset *set, uint64_t id)
{
    if (id == 0) {
        set->count += !set->has_zero;
        set->has_zero = true;
        return true;
    }
    if (set->count * 2 >= set->size && !idset_grow(set))
        return false;
    size_t i = idset_slot(set, id);
    set->count += set->slots[i] == 0;
    set->slots[i] = id;
    return true;
}

void idset_free(struct idset *set)
{
    free(set->slots);
    *set = (struct idset){0};
}
