/* The figures of `trail summary` in a report, and activity over time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "report/html.h"
#include "report/overview.h"
#include "report/plot.h"
#include "report/report.h"
#include "report/tiles.h"

/* MARK: Figures */

/* A figure: the key and the exact value are for scripts. */
static void put_figure(const struct report *report, const struct tile *tile)
{
    struct out *out = report->out;
    out_str(out, "<div><dt>");
    report_words(report, tile->title);
    out_format(out, "</dt><dd data-key=\"%s\" data-v=\"%" PRId64 "\"><b>", tile->key, tile->value);
    html_figures(out, tile->text);
    out_str(out, "</b> ");
    out_str(out, "<bdi>");
    html_figures(out, tile->note);
    out_str(out, "</bdi></dd></div>\n");
}

/* Writes the key figures that the trace has, as one line. */
void report_key_figures(const struct report *report)
{
    enum { SHOWN = 5 };
    static const char *const keys[] = {"slowest_task_ns", "lock_ns",   "open_waits", "waiting_ns",
                                       "idle_ns",         "gc_cycles", "running_ns"};
    struct tiles tiles;
    size_t shown = 0;
    tiles_make(&tiles, report->answers, report->words);
    out_str(report->out, "<dl class=\"key-figures\">");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        for (size_t n = 0; n < tiles.count && shown < SHOWN; n++) {
            if (strcmp(tiles.list[n].key, keys[i]) != 0)
                continue;
            shown++;
            out_str(report->out, "<div><dt>");
            report_words(report, tiles.list[n].title);
            out_str(report->out, "</dt><dd title=\"");
            html_figures(report->out, tiles.list[n].note);
            out_str(report->out, "\">");
            html_figures(report->out, tiles.list[n].text);
            out_str(report->out, "</dd></div>");
        }
    }
    out_str(report->out, "</dl>\n");
}

void report_figures(const struct report *report)
{
    struct tiles tiles;
    tiles_make(&tiles, report->answers, report->words);
    report_section(report, "figures", "Figures");
    out_str(report->out, "<dl class=\"figures\">\n");
    for (size_t i = 0; i < tiles.count; i++)
        put_figure(report, &tiles.list[i]);
    out_str(report->out, "</dl>\n");
    report_section_end(report);
}

/* MARK: Over the time */

/* Returns the average number of goroutines in one of `states` in a slot. */
static double level(const struct series *series, size_t slot, unsigned states)
{
    int64_t length = series_length(series, slot);
    double sum = 0;
    for (int state = 0; state < DRAWN_STATES; state++)
        if (states & 1U << state)
            sum += (double)series->slots[slot].ns[state];
    return length > 0 ? sum / (double)length : 0;
}

/* Draws the states in `states` above those in `below`; the area is closed along the bottom. */
static void put_area(const struct report *report, struct plot *plot, enum drawn_state state,
                     unsigned below, double most)
{
    const struct series *series = report->series;
    size_t count = series_count(series);
    double length = (double)(ns_between(series->begin_ns, series->end_ns));
    unsigned states = below | 1U << state;
    plot_path_begin(plot, drawn_class(state));
    plot_point(plot, 0, 0);
    for (size_t i = 0; i < count; i++) {
        double from = (double)i * (double)series->slot_ns / length;
        double to = from + (double)series_length(series, i) / length;
        double y = level(series, i, states) / most;
        plot_point(plot, from, y);
        plot_point(plot, to, y);
    }
    plot_point(plot, 1, 0);
    plot_path_end(plot);
}

static double greatest(const struct series *series, unsigned states)
{
    double most = 0;
    for (size_t i = 0; i < series_count(series); i++) {
        double y = level(series, i, states);
        most = y > most ? y : most;
    }
    return most;
}

static void put_counts(const struct report *report, const enum drawn_state *states, size_t count,
                       double least, const char *title, const char *note, const char *seen)
{
    struct plot plot;
    struct plot_key keys[DRAWN_STATES];
    char titles[DRAWN_STATES][128];
    const struct series *series = report->series;
    unsigned all = 0, below = 0;
    char top[32], middle[32];
    for (size_t i = 0; i < count; i++) {
        all |= 1U << states[i];
        keys[i] = (struct plot_key){
            drawn_class(states[i]),
            words_text(report->words, drawn_title(states[i]), titles[i], sizeof titles[i]), NULL};
    }
    double most = greatest(series, all);
    most = plot_round_up(most > least ? most : least);
    (void)snprintf(top, sizeof top, "%.10g", most);
    (void)snprintf(middle, sizeof middle, "%.10g", most / 2);
    plot_begin(&plot, report->out, title, note);
    plot_legend(&plot, keys, count);
    plot_y(&plot, top, middle, "0");
    plot_x_time(&plot, ns_between(report->span.origin_ns, series->begin_ns),
                ns_between(report->span.origin_ns, series->end_ns));
    plot_open(&plot, seen);
    /* Highest first: areas drawn later cover the lower part of the others. */
    for (size_t i = count; i-- > 0;) {
        below = 0;
        for (size_t n = 0; n < i; n++)
            below |= 1U << states[n];
        put_area(report, &plot, states[i], below, most);
    }
    plot_end(&plot);
}

