/* Counters over the whole trace, in a fixed number of bins. */
#include "timeline/bins.h"

#include <stdlib.h>
#include <string.h>

bool bins_init(struct bins *bins)
{
    *bins = (struct bins){.shift = BIN_SHIFT_AT_FIRST, .ns = calloc(BINS, sizeof *bins->ns)};
    return bins->ns != NULL;
}

void bins_free(struct bins *bins)
{
    free(bins->ns);
    free(bins->late);
    *bins = (struct bins){0};
}

/* Adds `late` to the bins. */
static void settle(struct bins *bins)
{
    int64_t count[TRAIL_LANE_COUNTERS] = {0};
    if (!bins->has_late)
        return;
    for (size_t i = 0; i < BINS; i++) {
        for (int c = 0; c < TRAIL_LANE_COUNTERS; c++) {
            count[c] += bins->late[i][c];
            bins->ns[i][c] += count[c] * (INT64_C(1) << bins->shift);
        }
    }
    memset(bins->late, 0, BINS * sizeof *bins->late);
    bins->has_late = false;
}

/* Merges pairs of bins into one. */
static void halve(struct bins *bins)
{
    settle(bins);
    for (size_t i = 0; i < BINS / 2; i++)
        for (int c = 0; c < TRAIL_LANE_COUNTERS; c++)
            bins->ns[i][c] = bins->ns[2 * i][c] + bins->ns[2 * i + 1][c];
    memset(bins->ns[BINS / 2], 0, BINS / 2 * sizeof *bins->ns);
    bins->shift++;
}

static void make_room(struct bins *bins, int64_t ns)
{
    while (ns >> bins->shift >= BINS)
        halve(bins);
}

/* Adds `count` of a counter over [from_ns, to_ns), for which there is room. */
static void spread(struct bins *bins, trail_lane_counter counter, int64_t count, int64_t from_ns,
                   int64_t to_ns)
{
    while (from_ns < to_ns) {
        int64_t i = from_ns >> bins->shift, end = (i + 1) << bins->shift;
        if (end > to_ns)
            end = to_ns;
        bins->ns[i][counter] += count * (end - from_ns);
        from_ns = end;
    }
}

/* The same for [from_ns, to_ns) in the past: settle adds the part in complete bins. */
static void spread_late(struct bins *bins, trail_lane_counter counter, int64_t count,
                        int64_t from_ns, int64_t to_ns)
{
    int64_t first = (from_ns + (INT64_C(1) << bins->shift) - 1) >> bins->shift;
    int64_t last = to_ns >> bins->shift; /* the incomplete bin */
    if (first < last && !bins->late)
        bins->late = calloc(BINS, sizeof *bins->late);
    /* Slower, but needs no memory. */
    if (first >= last || !bins->late) {
        spread(bins, counter, count, from_ns, to_ns);
        return;
    }
    spread(bins, counter, count, from_ns, first << bins->shift);
    spread(bins, counter, count, last << bins->shift, to_ns);
    bins->late[first][counter] += count;
    bins->late[last][counter] -= count;
    bins->has_late = true;
}

void bins_change(struct bins *bins, trail_lane_counter counter, int by, int64_t ns)
{
    int64_t since = bins->since_ns[counter];
    make_room(bins, ns > since ? ns : since);
    if (ns >= since) {
        if (bins->now[counter] != 0)
            spread(bins, counter, bins->now[counter], since, ns);
        bins->since_ns[counter] = ns;
    } else {
        spread_late(bins, counter, by, ns < 0 ? 0 : ns, since);
    }
    bins->now[counter] += by;
}

void bins_flush(struct bins *bins, int64_t ns)
{
    for (int c = 0; c < TRAIL_LANE_COUNTERS; c++)
        if (ns > bins->since_ns[c])
            bins_change(bins, (trail_lane_counter)c, 0, ns);
    settle(bins);
}
