/*
 * A binary heap in an array: entry i has the children 2i + 1 and 2i + 2, none of which is before it.
 *
 *     static inline bool earlier(const struct item *a, const struct item *b) { return a->ns < b->ns; }
 *     HEAP(items, struct item, earlier)
 *
 *     items_up(list, count++, item);                put in
 *     first = list[0];
 *     last = list[--count];
 *     if (count > 0)
 *         items_down(list, count, 0, last);         take out
 *
 * A child takes its parent's place only if it is before it, the right one only if it is before the left one:
 * of entries of which neither is before the other the shape decides, as in Go's container/heap.
 */
#ifndef TRAIL_BASE_HEAP_H
#define TRAIL_BASE_HEAP_H

#include <stddef.h>

/*
 * Defines for entries of `type`, with `bool before(const type *, const type *)`:
 *
 * name_up: puts the entry in place i, which is free, or up from there. Returns where it came to.
 * name_down: puts it in place i, which is free, or down from there.
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

#endif
