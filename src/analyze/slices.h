/*
 * Slices: how much of something there was in each piece of the time, for many rows at once. How long
 * the time will be is not known: when it outgrows the pieces, they become twice as long.
 */
#ifndef TRAIL_ANALYZE_SLICES_H
#define TRAIL_ANALYZE_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLICES = 128, SLICES_MOST_ROWS = 1024 };

/* slices_begin makes it ready. */
struct slices {
    int64_t begin_ns;
    uint64_t slice_ns;
    int64_t (*rows)[SLICES];
    size_t count, capacity;
};

/* Time counts from here on: forgets all that was counted. */
void slices_begin(struct slices *slices, int64_t begin_ns);

/*
 * The time from `from_ns` to `to_ns` counts for a row. Rows beyond SLICES_MOST_ROWS are not kept.
 * False when memory is out.
 */
bool slices_add(struct slices *slices, size_t row, int64_t from_ns, int64_t to_ns);

/* The end: how many slices there are up to it. */
size_t slices_finish(struct slices *slices, int64_t end_ns);

/* NULL: nothing was counted for it, or it is not kept. */
const int64_t *slices_of(const struct slices *slices, size_t row);
void slices_free(struct slices *slices);

#endif
