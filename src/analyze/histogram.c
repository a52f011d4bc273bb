/*
 * Histograms: 0 to 15 have a bucket each, then there are eight to each doubling. Exact enough for
 * quantiles, and as small as the longest duration needs.
 */

#include <stdlib.h>
#include <string.h>
#include <trail/analyze.h>

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

bool trail_histogram_add(trail_histogram *histogram, int64_t ns)
{
    if (ns < 0)
        ns = 0;
    size_t i = bucket_of(ns);
    if (i >= histogram->bucket_count) {
        size_t wanted = (i | (SUBS - 1)) + 1;
        uint64_t *grown = reallocarray(histogram->buckets, wanted, sizeof *grown);
        if (!grown)
            return false;
        memset(grown + histogram->bucket_count, 0,
               (wanted - histogram->bucket_count) * sizeof *grown);
        histogram->buckets = grown;
        histogram->bucket_count = wanted;
    }
    histogram->buckets[i]++;
    if (histogram->count == 0 || ns < histogram->min_ns)
        histogram->min_ns = ns;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->sum_ns = (int64_t)((uint64_t)histogram->sum_ns + (uint64_t)ns);
    histogram->count++;
    return true;
}

int64_t trail_histogram_quantile(const trail_histogram *histogram, double q)
{
    if (histogram->count == 0)
        return 0;
    double wanted = q * (double)histogram->count;
    uint64_t seen = 0;
    for (size_t i = 0; i < histogram->bucket_count; i++) {
        seen += histogram->buckets[i];
        if (histogram->buckets[i] == 0 || (double)seen < wanted)
            continue;
        int64_t from, to;
        trail_histogram_bucket(i, &from, &to);
        int64_t middle = from + (to - from) / 2;
        if (middle < histogram->min_ns)
            middle = histogram->min_ns;
        return middle > histogram->max_ns ? histogram->max_ns : middle;
    }
    return histogram->max_ns;
}

void trail_histogram_free(trail_histogram *histogram)
{
    free(histogram->buckets);
    *histogram = (trail_histogram){0};
}
