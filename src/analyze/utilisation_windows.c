/*
 * Windows of one length that slide over the utilisation: the smallest share in any, the worst
 * windows, and the distribution of shares over all of them.
 */
#include <string.h>

#include "analyze/utilisation.h"
#include "base/whole.h"

/*
 * A window that slides over a series. Its share is linear between the times at which one of its
 * edges meets a point, so only these times are examined.
 */
struct slide {
    const struct util_point *points;
    size_t count;
    size_t left, right; /* the points at or before the edges */
    int64_t at, window; /* the left edge, the length */
    int64_t end;        /* of `at` */
    double inside;      /* integral of the share over the window */
};

static bool slide_begin(struct slide *slide, const struct util_series *series, int64_t window_ns)
{
    if (series->count == 0)
        return false;
    int64_t begin = series->points[0].time_ns, length;
    if (__builtin_sub_overflow(series->points[series->count - 1].time_ns, begin, &length))
        return false;
    *slide = (struct slide){.points = series->points, .count = series->count, .at = begin};
    slide->window = window_ns < length ? window_ns : length;
    slide->end = begin + (length - slide->window);
    if (slide->window <= 0)
        return false;
    int64_t edge = begin + slide->window;
    for (;;) {
        const struct util_point *point = &slide->points[slide->right];
        bool last = slide->right + 1 == slide->count || point[1].time_ns > edge;
        slide->inside += point->util * (double)((last ? edge : point[1].time_ns) - point->time_ns);
        if (last)
            return true;
        slide->right++;
    }
}

static double slide_share(const struct slide *slide)
{
    double share = slide->inside / (double)slide->window;
    return share < 0 ? 0 : share;
}

/* Moves to the next such time. Returns false at the end. */
static bool slide_on(struct slide *slide)
{
    if (slide->at >= slide->end)
        return false;
    int64_t step = slide->end - slide->at;
    int64_t to_left = slide->points[slide->left + 1].time_ns - slide->at;
    if (to_left < step)
        step = to_left;
    if (slide->right + 1 < slide->count) {
        int64_t to_right = slide->points[slide->right + 1].time_ns - slide->at - slide->window;
        if (to_right < step)
            step = to_right;
    }
    slide->inside +=
        (slide->points[slide->right].util - slide->points[slide->left].util) * (double)step;
    slide->at += step;
    while (slide->left + 2 < slide->count && slide->points[slide->left + 1].time_ns <= slide->at)
        slide->left++;
    while (slide->right + 1 < slide->count &&
           slide->points[slide->right + 1].time_ns <= slide->at + slide->window)
        slide->right++;
    return true;
}

double utilisation_least(const struct utilisation *u, int64_t window_ns)
{
    double least = 1;
    struct slide slide;
    if (window_ns <= 0)
        return 0;
    for (size_t i = 0; i < u->series_count; i++) {
        if (!slide_begin(&slide, &u->series[i], window_ns))
            continue;
        do {
            double share = slide_share(&slide);
            least = share < least ? share : least;
        } while (slide_on(&slide));
    }
    return least;
}

/* Adds a window to the list if it is worse than those it overlaps, or than the last. */
static size_t take_window(trail_mmu_window *worst, size_t count, size_t most,
                          trail_mmu_window window, int64_t length)
{
    size_t at = count, i;
    for (i = 0; i < count; i++) {
        bool overlaps = window.begin_ns < worst[i].begin_ns + length &&
                        worst[i].begin_ns < window.begin_ns + length;
        if (!overlaps)
            continue;
        if (worst[i].mutator <= window.mutator)
            return count;
        memmove(&worst[i], &worst[i + 1], (count - i - 1) * sizeof *worst);
        count--;
        i--;
    }
    for (at = count; at > 0 && worst[at - 1].mutator > window.mutator;)
        at--;
    if (at == most)
        return count;
    size_t kept = count < most ? count : most - 1;
    memmove(&worst[at + 1], &worst[at], (kept - at) * sizeof *worst);
    worst[at] = window;
    return kept + 1;
}

size_t utilisation_worst(const struct utilisation *u, int64_t window_ns, trail_mmu_window *worst,
                         size_t most)
{
    size_t count = 0;
    struct slide slide;
    if (window_ns <= 0 || most == 0)
        return 0;
    for (size_t i = 0; i < u->series_count; i++) {
        if (!slide_begin(&slide, &u->series[i], window_ns))
            continue;
        do {
            double share = slide_share(&slide);
            if (count == most && share >= worst[count - 1].mutator)
                continue;
            trail_mmu_window window = {
                .begin_ns = slide.at, .end_ns = slide.at + slide.window, .mutator = share};
            count = take_window(worst, count, most, window, slide.window);
        } while (slide_on(&slide));
    }
    return count;
}

/* MARK: Distribution */

/*
 * The distribution of windows over shares. From one of the times above to the next, the share
 * changes linearly, so the time between is distributed uniformly over the shares between. The
 * distribution is not stored but viewed through a strip of shares, in bins: the bin with the
 * quantile is the next strip, and the third strip has bins narrower than 1e-9.
 */
enum { STRIP_BINS = 1024, STRIPS = 3 };

