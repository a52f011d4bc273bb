#include "analyze/slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

enum { FIRST_NS = 1000 };

void slices_begin(struct slices *slices, int64_t begin_ns)
{
    slices->begin_ns = begin_ns;
    slices->slice_ns = FIRST_NS;
    slices->count = 0;
}

/* Wraps: sums of more than 64 bits come from damaged clocks. */
static int64_t sum(int64_t a, uint64_t b)
{
    return (int64_t)((uint64_t)a + b);
}

static void merge(int64_t *row)
{
    for (size_t i = 0; i < SLICES; i += 2)
        row[i / 2] = sum(row[i], (uint64_t)row[i + 1]);
    memset(row + SLICES / 2, 0, SLICES / 2 * sizeof *row);
}

/* Doubles the slices until they cover the length. */
static void reach(struct slices *slices, uint64_t length)
{
    while (length > slices->slice_ns * SLICES && slices->slice_ns <= UINT64_MAX / SLICES / 2) {
        for (size_t i = 0; i < slices->count; i++)
            merge(slices->rows[i]);
        slices->slice_ns *= 2;
    }
}

static bool make_row(struct slices *slices, size_t row)
{
    if (row < slices->count)
        return true;
    if (!GROW(slices->rows, slices->capacity, row + 1))
        return false;
    memset(slices->rows + slices->count, 0, (row + 1 - slices->count) * sizeof *slices->rows);
    slices->count = row + 1;
    return true;
}

bool slices_add(struct slices *slices, size_t row, int64_t from_ns, int64_t to_ns)
{
    if (from_ns < slices->begin_ns)
        from_ns = slices->begin_ns;
    if (from_ns >= to_ns || row >= SLICES_MOST_ROWS)
        return true;
    uint64_t from = (uint64_t)from_ns - (uint64_t)slices->begin_ns;
    uint64_t to = (uint64_t)to_ns - (uint64_t)slices->begin_ns;
    reach(slices, to);
    if (!make_row(slices, row))
        return false;
    while (from < to) {
        uint64_t slice = from / slices->slice_ns, end = (slice + 1) * slices->slice_ns;
        if (slice >= SLICES)
            return true;
        if (slice + 1 == SLICES || end > to)
            end = to;
        slices->rows[row][slice] = sum(slices->rows[row][slice], end - from);
        from = end;
    }
    return true;
}

size_t slices_finish(struct slices *slices, int64_t end_ns)
{
    if (end_ns <= slices->begin_ns)
        return 0;
    uint64_t length = (uint64_t)end_ns - (uint64_t)slices->begin_ns;
    reach(slices, length);
    uint64_t count = (length - 1) / slices->slice_ns + 1;
    return count < SLICES ? (size_t)count : SLICES;
}

const int64_t *slices_of(const struct slices *slices, size_t row)
{
    return row < slices->count ? slices->rows[row] : NULL;
}

void slices_free(struct slices *slices)
{
    free(slices->rows);
}
