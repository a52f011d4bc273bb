/*
 * Histograms compared with sorted values, shares of windows with a window that is moved over the
 * series by single nanoseconds, and unions of intervals with the nanoseconds that they cover.
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdlib.h>

#include "../lib/unit.h"
#include "analyze/blame.h"
#include "analyze/utilisation.h"
#include "base/quantile.h"

static uint64_t seed = 1;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* MARK: Histograms */

TEST(test_buckets_follow_each_other_and_are_narrow)
{
    int64_t from, to, last = 0;
    for (size_t i = 0; last < INT64_MAX / 2; i++) {
        trail_histogram_bucket(i, &from, &to);
        assert_int_equal(from, last);
        assert_true(to > from);
        assert_true(from < 16 ? to == from + 1 : (to - from) * 8 <= from);
        last = to;
    }
}

TEST(test_a_value_is_in_its_bucket)
{
    for (int n = 0; n < 10000; n++) {
        trail_histogram histogram = {0};
        int64_t value = (int64_t)(draw(INT32_MAX) << draw(31) >> draw(31)), from, to;
        assert_true(trail_histogram_add(&histogram, value));
        assert_int_equal(histogram.count, 1);
        size_t at = 0, bucket;
        uint64_t count;
        assert_true(trail_histogram_next(&histogram, &at, &bucket, &count));
        assert_int_equal(count, 1);
        trail_histogram_bucket(bucket, &from, &to);
        assert_true(value >= from && value < to);
        assert_false(trail_histogram_next(&histogram, &at, &bucket, &count));
        assert_int_equal(trail_histogram_quantile(&histogram, 0.5), value);
        trail_histogram_free(&histogram);
    }
}

enum { BUCKETS = 488 }; /* of all durations */

/* Counts by bucket in an array, independent of how the histogram stores them. */
TEST(test_buckets_hold_what_was_added_whatever_their_number)
{
    for (unsigned kinds = 1; kinds < 40; kinds++) {
        const unsigned values_count = kinds % 2 ? 200 : 60 + 4 * kinds; /* up to 128 are kept */
        trail_histogram halves[2] = {{0}}, whole = {0};
        uint64_t right[BUCKETS] = {0}, count;
        int64_t from, to, values[40];
        for (unsigned i = 0; i < kinds; i++)
            values[i] = (int64_t)(draw(INT32_MAX) << draw(31) >> draw(31));
        for (unsigned n = 0; n < values_count; n++) {
            int64_t value = values[draw(kinds)];
            assert_true(trail_histogram_add(&halves[n % 5 > 1], value));
            for (size_t i = 0; i < BUCKETS; i++) {
                trail_histogram_bucket(i, &from, &to);
                right[i] += value >= from && value < to;
            }
        }
        assert_true(trail_histogram_merge(&whole, &halves[0]));
        assert_true(trail_histogram_merge(&whole, &halves[1]));
        assert_int_equal(whole.count, values_count);
        assert_int_equal(whole.sum_ns,
                         (int64_t)((uint64_t)halves[0].sum_ns + (uint64_t)halves[1].sum_ns));
        for (size_t at = 0, bucket; trail_histogram_next(&whole, &at, &bucket, &count);) {
            assert_int_equal(count, right[bucket]);
            right[bucket] = 0;
        }
        for (size_t i = 0; i < BUCKETS; i++)
            assert_int_equal(right[i], 0);
        for (int i = 0; i < 2; i++)
            trail_histogram_free(&halves[i]);
        trail_histogram_free(&whole);
    }
}

