/*
 * Latency in a report: histograms of times ready and of waits, and the tables of `trail summary`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/powers.h"
#include "base/show.h"
#include "base/text.h"
#include "report/html.h"
#include "report/overview.h"
#include "report/plot.h"
#include "report/report.h"
#include "report/rows.h"

/* Number of reasons with a histogram, and least number of bars: fewer would be too wide. */
enum { REASONS = 5, BARS = 6 };

/* MARK: Histograms */

/* The sum of several histograms. */
struct merged {
    trail_string name;
    trail_name of;
    trail_histogram sum;
};

static void put_bars(struct plot *plot, const struct powers *powers, double most,
                     const char *drawn_as)
{
    int first = powers->first;
    double wide = 1.0 / (powers->last - first + 1);
    char from[SHOW_SIZE], title[200];
    for (int i = first; i <= powers->last; i++) {
        if (powers->counts[i] == 0)
            continue;
        double high = (double)powers->counts[i] / most;
        int64_t least = i < 63 ? INT64_C(1) << i : INT64_MAX;
        (void)snprintf(title, sizeof title, "from %s to twice that: %" PRIu64,
                       duration_text(from, least, DURATION_WORDS), powers->counts[i]);
        plot_bar(plot, drawn_as, (i - first) * wide + wide * 0.06, wide * 0.88,
                 high < 0.02 ? 0.02 : high, title);
    }
}

/* "11 times; median 7.85 ms, p95 ...": "about" only where not all durations are kept. */
static void describe(const trail_histogram *sum, char *buf, size_t size)
{
    char p50[SHOW_SIZE], p95[SHOW_SIZE], p99[SHOW_SIZE], max[SHOW_SIZE];
    (void)duration_text(max, sum->max_ns, DURATION_WORDS);
    if (sum->count == 1) {
        (void)snprintf(buf, size, "1 time, %s", max);
        return;
    }
    (void)snprintf(buf, size, "%" PRIu64 " times; median %s%s, p95 %s, p99 %s, longest %s",
                   sum->count, overview_about(sum),
                   duration_text(p50, trail_histogram_quantile(sum, 0.5), DURATION_WORDS),
                   duration_text(p95, trail_histogram_quantile(sum, 0.95), DURATION_WORDS),
                   duration_text(p99, trail_histogram_quantile(sum, 0.99), DURATION_WORDS), max);
}

static void put_histogram(const struct report *report, const trail_histogram *sum,
                          const char *title, const char *drawn_as)
{
    struct powers powers = powers_of(sum);
    char note[400], top[32], middle[32];
    struct plot plot;
    if (powers.first > powers.last)
        return;
    if (powers.last - powers.first < BARS - 1)
        powers.last = powers.first + BARS - 1 < 64 ? powers.first + BARS - 1 : 63;
    describe(sum, note, sizeof note);
    double most = plot_round_up((double)powers.most);
    (void)snprintf(top, sizeof top, "%.10g", most);
    (void)snprintf(middle, sizeof middle, "%.10g", most / 2);
    plot_begin(&plot, report->out, title, note);
    plot_y(&plot, top, middle, "0");
    plot_x_lengths(&plot, __builtin_exp2(powers.first), __builtin_exp2(powers.last + 1));
    plot_open(&plot, note);
    put_bars(&plot, &powers, most, drawn_as);
    plot_end(&plot);
}

static void put_ready_histogram(const struct report *report)
{
    const trail_wait_group *const *groups;
    size_t count = trail_analysis_waits(report->answers, &groups);
    trail_histogram sum = {0};
    bool good = true;
    for (size_t i = 0; good && i < count; i++)
        good = trail_histogram_merge(&sum, &groups[i]->ready);
    if (good)
        put_histogram(report, &sum, "Scheduling latency (ready until running)", "runnable");
    else
        overview_lacks();
    trail_histogram_free(&sum);
}

/* Draws histograms for the reasons with most waiting; waits come longest first. */
static void put_wait_histograms(const struct report *report, const struct overview_wait *waits,
                                size_t count)
{
    struct merged list[REASONS] = {0};
    bool good = true;
    size_t used = 0;
    for (size_t i = 0; good && i < count && !waits[i].system; i++) {
        trail_string reason = trail_analysis_text(report->answers, waits[i].wait->reason);
        size_t at = 0;
        while (at < used && !text_equal(list[at].name, reason))
            at++;
        if (at == REASONS)
            continue;
        used += at == used;
        list[at].name = reason;
        list[at].of = waits[i].wait->reason;
        good = trail_histogram_merge(&list[at].sum, &waits[i].wait->spread);
    }
    if (!good)
        overview_lacks();
    for (size_t i = 0; i < used; i++) {
        char title[200];
        trail_string reason = report_reason(report, list[i].name);
        (void)snprintf(title, sizeof title, "Waits: %.*s",
                       (int)(reason.size < 150 ? reason.size : 150), reason.data);
        if (good)
            put_histogram(report, &list[i].sum, title, report_wait_class(report, list[i].of));
        trail_histogram_free(&list[i].sum);
    }
}

/* MARK: Tables */

static void put_ready(const struct report *report)
{
    const trail_wait_group *const *groups;
    struct html_table table;
    size_t count = trail_analysis_waits(report->answers, &groups);
    report_table(report, &table, "Scheduling latency (ready until running)",
                 "start_function< {tasks}> running> " ROWS_SPREAD "longest_in<");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        struct overview_group group = overview_group(report->answers, groups[i]->name);
        html_cell_text(&table, report_text(report, groups[i]->name));
        html_cell_number(&table, group.count);
        html_cell_duration(&table, group.exec_ns);
        rows_spread(&table, &groups[i]->ready);
        rows_longest(report, &table, &groups[i]->ready_longest);
    }
    rows_end(report, &table, count);
}

static void put_waits(const struct report *report, const struct overview_wait *waits, size_t count)
{
    struct html_table table;
    html_table_begin(&table, report->out, "Waits that ended",
                     "start_function< for< " ROWS_SPREAD "longest_in<");
    for (size_t i = 0; i < count && i < report->limit; i++) {
        trail_string reason = trail_analysis_text(report->answers, waits[i].wait->reason);
        html_cell_text(&table, report_text(report, waits[i].group->name));
        html_cell_text(&table, report_reason(report, reason));
        rows_spread(&table, &waits[i].wait->spread);
        rows_longest(report, &table, &waits[i].wait->longest);
    }
    rows_end(report, &table, count);
}

void report_latency(const struct report *report)
{
    size_t count;
    struct overview_wait *waits = overview_waits(report->answers, false, &count);
    report_section(report, "waits", "Waits and latency");
    out_str(report->out,
            "<p>Percentiles of up to 128 waits are exact, of more accurate to 1/8.</p>\n");
    out_str(report->out, "<div class=\"plots\">\n");
    put_ready_histogram(report);
    if (waits)
        put_wait_histograms(report, waits, count);
    out_str(report->out, "</div>\n");
    put_ready(report);
    if (waits && count > 0)
        put_waits(report, waits, count);
    else
        out_str(report->out, "<p class=\"none\">No wait ended in this time.</p>\n");
    free(waits);
    report_section_end(report);
}
