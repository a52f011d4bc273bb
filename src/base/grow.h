/*
 * Arrays that grow: at least doubling, with checked sizes.
 *
 *     if (!GROW(list->items, list->capacity, list->count + 1))
 *         return out_of_memory(...);
 *     list->items[list->count++] = item;
 */
#ifndef TRAIL_BASE_GROW_H
#define TRAIL_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes room for `wanted` elements in the array that the pointer at `array` points to (NULL: none
 * yet) and that has room for *capacity. False when memory is out; the array is then as it was.
 */
bool grow_array(void *array, size_t *capacity, size_t wanted, size_t element_size);

/* The same for a pointer and a size_t, both named by an lvalue; costs one comparison mostly. */
#define GROW(array, capacity, wanted)                                                              \
    ((wanted) <= (capacity) || grow_array(&(array), &(capacity), (wanted), sizeof *(array)))

/*
 * The same for one of many lists that mostly have an element or two: begins with room for what is
 * wanted, and doubles from there.
 */
#define GROW_SMALL(array, capacity, wanted)                                                        \
    ((wanted) <= (capacity) || grow_small(&(array), &(capacity), (wanted), sizeof *(array)))
bool grow_small(void *array, size_t *capacity, size_t wanted, size_t element_size);

#endif