/* There may be a histogram for each of a million functions: its contents determine its size. */
TEST(test_a_histogram_is_as_large_as_what_is_in_it)
{
    trail_histogram histogram = {0};
    for (int n = 0; n < 1000; n++)
        assert_true(trail_histogram_add(&histogram, INT64_C(3600000000000)));
    assert_null(histogram.bins);
    assert_true(trail_histogram_add(&histogram, 1));
    assert_true(trail_histogram_add(&histogram, INT64_MAX));
    assert_true(malloc_usable_size(histogram.bins) <= (BUCKETS + 1) * sizeof *histogram.bins);
    trail_histogram_free(&histogram);
    for (int64_t ns = 0; ns < 3; ns++)
        assert_true(trail_histogram_add(&histogram, ns << 40));
    assert_true(malloc_usable_size(histogram.bins) <= 40);
    trail_histogram_free(&histogram);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* In integers: the least rank such that p percent of the values are at or below it. */
TEST(test_a_percentile_is_the_nearest_rank)
{
    for (uint64_t count = 1; count <= 500; count++)
        for (uint64_t p = 1; p <= 100; p++)
            assert_int_equal(quantile_index((double)p / 100, count) + 1, (p * count + 99) / 100);
    assert_int_equal(quantile_index(0, 10), 0);
    assert_int_equal(quantile_index(0.5, 0), 0);
    /* The smaller of the two middle values; each value has its own bucket. */
    trail_histogram histogram = {0};
    for (int64_t ns = 1; ns <= 10; ns++)
        assert_true(trail_histogram_add(&histogram, ns));
    assert_int_equal(trail_histogram_quantile(&histogram, 0.5), 5);
    trail_histogram_free(&histogram);
}

/* However they came: one after the other, or merged from two parts of any size. */
TEST(test_quantiles_of_few_values_are_exact)
{
    for (unsigned count = 1; count <= 128; count++) {
        trail_histogram parts[2] = {{0}}, whole = {0};
        int64_t values[128];
        for (unsigned i = 0; i < count; i++) {
            values[i] = (int64_t)draw(1 + draw(INT32_MAX));
            assert_true(trail_histogram_add(&parts[draw(3) == 0], values[i]));
        }
        assert_true(trail_histogram_merge(&whole, &parts[0]));
        assert_true(trail_histogram_merge(&whole, &parts[1]));
        qsort(values, count, sizeof *values, by_value);
        for (uint64_t p = 1; p <= 100; p++)
            assert_int_equal(trail_histogram_quantile(&whole, (double)p / 100),
                             values[(p * count + 99) / 100 - 1]);
        trail_histogram_free(&parts[0]);
        trail_histogram_free(&parts[1]);
        trail_histogram_free(&whole);
    }
}

TEST(test_quantiles_are_near_those_of_the_sorted_values)
{
    enum { COUNT = 1000 };
    static const double shares[] = {0.01, 0.5, 0.95, 0.99, 1};
    int64_t values[COUNT], sum = 0;
    trail_histogram histogram = {0};
    for (int i = 0; i < COUNT; i++) {
        values[i] = (int64_t)draw(UINT64_C(1) << (1 + draw(30)));
        sum += values[i];
        assert_true(trail_histogram_add(&histogram, values[i]));
    }
    qsort(values, COUNT, sizeof *values, by_value);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        int64_t right = values[(size_t)(shares[i] * COUNT) - 1];
        int64_t ours = trail_histogram_quantile(&histogram, shares[i]);
        assert_true(llabs(ours - right) * 8 <= right);
    }
    assert_int_equal(histogram.sum_ns, sum);
    assert_int_equal(histogram.min_ns, values[0]);
    assert_int_equal(histogram.max_ns, values[COUNT - 1]);
    trail_histogram_free(&histogram);
}

/* MARK: Windows */

enum { LENGTH = 300 };

/* A series of LENGTH ns that begins at 1000, and the share at each nanosecond. */
static size_t draw_series(struct util_point *points, double *shares)
{
    size_t count = 0;
    double util = 1;
    for (int t = 0; t < LENGTH; t++) {
        double next = t == 0 || draw(10) > 0 ? util : (double)draw(5) / 4;
        if (t == 0 || next != util)
            points[count++] = (struct util_point){1000 + t, next};
        shares[t] = util = next;
    }
    points[count++] = (struct util_point){1000 + LENGTH, 0};
    return count;
}

static double share_at(const double *shares, int begin, int window)
{
    double sum = 0;
    for (int t = begin; t < begin + window; t++)
        sum += shares[t];
    return sum / window;
}

