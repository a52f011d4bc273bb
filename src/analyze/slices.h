/*
 * Slices: an amount per slice of time, for many rows at once. The length of the trace is not known
 * in advance: when it outgrows the slices, they double in length.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SLICES = 128, SLICES_MOST_ROWS = 1024 };

/* Initialised by slices_begin. */
struct slices {
    int64_t begin_ns;
    uint64_t slice_ns;
    int64_t (*rows)[SLICES];
    size_t count, capacity;
};

/* Starts counting here; drops what was counted before. */
void slices_begin(struct slices *slices, int64_t begin_ns);

/*
 * Adds the time from `from_ns` to `to_ns` to a row. Rows from SLICES_MOST_ROWS on are not kept.
 * Returns false if out of memory.
 */
bool slices_add(struct slices *slices, size_t row, int64_t from_ns, int64_t to_ns);

/* Ends counting. Returns the number of slices up to `end_ns`. */
size_t slices_finish(struct slices *slices, int64_t end_ns);

/* Returns NULL if nothing was counted for the row, or it is not kept. */
const int64_t *slices_of(const struct slices *slices, size_t row);
void slices_free(struct slices *slices);
