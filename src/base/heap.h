/*
 * A binary heap in an array: entry i has the children 2i + 1 and 2i + 2, neither of
 * which is before it.
 *
 *     static inline bool earlier(const struct item *a, const struct item *b) { return a->ns < b->ns; }
 *     HEAP(items, struct item, earlier)
 *
 *     items_up(list, count++, item);                insert
 *     first = list[0];
 *     last = list[--count];
 *     if (count > 0)
 *         items_down(list, count, 0, last);         remove
 *
 * A child replaces its parent only if it is before it, and the right child only if it is before the
 * left one: the shape decides between equal entries, as in Go's container/heap.
 */
#pragma once

#include <stddef.h>

/*
 * Defines, for entries of `type` and `bool before(const type *, const type *)`:
 *
 * name_up    stores the entry at free place i or above it. Returns its place.
 * name_down  stores the entry at free place i or below it.
 */
#define HEAP(name, type, before)                                                                   \
    __attribute__((unused)) static inline size_t name##_up(type *entries, size_t i, type entry)    \
    {                                                                                              \
        for (size_t parent; i > 0 && (before)(&entry, &entries[parent = (i - 1) / 2]); i = parent) \
            entries[i] = entries[parent];                                                          \
        entries[i] = entry;                                                                        \
        return i;                                                                                  \
    }                                                                                              \
                                                                                                   \
    __attribute__((unused)) static inline void name##_down(type *entries, size_t count, size_t i,  \
                                                           type entry)                             \
    {                                                                                              \
        for (size_t child; (child = 2 * i + 1) < count; i = child) {                               \
            if (child + 1 < count && (before)(&entries[child + 1], &entries[child]))               \
                child++;                                                                           \
            if (!(before)(&entries[child], &entry))                                                \
                break;                                                                             \
            entries[i] = entries[child];                                                           \
        }                                                                                          \
        entries[i] = entry;                                                                        \
    }