static void put_parallelism(const struct report *report)
{
    static const enum drawn_state runs[] = {DRAWN_RUNNING}, ready[] = {DRAWN_RUNNABLE};
    static const enum drawn_state idle[] = {DRAWN_SYSCALL, DRAWN_P_RELEASED, DRAWN_WAITING};
    const trail_activity *a = &report->activity;
    const char *tasks = term(report->words, TERM_tasks);
    char seen[200], note[200];
    (void)snprintf(note, sizeof note,
                   "How many %s ran at each time; there were %" PRIu64 " %s for them.", tasks,
                   a->procs, term_count(report->words, a->procs, TERM_slot));
    (void)snprintf(seen, sizeof seen, "%.2f %s ran on average",
                   share_of(a->running_ns, report_length(report)), tasks);
    put_counts(report, runs, 1, (double)a->procs, "Running", note, seen);
    (void)snprintf(seen, sizeof seen, "%.2f %s were ready on average",
                   share_of(a->runnable_ns, report_length(report)), tasks);
    (void)snprintf(note, sizeof note, "How many more would have run if a %s had been free.",
                   term(report->words, TERM_slot));
    put_counts(report, ready, 1, 1, "Ready, not running", note, seen);
    (void)snprintf(note, sizeof note, "How many %s did neither, at each time.", tasks);
    (void)snprintf(seen, sizeof seen, "How many %s waited or were in system calls", tasks);
    put_counts(report, idle, 3, 1, "Waiting and in system calls", note, seen);
}

/* MARK: Where the time went */

struct state_row {
    const char *drawn_as, *state;
    trail_string what;
    int64_t ns;
};

static void put_states(const struct report *report, const struct state_row *rows, size_t count,
                       int64_t total)
{
    struct html_table table;
    report_table(report, &table, "Time of all {tasks}", "state< for< time> share> |");
    for (size_t i = 0; i < count; i++) {
        if (rows[i].ns == 0)
            continue;
        html_cell_word(&table, rows[i].state);
        html_cell_text(&table, rows[i].what);
        html_cell_duration(&table, rows[i].ns);
        html_cell_share(&table, share_of(rows[i].ns, total));
        html_cell_bar(&table, rows[i].drawn_as ? rows[i].drawn_as : "marking",
                      share_of(rows[i].ns, total));
    }
    html_table_end(&table);
}

static void put_times(const struct report *report)
{
    enum { FIXED = 4 };
    const char *lost = term(report->words, TERM_slot_lost);
    struct overview_part *reasons, *ranges;
    size_t reason_count, range_count, count = 0;
    trail_times sum = overview_times(report->answers, false, &reasons, &reason_count);
    (void)overview_times(report->answers, true, &ranges, &range_count);
    struct state_row *rows = calloc(FIXED + reason_count + range_count, sizeof *rows);
    if (rows) {
        rows[count++] = (struct state_row){"running", "running", {"", 0}, sum.exec_ns};
        rows[count++] = (struct state_row){"runnable", "ready", {"", 0}, sum.sched_wait_ns};
        rows[count++] = (struct state_row){"syscall", "syscall", {"", 0}, sum.syscall_ns};
        rows[count++] =
            (struct state_row){"p-released", "syscall", {lost, strlen(lost)}, sum.syscall_block_ns};
        for (size_t i = 0; i < reason_count && i < report->limit; i++)
            rows[count++] =
                (struct state_row){report_wait_class(report, reasons[i].of), "waiting",
                                   report_reason(report, reasons[i].name), reasons[i].ns};
        for (size_t i = 0; i < range_count && i < report->limit; i++)
            rows[count++] = (struct state_row){NULL, "of these, in", ranges[i].name, ranges[i].ns};
        put_states(report, rows, count, sum.total_ns);
    } else {
        overview_lacks();
    }
    free(rows);
    free(reasons);
    free(ranges);
}

void report_activity(const struct report *report)
{
    report_section(report, "activity", "Activity");
    put_parallelism(report);
    put_times(report);
    report_section_end(report);
}
