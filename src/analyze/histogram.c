/*
 * Histograms: 0 to 15 have one bucket each, then there are eight per doubling; exact enough for
 * quantiles.
 *
 * There may be one for each of very many start functions, most with one or two values. So a single
 * bucket takes no memory besides the struct, the first SPARSE_MAX different ones are a list, and
 * only more of them an array by bucket: memory grows with what is counted.
 *
 *     bin_count == 0            all that was counted is in the bucket of min_ns
 *     bin_count <= SPARSE_MAX   bins: | bucket:10 | count:54 |, sorted, of buckets that are not empty
 *     bin_count >  SPARSE_MAX   bins: the count of each bucket, up to the last
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

/* MARK: Lists */

#define SPARSE_MAX  8
#define COUNT_BITS  54
#define COUNT_MAX   ((UINT64_C(1) << COUNT_BITS) - 1)
#define DENSE_LEAST ((size_t)2 * SUBS)

_Static_assert(DENSE_LEAST > SPARSE_MAX, "the size distinguishes a list from an array");

static size_t bin_bucket(uint64_t bin)
{
    return (size_t)(bin >> COUNT_BITS);
}

static uint64_t bin_make(size_t bucket, uint64_t count)
{
    return (uint64_t)bucket << COUNT_BITS | count;
}

static bool is_list(const trail_histogram *histogram)
{
    return histogram->bin_count <= SPARSE_MAX;
}

/* Extends the array to the bucket. */
static bool array_reach(trail_histogram *histogram, size_t bucket)
{
    size_t wanted = (bucket | (SUBS - 1)) + 1;
    uint64_t *grown = reallocarray(histogram->bins, wanted, sizeof *grown);
    if (!grown)
        return false;
    memset(grown + histogram->bin_count, 0, (wanted - histogram->bin_count) * sizeof *grown);
    histogram->bins = grown;
    histogram->bin_count = wanted;
    return true;
}

/* Converts the list to an array, up to the bucket at least. */
static bool list_to_array(trail_histogram *histogram, size_t bucket)
{
    uint64_t list[SPARSE_MAX] = {0};
    size_t count = histogram->bin_count, last = bucket;
    for (size_t i = 0; i < count; i++) {
        list[i] = histogram->bins[i];
        last = bin_bucket(list[i]) > last ? bin_bucket(list[i]) : last;
    }
    if (!array_reach(histogram, last < DENSE_LEAST ? DENSE_LEAST - 1 : last))
        return false;
    memset(histogram->bins, 0, sizeof list);
    for (size_t i = 0; i < count; i++)
        histogram->bins[bin_bucket(list[i])] = list[i] & COUNT_MAX;
    return true;
}

/* Makes room for one more in a list whose capacity is a power of two. */
static bool list_reserve(trail_histogram *histogram)
{
    size_t count = histogram->bin_count;
    if ((count & (count - 1)) != 0)
        return true;
    uint64_t *grown = reallocarray(histogram->bins, count ? 2 * count : 1, sizeof *grown);
    if (grown)
        histogram->bins = grown;
    return grown != NULL;
}

static bool list_insert(trail_histogram *histogram, size_t i, size_t bucket, uint64_t count)
{
    size_t behind = histogram->bin_count - i;
    if (!list_reserve(histogram))
        return false;
    memmove(&histogram->bins[i + 1], &histogram->bins[i], behind * sizeof *histogram->bins);
    histogram->bins[i] = bin_make(bucket, count);
    histogram->bin_count++;
    return true;
}

/* Counts in the list or, if that is full or a number too large for it, in an array. */
static bool list_count(trail_histogram *histogram, size_t bucket, uint64_t count)
{
    size_t i = 0, end = histogram->bin_count;
    while (i < end && bin_bucket(histogram->bins[i]) < bucket)
        i++;
    bool found = i < end && bin_bucket(histogram->bins[i]) == bucket;
    uint64_t before = found ? histogram->bins[i] & COUNT_MAX : 0;
    if (count > COUNT_MAX - before || (!found && end == SPARSE_MAX)) {
        if (!list_to_array(histogram, bucket))
            return false;
        histogram->bins[bucket] += count;
        return true;
    }
    if (!found)
        return list_insert(histogram, i, bucket, count);
    histogram->bins[i] += count;
    return true;
}

