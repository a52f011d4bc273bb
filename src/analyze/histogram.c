/*
 * Histograms: the first EXACT_MAX values themselves, and of more the count of each bucket. 0 to 15
 * have one bucket each, then there are eight per doubling.
 *
 * There may be one for each of very many start functions, most with one or two values, or with one
 * value many times. So equal values take no memory besides the struct, and the form depends only on
 * what was counted, not on the order or on what was merged:
 *
 *     min_ns == max_ns     bin_count == 0
 *     count <= EXACT_MAX   bins: the values, sorted; bin_count == count
 *     count >  EXACT_MAX   bins: the count of each bucket, up to the last
 */

#include <stdlib.h>
#include <string.h>
#include <trail/analyze.h>

#include "base/quantile.h"

#define SUB_BITS 3
#define SUBS     (1u << SUB_BITS)

static size_t bucket_of(int64_t ns)
{
    uint64_t value = (uint64_t)ns;
    if (value < 2 * (uint64_t)SUBS)
        return (size_t)value;
    unsigned shift = 63 - (unsigned)__builtin_clzll(value) - SUB_BITS;
    return (size_t)shift * SUBS + (size_t)(value >> shift);
}

void trail_histogram_bucket(size_t i, int64_t *from_ns, int64_t *to_ns)
{
    size_t shift = i < (size_t)2 * SUBS ? 0 : i / SUBS - 1;
    uint64_t from = shift == 0 ? i : (uint64_t)(i % SUBS + SUBS) << shift;
    uint64_t to = from + (UINT64_C(1) << shift);
    *from_ns = (int64_t)from;
    *to_ns = to > INT64_MAX ? INT64_MAX : (int64_t)to;
}

/* MARK: Forms */

#define EXACT_MAX 128

/* Whether `bins` are values. */
static bool is_list(const trail_histogram *histogram)
{
    return histogram->count <= EXACT_MAX && histogram->bin_count > 0;
}

/* Extends the array to the bucket. */
static bool array_reach(trail_histogram *histogram, size_t bucket)
{
    size_t wanted = (bucket | (SUBS - 1)) + 1;
    if (bucket < histogram->bin_count)
        return true;
    uint64_t *grown = reallocarray(histogram->bins, wanted, sizeof *grown);
    if (!grown)
        return false;
    memset(grown + histogram->bin_count, 0, (wanted - histogram->bin_count) * sizeof *grown);
    histogram->bins = grown;
    histogram->bin_count = wanted;
    return true;
}

/* Makes the array of what was counted, with room for the bucket of `most`. */
static bool make_array(trail_histogram *histogram, int64_t most)
{
    trail_histogram array = {0};
    size_t at = 0, bucket;
    uint64_t count;
    if (!array_reach(&array, bucket_of(most > histogram->max_ns ? most : histogram->max_ns)))
        return false;
    while (trail_histogram_next(histogram, &at, &bucket, &count))
        array.bins[bucket] = count;
    free(histogram->bins);
    histogram->bins = array.bins;
    histogram->bin_count = array.bin_count;
    return true;
}

/* Makes the list of equal values, with room for one more. */
static bool make_list(trail_histogram *histogram)
{
    size_t room = 1;
    while (room <= histogram->count)
        room *= 2;
    histogram->bins = calloc(room, sizeof *histogram->bins);
    if (!histogram->bins)
        return false;
    histogram->bin_count = histogram->count;
    for (size_t i = 0; i < histogram->bin_count; i++)
        histogram->bins[i] = (uint64_t)histogram->min_ns;
    return true;
}

/* Inserts a value into the list, whose capacity is a power of two. */
static bool list_insert(trail_histogram *histogram, uint64_t value)
{
    size_t i = histogram->bin_count;
    if ((i & (i - 1)) == 0) {
        uint64_t *grown = reallocarray(histogram->bins, 2 * i, sizeof *grown);
        if (!grown)
            return false;
        histogram->bins = grown;
    }
    for (; i > 0 && histogram->bins[i - 1] > value; i--)
        histogram->bins[i] = histogram->bins[i - 1];
    histogram->bins[i] = value;
    histogram->bin_count++;
    return true;
}

/* MARK: Counting */

/* Counts one value where that is not just an increment in the array. */
static __attribute__((noinline)) bool count_slowly(trail_histogram *histogram, int64_t ns)
{
    uint64_t count = histogram->count;
    bool equal = histogram->bin_count == 0;
    if (equal && (count == 0 || ns == histogram->min_ns))
        return true;
    if (count < EXACT_MAX)
        return (!equal || make_list(histogram)) && list_insert(histogram, (uint64_t)ns);
    if ((equal || count == EXACT_MAX) && !make_array(histogram, ns))
        return false;
    if (!array_reach(histogram, bucket_of(ns)))
        return false;
    histogram->bins[bucket_of(ns)]++;
    return true;
}

