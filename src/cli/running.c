#include "cli/running.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/spark.h"

enum { MOST_LINES = 32 };

static int longest_first(const void *a, const void *b)
{
    const struct running *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

void running_show(const struct analysis *analysis, const char *letter, struct running *rows,
                  size_t count)
{
    char length[SHOW_SIZE];
    int64_t slice_ns, whole = analysis->span.end_ns - analysis->span.begin_ns;
    size_t slices = trail_analysis_thread_slices(analysis->answers, &slice_ns);
    size_t shown = count < MOST_LINES ? count : MOST_LINES;
    if (count == 0 || slices == 0)
        return;
    if (shown < count)
        qsort(rows, count, sizeof *rows, longest_first);
    printf("\nrunning, over %s:\n", show_duration(length, whole));
    for (size_t i = 0; i < shown; i++) {
        struct spark spark = {rows[i].slices, slices, slice_ns, whole};
        printf("%s %6" PRId64 " ", letter, rows[i].id);
        spark_line(&spark, 1);
        printf(" %.1f %%\n", whole > 0 ? 100 * (double)rows[i].ns / (double)whole : 0);
    }
    if (shown < count)
        printf("... and %zu more that ran less\n", count - shown);
}

void running_json(const struct analysis *analysis, struct json *json, const int64_t *slices)
{
    int64_t slice_ns;
    size_t count = trail_analysis_thread_slices(analysis->answers, &slice_ns);
    json_open(json, "running_slices_ns", '[');
    for (size_t i = 0; slices && i < count; i++)
        json_signed(json, NULL, slices[i]);
    json_close(json, ']');
}
