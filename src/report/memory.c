/*
 * Heap and garbage collection in a report: memory in use, mark phases, and the share of time left
 * to the program.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/show.h"
#include "base/whole.h"
#include "report/html.h"
#include "report/overview.h"
#include "report/plot.h"
#include "report/report.h"

/* Number of bands of phases, and of windows of the curve. */
enum { BANDS = 1000, WINDOWS = 60 };

/* MARK: Heap */

static void mark_bands(const struct report *report, bool *bands, int64_t from, int64_t to)
{
    double length = (double)report_length(report);
    double begin = (double)(from - report->span.begin_ns) / length * BANDS;
    double end = (double)(to - report->span.begin_ns) / length * BANDS;
    if (!(begin >= 0))
        begin = 0;
    if (begin >= BANDS)
        return;
    for (size_t i = (size_t)whole_of(begin); i < BANDS && (double)i <= end; i++)
        bands[i] = true;
}

static void put_bands(struct plot *plot, const bool *bands, const char *drawn_as, double high)
{
    for (size_t i = 0; i < BANDS; i++) {
        size_t end = i;
        while (end < BANDS && bands[end])
            end++;
        if (end == i)
            continue;
        plot_bar(plot, drawn_as, (double)i / BANDS, (double)(end - i) / BANDS, high, NULL);
        i = end;
    }
}

static void put_phases(const struct report *report, struct plot *plot)
{
    const trail_gc_cycle *cycles;
    const trail_gc_pause *pauses;
    bool marking[BANDS] = {false}, stopped[BANDS] = {false};
    size_t count = trail_analysis_gc_cycles(report->answers, &cycles);
    size_t pause_count = trail_analysis_gc_pauses(report->answers, &pauses);
    if (report_length(report) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        int64_t begin, end;
        if (overview_marked(&report->span, &cycles[i], &begin, &end))
            mark_bands(report, marking, begin, end);
    }
    for (size_t i = 0; i < pause_count; i++)
        mark_bands(report, stopped, pauses[i].begin_ns, pauses[i].end_ns);
    put_bands(plot, marking, "marking", 1);
    put_bands(plot, stopped, "stopped", 0.12); /* it would cover everything else */
}

/* Draws the heap or its goal: a slot without a value keeps the previous one. */
static void put_line(const struct report *report, struct plot *plot, bool goal, double most)
{
    const struct series *series = report->series;
    double length = (double)(ns_between(series->begin_ns, series->end_ns));
    uint64_t last = 0;
    plot_path_begin(plot, goal ? "goal" : "heap");
    for (size_t i = 0; i < series_count(series); i++) {
        uint64_t here = goal ? series->slots[i].goal : series->slots[i].heap;
        double x = (double)i * (double)series->slot_ns / length;
        last = here ? here : last;
        if (last == 0)
            continue;
        plot_point(plot, x, (double)last / most);
        plot_point(plot, x + (double)series_length(series, i) / length, (double)last / most);
    }
    plot_path_end(plot);
}

/* A goal far above the heap (a limit, or the GC is off) would flatten the heap's line. */
static uint64_t greatest(const struct series *series, bool *has_goal)
{
    uint64_t heap = 1, goal = 0;
    for (size_t i = 0; i < SERIES_SLOTS; i++) {
        heap = series->slots[i].heap > heap ? series->slots[i].heap : heap;
        goal = series->slots[i].goal > goal ? series->slots[i].goal : goal;
    }
    *has_goal = goal > 0;
    return goal > heap && goal / 8 < heap ? goal : heap;
}