/* Stores the single bucket in a list, so that there may be another. */
static bool single_to_list(trail_histogram *histogram)
{
    return histogram->bin_count > 0 || histogram->count == 0 ||
           list_count(histogram, bucket_of(histogram->min_ns), histogram->count);
}

/* MARK: Counting */

static bool array_count(trail_histogram *histogram, size_t bucket, uint64_t count)
{
    if (bucket >= histogram->bin_count && !array_reach(histogram, bucket))
        return false;
    histogram->bins[bucket] += count;
    return true;
}

static bool count_more(trail_histogram *histogram, size_t bucket, uint64_t count)
{
    if (!single_to_list(histogram))
        return false;
    return is_list(histogram) ? list_count(histogram, bucket, count)
                              : array_count(histogram, bucket, count);
}

/* Counts one value where that is not just an increment in the array. */
static __attribute__((noinline)) bool count_slowly(trail_histogram *histogram, size_t bucket)
{
    if (histogram->bin_count == 0 &&
        (histogram->count == 0 || bucket_of(histogram->min_ns) == bucket))
        return true;
    return count_more(histogram, bucket, 1);
}

bool trail_histogram_add(trail_histogram *histogram, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    size_t bucket = bucket_of(ns);
    if (__builtin_expect(bucket < histogram->bin_count && !is_list(histogram), 1))
        histogram->bins[bucket]++;
    else if (!count_slowly(histogram, bucket))
        return false;
    if (histogram->count == 0 || ns < histogram->min_ns)
        histogram->min_ns = ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->sum_ns = (int64_t)((uint64_t)histogram->sum_ns + (uint64_t)ns);
    histogram->count++;
    return true;
}

/* Copies to an empty histogram. */
static bool copy(trail_histogram *histogram, const trail_histogram *more)
{
    size_t room = 1;
    while (room < more->bin_count)
        room *= 2;
    uint64_t *bins = more->bin_count > 0 ? calloc(room, sizeof *bins) : NULL;
    if (more->bin_count > 0 && !bins)
        return false;
    if (bins)
        memcpy(bins, more->bins, more->bin_count * sizeof *bins);
    trail_histogram_free(histogram);
    *histogram = *more;
    histogram->bins = bins;
    return true;
}

bool trail_histogram_merge(trail_histogram *histogram, const trail_histogram *more)
{
    size_t at = 0, bucket;
    uint64_t count;
    if (more->count == 0)
        return true;
    if (histogram->count == 0)
        return copy(histogram, more);
    while (trail_histogram_next(more, &at, &bucket, &count))
        if (!count_more(histogram, bucket, count))
            return false;
    if (more->min_ns < histogram->min_ns)
        histogram->min_ns = more->min_ns;
    if (more->max_ns > histogram->max_ns)
        histogram->max_ns = more->max_ns;
    histogram->sum_ns = (int64_t)((uint64_t)histogram->sum_ns + (uint64_t)more->sum_ns);
    histogram->count += more->count;
    return true;
}

/* MARK: Iterating */

bool trail_histogram_next(const trail_histogram *histogram, size_t *at, size_t *bucket,
                          uint64_t *count)
{
    bool list = is_list(histogram);
    if (histogram->bin_count == 0 && *at == 0 && histogram->count > 0) {
        *at = 1;
        *bucket = bucket_of(histogram->min_ns);
        *count = histogram->count;
        return true;
    }
    while (*at < histogram->bin_count) {
        size_t i = (*at)++;
        uint64_t bin = histogram->bins[i];
        *bucket = list ? bin_bucket(bin) : i;
        *count = list ? bin & COUNT_MAX : bin;
        if (*count > 0)
            return true;
    }
    return false;
}

int64_t trail_histogram_quantile(const trail_histogram *histogram, double q)
{
    uint64_t rank = quantile_index(q, histogram->count);
    uint64_t seen = 0, count;
    size_t at = 0, bucket;
    while (trail_histogram_next(histogram, &at, &bucket, &count)) {
        int64_t from, to;
        seen += count;
        if (seen <= rank)
            continue;
        trail_histogram_bucket(bucket, &from, &to);
        int64_t middle = from + (to - from) / 2;
        if (middle < histogram->min_ns)
            middle = histogram->min_ns;
        return middle > histogram->max_ns ? histogram->max_ns : middle;
    }
    return histogram->max_ns;
}

void trail_histogram_free(trail_histogram *histogram)
{
    free(histogram->bins);
    *histogram = (trail_histogram){0};
}