bool trail_histogram_add(trail_histogram *histogram, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    size_t bucket = bucket_of(ns);
    if (__builtin_expect(bucket < histogram->bin_count && histogram->count > EXACT_MAX, 1))
        histogram->bins[bucket]++;
    else if (!count_slowly(histogram, ns))
        return false;
    if (histogram->count == 0 || ns < histogram->min_ns)
        histogram->min_ns = ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->sum_ns = (int64_t)((uint64_t)histogram->sum_ns + (uint64_t)ns);
    histogram->count++;
    return true;
}

/* Adds the values of one that keeps them. */
static bool add_values(trail_histogram *histogram, const trail_histogram *more)
{
    for (uint64_t i = 0; i < more->count; i++)
        if (!trail_histogram_add(histogram,
                                 more->bin_count > 0 ? (int64_t)more->bins[i] : more->min_ns))
            return false;
    return true;
}

/* Adds the buckets of one that may count only those. */
static bool add_buckets(trail_histogram *histogram, const trail_histogram *more)
{
    bool equal = histogram->bin_count == 0 && more->bin_count == 0 &&
                 (histogram->count == 0 || histogram->min_ns == more->min_ns);
    bool array = histogram->bin_count > 0 && histogram->count > EXACT_MAX;
    size_t at = 0, bucket;
    uint64_t count;
    if (!equal && !(array ? array_reach(histogram, bucket_of(more->max_ns))
                          : make_array(histogram, more->max_ns)))
        return false;
    while (!equal && trail_histogram_next(more, &at, &bucket, &count))
        histogram->bins[bucket] += count;
    if (histogram->count == 0 || more->min_ns < histogram->min_ns)
        histogram->min_ns = more->min_ns;
    if (more->max_ns > histogram->max_ns)
        histogram->max_ns = more->max_ns;
    histogram->sum_ns = (int64_t)((uint64_t)histogram->sum_ns + (uint64_t)more->sum_ns);
    histogram->count += more->count;
    return true;
}

bool trail_histogram_merge(trail_histogram *histogram, const trail_histogram *more)
{
    return more->count <= EXACT_MAX ? add_values(histogram, more) : add_buckets(histogram, more);
}

/* MARK: Iterating */

/* Sets the bucket of the value at *at of the list, and how many are in it; returns true. */
static bool next_values(const trail_histogram *histogram, size_t *at, size_t *bucket,
                        uint64_t *count)
{
    size_t first = *at;
    *bucket = bucket_of((int64_t)histogram->bins[first]);
    while (*at < histogram->bin_count && bucket_of((int64_t)histogram->bins[*at]) == *bucket)
        (*at)++;
    *count = *at - first;
    return true;
}

bool trail_histogram_next(const trail_histogram *histogram, size_t *at, size_t *bucket,
                          uint64_t *count)
{
    if (histogram->bin_count == 0 && *at == 0 && histogram->count > 0) {
        *at = 1;
        *bucket = bucket_of(histogram->min_ns);
        *count = histogram->count;
        return true;
    }
    if (is_list(histogram))
        return *at < histogram->bin_count && next_values(histogram, at, bucket, count);
    while (*at < histogram->bin_count) {
        *bucket = (*at)++;
        *count = histogram->bins[*bucket];
        if (*count > 0)
            return true;
    }
    return false;
}

/* Returns the value at the share `part` of a bucket, as if its values lay evenly in it. */
static int64_t within(const trail_histogram *histogram, size_t bucket, double part)
{
    int64_t from, to;
    trail_histogram_bucket(bucket, &from, &to);
    from = from > histogram->min_ns ? from : histogram->min_ns;
    to = to - 1 < histogram->max_ns ? to - 1 : histogram->max_ns;
    return from + (int64_t)(part * (double)(to - from));
}

int64_t trail_histogram_quantile(const trail_histogram *histogram, double q)
{
    uint64_t rank = quantile_index(q, histogram->count);
    uint64_t seen = 0, count;
    size_t at = 0, bucket;
    if (is_list(histogram))
        return (int64_t)histogram->bins[rank];
    while (trail_histogram_next(histogram, &at, &bucket, &count)) {
        if (seen + count > rank)
            return within(histogram, bucket, ((double)(rank - seen) + 0.5) / (double)count);
        seen += count;
    }
    return histogram->max_ns;
}

void trail_histogram_free(trail_histogram *histogram)
{
    free(histogram->bins);
    *histogram = (trail_histogram){0};
}