static void put_heap(const struct report *report)
{
    static const struct plot_key keys[] = {
        {"heap line", "heap in use", NULL},
        {"goal line", "goal", NULL},
        {"marking", "marking", NULL},
        {"stopped", "stop-the-world pause", NULL},
    };
    const struct series *series = report->series;
    const trail_activity *a = &report->activity;
    struct plot plot;
    bool has_goal;
    char top[SHOW_SIZE], middle[SHOW_SIZE], seen[300], first[SHOW_SIZE], peak[SHOW_SIZE];
    if (!series->has_heap) {
        out_str(report->out, "<p class=\"none\">The trace has no heap sizes. Go's traces have "
                             "them; for a C program: <code>trail record --heap</code>.</p>");
        return;
    }
    uint64_t most = greatest(series, &has_goal);
    (void)snprintf(seen, sizeof seen, "Heap: %s at first, %s at most",
                   show_bytes(first, a->heap_first), show_bytes(peak, a->heap_peak));
    plot_begin(&plot, report->out, "Heap",
               has_goal
                   ? "Bytes in use, and the goal of the next collection; when collections marked, "
                     "and along the bottom stop-the-world pauses."
                   : "Bytes in use.");
    plot_legend(&plot, keys, has_goal ? 4 : 1);
    plot_y(&plot, show_bytes(top, most), show_bytes(middle, most / 2), "0");
    plot_x_time(&plot, ns_between(report->span.origin_ns, series->begin_ns),
                ns_between(report->span.origin_ns, series->end_ns));
    plot_open(&plot, seen);
    put_phases(report, &plot);
    if (has_goal)
        put_line(report, &plot, true, (double)most);
    put_line(report, &plot, false, (double)most);
    plot_end(&plot);
}

/* MARK: What was left to the program */

static void put_mmu(const struct report *report)
{
    struct plot plot;
    char seen[200], note[200];
    double least = 10000, most = (double)report_length(report);
    if (most <= 10 * least)
        return;
    (void)snprintf(seen, sizeof seen,
                   "At worst the program had %.1f %% of the %s in 1 ms, %.1f %% in 10 ms, %.1f %% "
                   "in 100 ms",
                   100 * trail_analysis_mmu(report->answers, 0, 1000000),
                   term(report->words, TERM_slots),
                   100 * trail_analysis_mmu(report->answers, 0, 10000000),
                   100 * trail_analysis_mmu(report->answers, 0, 100000000));
    (void)snprintf(note, sizeof note,
                   "The least share of the %s that the program had in any time of that length.",
                   term(report->words, TERM_slots));
    plot_begin(&plot, report->out, "What garbage collection left (MMU)", note);
    plot_y(&plot, "100 %", "50 %", "0 %");
    plot_x_lengths(&plot, least, most);
    plot_open(&plot, seen);
    plot_path_begin(&plot, "mmu");
    for (int i = 0; i < WINDOWS; i++) {
        double x = (double)i / (WINDOWS - 1), window = least * pow(most / least, x);
        plot_point(&plot, x, trail_analysis_mmu(report->answers, 0, whole_of(window)));
    }
    plot_path_end(&plot);
    plot_end(&plot);
    out_str(report->out, "<p>");
    html_word(report->out, seen);
    out_str(report->out, ".</p>\n");
}

static void put_collections(const struct report *report, size_t cycles)
{
    struct out *out = report->out;
    char command[512];
    int64_t sum_ns;
    size_t count;
    const trail_gc_pause *longest = overview_pauses(report->answers, &count, &sum_ns);
    out_str(out, "<p>");
    html_number(out, cycles);
    out_format(out, " cycle%s, marking ", plural_s(cycles));
    html_duration(out, overview_marking(report->answers));
    out_str(out, "; it took ");
    html_share(out, 1 - trail_analysis_mmu(report->answers, 0, report_length(report)));
    out_str(out, " of the ");
    html_word(out, term(report->words, TERM_slots));
    out_str(out, "' time.");
    if (longest) {
        out_str(out, " ");
        html_number(out, count);
        out_str(out, count == 1 ? " stop-the-world pause, " : " stop-the-world pauses, ");
        html_duration(out, sum_ns);
        out_str(out, " in all, at most ");
        html_duration(out, pause_length(longest));
        out_str(out, ": <code>");
        html_word(out, report_command(report, TRAIL_NONE, longest->begin_ns, pause_length(longest),
                                      command, sizeof command));
        out_str(out, "</code>");
    }
    out_str(out, "</p>\n");
}

void report_memory(const struct report *report)
{
    const trail_gc_cycle *cycles;
    const trail_gc_pause *pauses;
    size_t count = trail_analysis_gc_cycles(report->answers, &cycles);
    size_t pause_count = trail_analysis_gc_pauses(report->answers, &pauses);
    report_section(report, "memory", "Heap and garbage collection");
    put_heap(report);
    if (count > 0 || pause_count > 0) {
        put_collections(report, count);
        put_mmu(report);
    } else if (report->words->of == TRAIL_MADE_BY_GO) {
        out_str(report->out, "<p class=\"none\">No garbage collection ran, and there was no "
                             "stop-the-world pause.</p>");
    }
    report_section_end(report);
}