/* [low, high); the last strip includes high. */
struct strip {
    double low, high;
    double below_ns, total_ns; /* time with shares below the strip; total time */
    double ns[STRIP_BINS];
    double least[STRIP_BINS], greatest[STRIP_BINS]; /* shares in the bin */
    double whole_ns[STRIP_BINS +
                    1]; /* of what crosses whole bins: increments from one bin to the next */
};

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static double bin_edge(const struct strip *strip, int bin)
{
    return strip->low + (strip->high - strip->low) * bin / STRIP_BINS;
}

/* By comparison with the edges, which become those of the next strip. */
static int bin_of(const struct strip *strip, double share)
{
    double place = (share - strip->low) / (strip->high - strip->low) * STRIP_BINS;
    int bin = (int)whole_within(place, 0, STRIP_BINS - 1);
    while (bin > 0 && share < bin_edge(strip, bin))
        bin--;
    while (bin + 1 < STRIP_BINS && share >= bin_edge(strip, bin + 1))
        bin++;
    return bin;
}

static void bin_add(struct strip *strip, int bin, double low, double high, double ns)
{
    strip->ns[bin] += ns;
    strip->least[bin] = lesser(strip->least[bin], low);
    strip->greatest[bin] = greater(strip->greatest[bin], high);
}

/* Adds time, distributed uniformly over the shares from `low` to `high`. */
static void strip_add(struct strip *strip, double low, double high, double ns)
{
    double width = high - low;
    double from = greater(low, strip->low), to = lesser(high, strip->high);
    strip->total_ns += ns;
    if (low < strip->low)
        strip->below_ns += high <= strip->low ? ns : ns * (strip->low - low) / width;
    if (from > to || (from == strip->high && strip->high < 1) || (to == strip->low && low < to))
        return;
    int first = bin_of(strip, from), last = bin_of(strip, to);
    if (first == last) {
        bin_add(strip, first, from, to, width > 0 ? ns * (to - from) / width : ns);
        return;
    }
    double left = bin_edge(strip, first + 1), right = bin_edge(strip, last);
    double each = ns * (strip->high - strip->low) / STRIP_BINS / width;
    bin_add(strip, first, from, left, ns * (left - from) / width);
    bin_add(strip, last, right, to, ns * (to - right) / width);
    strip->whole_ns[first + 1] += each;
    strip->whole_ns[last] -= each;
}

static void strip_add_windows(struct strip *strip, const struct util_series *series,
                              int64_t window_ns)
{
    struct slide slide;
    if (!slide_begin(&slide, series, window_ns))
        return;
    int64_t at = slide.at;
    double share = lesser(slide_share(&slide), 1);
    while (slide_on(&slide)) {
        double next = lesser(slide_share(&slide), 1);
        strip_add(strip, lesser(share, next), greater(share, next), (double)(slide.at - at));
        share = next;
        at = slide.at;
    }
}

static void strip_fill(struct strip *strip, double low, double high, const struct utilisation *u,
                       int64_t window_ns)
{
    double whole_ns = 0;
    *strip = (struct strip){.low = low, .high = high};
    for (int i = 0; i < STRIP_BINS; i++) {
        strip->least[i] = high;
        strip->greatest[i] = low;
    }
    for (size_t i = 0; i < u->series_count; i++)
        strip_add_windows(strip, &u->series[i], window_ns);
    for (int i = 0; i < STRIP_BINS; i++) {
        whole_ns += strip->whole_ns[i];
        /* Differences of equal values may leave a small remainder. */
        if (whole_ns > 1e-12 * strip->total_ns)
            bin_add(strip, i, bin_edge(strip, i), bin_edge(strip, i + 1), whole_ns);
    }
}

/*
 * Returns the bin in which the sum of time reaches `ns`; *inside_ns is the part of it in that bin.
 */
static int strip_find(const struct strip *strip, double ns, double *inside_ns)
{
    int last = 0;
    double below_ns = strip->below_ns;
    *inside_ns = 0;
    for (int i = 0; i < STRIP_BINS; i++) {
        if (strip->ns[i] <= 0)
            continue;
        last = i;
        *inside_ns = ns - below_ns;
        if (*inside_ns <= strip->ns[i])
            break;
        below_ns += strip->ns[i];
    }
    return last;
}

double utilisation_quantile(const struct utilisation *u, int64_t window_ns, double quantile)
{
    struct strip strip;
    double low = 0, high = 1, inside_ns = 0;
    int bin = 0;
    if (quantile >= 1 || window_ns <= 0)
        return utilisation_least(u, window_ns);
    for (int i = 0; i < STRIPS; i++) {
        strip_fill(&strip, low, high, u, window_ns);
        if (strip.total_ns <= 0) /* there is only one window */
            return utilisation_least(u, window_ns);
        bin = strip_find(&strip, (1 - quantile) * strip.total_ns, &inside_ns);
        low = bin_edge(&strip, bin);
        high = bin_edge(&strip, bin + 1);
    }
    double part = strip.ns[bin] > 0 ? greater(0, lesser(1, inside_ns / strip.ns[bin])) : 0;
    return strip.least[bin] + part * (strip.greatest[bin] - strip.least[bin]);
}
