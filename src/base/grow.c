/* Arrays that double. */
#include "base/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GROW_FIRST ((size_t)16)

static bool grow(void *array, size_t *capacity, size_t wanted, size_t element_size, size_t least)
{
    size_t room = *capacity > SIZE_MAX / 2 ? wanted : *capacity * 2;
    if (room < least)
        room = least;
    if (room < wanted)
        room = wanted;
    if (room > SIZE_MAX / element_size)
        return false;
    /* Through memcpy, because the pointer may be of any type. */
    void *elements;
    memcpy(&elements, array, sizeof elements);
    void *larger = realloc(elements, room * element_size);
    if (!larger)
        return false;
    memcpy(array, &larger, sizeof larger);
    *capacity = room;
    return true;
}

bool grow_array(void *array, size_t *capacity, size_t wanted, size_t element_size)
{
    return grow(array, capacity, wanted, element_size, GROW_FIRST);
}

bool grow_zeroed(void *array, size_t *capacity, size_t wanted, size_t element_size)
{
    size_t had = *capacity;
    char *elements;
    if (!grow(array, capacity, wanted, element_size, GROW_FIRST))
        return false;
    memcpy(&elements, array, sizeof elements);
    memset(elements + had * element_size, 0, (*capacity - had) * element_size);
    return true;
}

bool grow_small(void *array, size_t *capacity, size_t wanted, size_t element_size)
{
    return grow(array, capacity, wanted, element_size, wanted);
}
