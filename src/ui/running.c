/* What Ps and threads did over time: tables, lines, JSON. */
#include "ui/running.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/share.h"
#include "ui/spark.h"

enum { MOST_LINES = 32 };

void running_json_slices(struct row *row, const int64_t *slices)
{
    int64_t slice_ns;
    size_t count = trail_analysis_thread_slices(row->analysis->answers, &slice_ns);
    if (!row->json)
        return;
    json_open(row->json, "running_slices_ns", '[');
    for (size_t i = 0; slices && i < count; i++)
        json_signed(row->json, NULL, slices[i]);
    json_close(row->json, ']');
}

static void show_json(const struct analysis *analysis, const struct running_kind *kind,
                      const void *rows, size_t count)
{
    struct json json = json_on_stdout();
    int64_t slice_ns;
    (void)trail_analysis_thread_slices(analysis->answers, &slice_ns);
    json_open(&json, NULL, '{');
    json_signed(&json, "begin_ns", analysis->span.begin_ns);
    json_signed(&json, "end_ns", analysis->span.end_ns);
    json_signed(&json, "slice_ns", slice_ns);
    rows_json(analysis, &json, kind->list, kind->put, rows, kind->size, count);
    analysis_json_end(&json);
}

static int longest_first(const void *a, const void *b)
{
    const struct running *x = a, *y = b;
    return ORDER(y->ns, x->ns) ?: ORDER(x->id, y->id);
}

/* Returns the width of the longest task number, but at least 4. */
static int task_width(const struct running *list, size_t count)
{
    int width = 4;
    for (size_t i = 0; i < count; i++) {
        int digits = snprintf(NULL, 0, "%" PRId64, list[i].task);
        width = list[i].task != TRAIL_NONE && digits > width ? digits : width;
    }
    return width;
}

/* In recordings of trail record each thread is a task. */
static void put_task(const struct analysis *analysis, const struct running *running, int width)
{
    if (analysis->vocabulary.of == TRAIL_MADE_BY_RECORD && running->task != TRAIL_NONE)
        printf("%s%-*" PRId64 " ", term(&analysis->vocabulary, TERM_task_id), width, running->task);
}

/* Sorts the list if it is too long to be shown in full. */
static void show_lines(const struct analysis *analysis, const char *letter, struct running *list,
                       size_t count)
{
    char length[SHOW_SIZE], part[SHOW_SIZE];
    int64_t slice_ns, whole = analysis->span.end_ns - analysis->span.begin_ns;
    size_t slices = trail_analysis_thread_slices(analysis->answers, &slice_ns);
    size_t shown = count < MOST_LINES ? count : MOST_LINES;
    if (count == 0 || slices == 0)
        return;
    if (shown < count)
        qsort(list, count, sizeof *list, longest_first);
    printf("\nrunning, over %s:\n", show_duration(length, whole));
    int width = task_width(list, shown);
    for (size_t i = 0; i < shown; i++) {
        struct spark spark = {list[i].slices, slices, slice_ns, whole};
        put_task(analysis, &list[i], width);
        printf("%s%6" PRId64 " ", letter, list[i].id);
        spark_line(&spark, 1);
        printf(" %s\n", show_percent(part, percent_of(list[i].ns, whole)));
    }
    if (shown < count)
        printf("... and %zu more that ran less\n", count - shown);
}

int running_show(const struct analysis *analysis, const struct running_kind *kind, const void *rows,
                 size_t count)
{
    if (analysis->json) {
        show_json(analysis, kind, rows, count);
        return EXIT_GOOD;
    }
    if (count == 0) {
        analysis_nothing_ran(analysis, kind->one);
        return EXIT_GOOD;
    }
    rows_show(analysis, kind->put, rows, kind->size, count, SIZE_MAX);
    return running_lines(analysis, kind, rows, count);
}

int running_lines(const struct analysis *analysis, const struct running_kind *kind,
                  const void *rows, size_t count)
{
    struct running *list = calloc(count + 1, sizeof *list);
    if (!list)
        return exit_no_memory();
    for (size_t i = 0; i < count; i++)
        list[i] = kind->get((const char *)rows + i * kind->size);
    show_lines(analysis, term(&analysis->vocabulary, kind->id), list, count);
    free(list);
    return EXIT_GOOD;
}
