/*
 * Growing arrays: at least doubled each time, with checked sizes.
 *
 *     if (!APPEND(list->items, list->capacity, list->count, item))
 *         return error_no_memory(err);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The size of an element; by its type, because checkers suspect the sizeof of a pointer. */
#define GROW_ELEMENT(array) sizeof(__typeof__(*(array)))

/*
 * Ensures room for `wanted` elements in the array that the pointer at `array` points to (may be
 * NULL), whose room is *capacity. Returns false if out of memory; the array is then unchanged.
 */
bool grow_array(void *array, size_t *capacity, size_t wanted, size_t element_size);

/* The same for a pointer and a size_t, both lvalues. Usually costs one comparison. */
#define GROW(array, capacity, wanted)                                                              \
    ((wanted) <= (capacity) || grow_array(&(array), &(capacity), (wanted), GROW_ELEMENT(array)))

/* Appends a value to `count` ones. Returns false if out of memory; nothing is then changed. */
#define APPEND(array, capacity, count, ...)                                                        \
    (GROW(array, capacity, (count) + 1) && ((array)[(count)++] = (__VA_ARGS__), true))

/* Like GROW; new elements are zero, up to the capacity. */
#define GROW_ZEROED(array, capacity, wanted)                                                       \
    ((wanted) <= (capacity) || grow_zeroed(&(array), &(capacity), (wanted), GROW_ELEMENT(array)))
bool grow_zeroed(void *array, size_t *capacity, size_t wanted, size_t element_size);

/*
 * Like GROW, for one of many lists that usually have one or two elements: begins with exactly the
 * wanted room, and doubles from there.
 */
#define GROW_SMALL(array, capacity, wanted)                                                        \
    ((wanted) <= (capacity) || grow_small(&(array), &(capacity), (wanted), GROW_ELEMENT(array)))
bool grow_small(void *array, size_t *capacity, size_t wanted, size_t element_size);

/* Loops over the elements of an array, which may be NULL if there are none. It must not grow or move
 * meanwhile. */
#define EACH(type, item, array, count)                                                             \
    for (type *item = (array), *item##_end = (count) > 0 ? item + (count) : item;                  \
         item < item##_end; item++)
