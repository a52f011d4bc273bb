/* Prints groups: sums, distributions, histograms. */
#include "ui/groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/powers.h"
#include "ui/facts.h"
#include "ui/spark.h"

int groups_column_take(const struct command *command, void *member, const char *word)
{
    struct groups_column *taken = member;
    const char *names[TRAIL_COLUMNS + 1] = {0};
    for (int i = 0; i < TRAIL_COLUMNS; i++) {
        names[i] = trail_column_name((trail_column)i);
        *taken = (struct groups_column){true, (trail_column)i};
        if (strcmp(word, names[i]) == 0)
            return EXIT_GOOD;
    }
    return unknown_word(command, "column", word, names, GROUPS_COLUMNS);
}

int groups_check(const struct groups_view *view, bool one_by_one)
{
    if (one_by_one && (view->percentiles.given || view->histogram.given))
        return usage_error(view->analysis->command,
                           "--percentiles and --histogram apply to groups, not to single %s",
                           term(&view->analysis->vocabulary, view->one + 1));
    return EXIT_GOOD;
}

/* Prints how many rows were left out. */
static void print_more(size_t shown, size_t count)
{
    if (shown < count)
        printf("... and %zu more; --limit=0 shows all\n", count - shown);
}

void groups_put_times(struct row *row, const trail_times *times)
{
    char reasons[256];
    if (row->json) {
        analysis_json_times(row->analysis, row->json, times);
        return;
    }
    trail_times corrected = trail_times_corrected(times);
    row_duration(row, "exec>", NULL, times->exec_ns);
    row_duration(row, "ready>", NULL, corrected.sched_wait_ns);
    row_duration(row, "syscall>", NULL, corrected.syscall_ns);
    row_duration(row, "{no_slot}>", NULL, corrected.syscall_block_ns);
    row_duration(row, "waiting>", NULL, trail_times_column(times, TRAIL_COLUMN_BLOCK));
    row_word(row, "for<", NULL, analysis_reasons(row->analysis, times, 3, reasons, sizeof reasons));
}

static void put_sums(struct row *row, const trail_group *group)
{
    row_number(row, "count>", NULL, group->count);
    row_duration(row, "total>", NULL, group->times.total_ns);
    groups_put_times(row, &group->times);
}

static void put_percentiles(struct row *row, const trail_histogram *times)
{
    row_number(row, "count>", NULL, times->count);
    row_range(row, NULL, times);
}

static void show_table(const struct groups_view *view, const trail_group *groups, size_t count)
{
    struct table table = {0};
    struct row row = {.analysis = view->analysis, .table = &table};
    for (size_t i = 0; i < count; i++) {
        row.first = i == 0;
        if (view->percentiles.given)
            put_percentiles(&row, &groups[i].columns[view->percentiles.column]);
        else
            put_sums(&row, &groups[i]);
        row_name(&row, view->title, NULL, groups[i].name);
    }
    table_print(&table);
}

/* Uses one scale for all, so that they are comparable; the tallest column of each is full. */
static void show_spreads(const struct groups_view *view, const trail_group *groups, size_t count)
{
    char from[SHOW_SIZE], to[SHOW_SIZE];
    int first = 63, last = 0;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        struct powers powers = powers_of(&groups[i].columns[view->percentiles.column]);
        any |= powers.first <= powers.last;
        first = powers.first < first ? powers.first : first;
        last = powers.last > last ? powers.last : last;
    }
    if (!any)
        return;
    printf("\nfrom %s to %s, a column per power of two:\n",
           show_duration(from, powers_begin(first)),
           show_duration(to, last < 62 ? powers_begin(last + 1) : INT64_MAX));
    for (size_t i = 0; i < count; i++) {
        struct powers powers = powers_of(&groups[i].columns[view->percentiles.column]);
        putchar('|');
        for (int power = first; power <= last; power++)
            spark_put(powers.most ? (double)powers.counts[power] / (double)powers.most : 0);
        printf("| ");
        show_plain(analysis_text(view->analysis, groups[i].name));
        putchar('\n');
    }
}

static void show_histograms(const struct groups_view *view, const trail_group *groups, size_t count)
{
    char number[32];
    for (size_t i = 0; i < count; i++) {
        trail_string name = analysis_text(view->analysis, groups[i].name);
        printf("%s%s %s: ", i ? "\n" : "", show_thousands(number, groups[i].count),
               term_count(&view->analysis->vocabulary, groups[i].count, view->one));
        show_plain(name);
        putchar('\n');
        table_histogram(&groups[i].columns[view->histogram.column]);
    }
}

static int by_column(const void *a, const void *b, void *column)
{
    trail_column by = *(const trail_column *)column;
    int64_t x = trail_times_column(&((const trail_group *)a)->times, by);
    int64_t y = trail_times_column(&((const trail_group *)b)->times, by);
    return ORDER(y, x);
}

int groups_show(const struct groups_view *view, const trail_group *groups, size_t count)
{
    trail_column sort = view->sort.column;
    size_t shown = groups_shown(view, count);
    if (count == 0)
        return EXIT_GOOD;
    trail_group *sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        return print_output_error("the table", ENOMEM);
    memcpy(sorted, groups, count * sizeof *sorted);
    qsort_r(sorted, count, sizeof *sorted, by_column, &sort);
    if (view->histogram.given && !view->percentiles.given)
        show_histograms(view, sorted, shown);
    else
        show_table(view, sorted, shown);
    print_more(shown, count);
    if (view->percentiles.given)
        show_spreads(view, sorted, shown);
    free(sorted);
    return EXIT_GOOD;
}

void groups_json(const struct analysis *analysis, struct json *json, const char *key,
                 const trail_group *groups, size_t count)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, NULL, '{');
        analysis_json_group(analysis, json, &groups[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void groups_json_list(const struct groups_view *view, const char *key, put_row *put,
                      const void *rows, size_t count)
{
    struct json json = analysis_json_begin(view->analysis);
    json_number(&json, "all", count);
    rows_json(view->analysis, &json, key, put, rows, 0,
              view->limit && view->limit < count ? view->limit : count);
    analysis_json_end(&json);
}

/* MARK: Goroutines */

struct groups_view groups_of_goroutines(struct analysis *analysis)
{
    return (struct groups_view){
        .analysis = analysis,
        .one = TERM_task,
        .title = "start_function<",
        .sort.column = TRAIL_COLUMN_EXEC,
    };
}

void groups_show_head(const struct groups_view *view, size_t groups)
{
    const trail_analysis_span *span = &view->analysis->span;
    char duration[SHOW_SIZE], count[32], alive[32];
    printf("%s %s, %s alive at the end", show_thousands(count, span->goroutines),
           term_count(&view->analysis->vocabulary, span->goroutines, TERM_task),
           show_thousands(alive, span->goroutines_alive));
    if (groups > 0)
        printf(", in %zu group%s", groups, plural_s(groups));
    printf(", in %s\n", show_duration(duration, span->end_ns - span->begin_ns));
}

int groups_show_goroutines(const struct groups_view *view)
{
    const trail_group *groups;
    size_t count = trail_analysis_groups(view->analysis->answers, &groups);
    if (view->analysis->json) {
        struct json json = analysis_json_begin(view->analysis);
        groups_json(view->analysis, &json, "groups", groups, count);
        analysis_json_end(&json);
        return EXIT_GOOD;
    }
    groups_show_head(view, count);
    return groups_show(view, groups, count);
}
