/*
 * Sifting in the frontier's heap (v2_merge.h says why it is done just so).
 */
#ifndef TRAIL_READ_V2_SIFT_H
#define TRAIL_READ_V2_SIFT_H

#include "read/v2_merge.h"

/* Moves entry i up to where its parent is not later. Returns where it came to. */
static inline size_t v2_sift_up(struct v2_head *heads, size_t i)
{
    while (i > 0 && heads[(i - 1) / 2].time_ns > heads[i].time_ns) {
        struct v2_head parent = heads[(i - 1) / 2];
        heads[(i - 1) / 2] = heads[i];
        heads[i] = parent;
        i = (i - 1) / 2;
    }
    return i;
}

/* Moves entry i down to where no child is earlier. */
static inline void v2_sift_down(struct v2_head *heads, size_t count, size_t i)
{
    struct v2_head moving = heads[i];
    for (;;) {
        size_t left = 2 * i + 1, smallest = i;
        int64_t time_ns = moving.time_ns;
        if (left < count && heads[left].time_ns < time_ns) {
            smallest = left;
            time_ns = heads[left].time_ns;
        }
        if (left + 1 < count && heads[left + 1].time_ns < time_ns)
            smallest = left + 1;
        if (smallest == i)
            break;
        heads[i] = heads[smallest];
        i = smallest;
    }
    heads[i] = moving;
}

#endif