TEST(test_the_least_share_is_that_of_the_worst_window)
{
    struct util_point points[LENGTH + 1];
    double shares[LENGTH];
    for (int n = 0; n < 200; n++) {
        struct util_series series = {.points = points, .count = draw_series(points, shares)};
        struct utilisation u = {.series = &series, .series_count = 1};
        int window = 1 + (int)draw(LENGTH + 20);
        int length = window < LENGTH ? window : LENGTH;
        double least = 1;
        for (int begin = 0; begin + length <= LENGTH; begin++) {
            double share = share_at(shares, begin, length);
            least = share < least ? share : least;
        }
        double ours = utilisation_least(&u, window);
        assert_true(ours - least < 1e-9 && least - ours < 1e-9);
    }
}

TEST(test_worst_windows_are_apart_and_tell_their_share)
{
    struct util_point points[LENGTH + 1];
    double shares[LENGTH];
    for (int n = 0; n < 200; n++) {
        struct util_series series = {.points = points, .count = draw_series(points, shares)};
        struct utilisation u = {.series = &series, .series_count = 1};
        trail_mmu_window worst[5];
        int window = 1 + (int)draw(LENGTH / 3);
        size_t count = utilisation_worst(&u, window, worst, 5);
        assert_true(count > 0);
        assert_true(worst[0].mutator - utilisation_least(&u, window) < 1e-9);
        for (size_t i = 0; i < count; i++) {
            double share = share_at(shares, (int)(worst[i].begin_ns - 1000), window);
            assert_true(worst[i].mutator - share < 1e-9 && share - worst[i].mutator < 1e-9);
            assert_int_equal(worst[i].end_ns - worst[i].begin_ns, window);
            for (size_t other = 0; other < i; other++)
                assert_true(llabs(worst[i].begin_ns - worst[other].begin_ns) >= window);
        }
    }
}

/* Returns the fraction of the windows, by their begin, whose share is at most `share`. */
static double time_up_to(const double *shares, int window, double share)
{
    double sum = 0;
    for (int begin = 0; begin + window < LENGTH; begin++) {
        double a = share_at(shares, begin, window), b = share_at(shares, begin + 1, window);
        double low = a < b ? a : b, high = a < b ? b : a;
        if (high <= share)
            sum += 1;
        else if (low < share)
            sum += (share - low) / (high - low);
    }
    return sum / (LENGTH - window);
}

TEST(test_a_quantile_has_its_share_of_windows_above)
{
    static const double quantiles[] = {0.02, 0.1, 0.5, 0.77, 0.9, 0.99, 0.9999};
    struct util_point points[LENGTH + 1];
    double shares[LENGTH];
    for (int n = 0; n < 200; n++) {
        struct util_series series = {.points = points, .count = draw_series(points, shares)};
        struct utilisation u = {.series = &series, .series_count = 1};
        int window = 1 + (int)draw(LENGTH - 1);
        double least = utilisation_least(&u, window);
        for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
            double ours = utilisation_quantile(&u, window, quantiles[i]);
            double below = 1 - quantiles[i];
            assert_true(ours >= least - 1e-9 && ours <= 1);
            assert_true(time_up_to(shares, window, ours + 1e-7) >= below - 1e-9);
            assert_true(time_up_to(shares, window, ours - 1e-7) <= below + 1e-9);
        }
        assert_true(utilisation_quantile(&u, window, 1) == least);
        assert_true(utilisation_quantile(&u, LENGTH * 2, 0.5) == utilisation_least(&u, LENGTH * 2));
    }
}

/* MARK: Unions */

/* So short that no more than BLAME_STRETCHES intervals are apart from each other in it. */
enum { SPAN = 2 * BLAME_STRETCHES };

TEST(test_a_union_is_as_long_as_what_its_intervals_cover)
{
    for (unsigned round = 0; round < 2000; round++) {
        struct blame_union of = {0};
        uint64_t covered = 0;
        for (unsigned n = 0; n < 12; n++) {
            int64_t begin = (int64_t)draw(SPAN), end = begin + 1 + (int64_t)draw(3);
            end = end < SPAN ? end : SPAN;
            blame_union_add(&of, begin, end);
            for (int64_t ns = begin; ns < end; ns++)
                covered |= UINT64_C(1) << ns;
            assert_int_equal(blame_union_ns(&of), __builtin_popcountll(covered));
        }
    }
}
