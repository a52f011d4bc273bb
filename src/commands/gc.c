/*
 * trail gc: cycles of garbage collection, stop-the-world pauses, assists and sweeps.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/quantile.h"
#include "report/overview.h"
#include "ui/empty.h"
#include "ui/follow_up.h"
#include "ui/rows.h"
#include "ui/spark.h"

struct request {
    struct analysis analysis;
    size_t limit;
    const trail_gc_cycle *cycles;
    const trail_gc_pause *pauses;
    size_t cycle_count, pause_count;
};

static const struct option rows[] = {
    {'n', "limit", "N", "at most N cycles, and as many pauses (default 20; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Columns */

static void put_cycle(struct row *row, const void *of)
{
    const trail_gc_cycle *cycle = of;
    int64_t begin, end;
    bool known = overview_marked(&row->analysis->span, cycle, &begin, &end);
    row_time_or(row, "cycle_at>", "begin_ns", cycle->has_begin ? cycle->begin_ns : 0,
                cycle->has_begin, "before");
    row_time(row, NULL, "end_ns", cycle->has_end ? cycle->end_ns : 0);
    row_duration(row, "marking>", NULL, known ? end - begin : 0);
    row_bytes(row, "heap>", "heap_at_begin_bytes", cycle->heap_at_begin);
    row_bytes(row, NULL, "heap_at_end_bytes", cycle->heap_at_end);
    row_bytes(row, "goal>", "heap_goal_bytes", cycle->heap_goal);
    row_bytes(row, "heap_after>", NULL, cycle->heap_at_end);
    row_number(row, "assists>", "assists", cycle->assists);
    row_duration(row, "time>", "assist_ns", cycle->assist_ns);
    row_duration(row, "longest>", "longest_assist_ns", cycle->longest_assist_ns);
    row_number(row, "sweeps>", "sweeps", cycle->sweeps);
    row_duration(row, "time>", "sweep_ns", cycle->sweep_ns);
    row_bytes(row, NULL, "swept_bytes", cycle->swept_bytes);
    row_bytes(row, "reclaimed>", "reclaimed_bytes", cycle->reclaimed_bytes);
}

static void put_pause(struct row *row, const void *of)
{
    const trail_gc_pause *pause = of;
    char text[FOLLOW_UP_SIZE];
    row_name(row, NULL, "name", pause->name);
    row_time(row, "at>", "begin_ns", pause->begin_ns);
    row_time(row, NULL, "end_ns", pause->end_ns);
    row_duration(row, "for>", NULL, pause_length(pause));
    row_id(row, "by_G>", "goroutine", pause->goroutine);
    row_name(row, "why<", NULL, pause->name);
    row_word(row, "to_see_it<", NULL,
             follow_up_of(row->analysis, TRAIL_NONE, pause->begin_ns, pause_length(pause), text));
}

static void show_json(const struct request *request)
{
    struct json json = analysis_json_begin(&request->analysis);
    rows_json(&request->analysis, &json, "cycles", put_cycle, request->cycles,
              sizeof *request->cycles, request->cycle_count);
    rows_json(&request->analysis, &json, "pauses", put_pause, request->pauses,
              sizeof *request->pauses, request->pause_count);
    analysis_json_end(&json);
}

/* MARK: For people */

/* Prints the command that shows the longest mark phase. */
static void show_longest_cycle(const struct request *request)
{
    int64_t begin, end, longest_begin = 0, longest = 0;
    char command[FOLLOW_UP_SIZE];
    for (size_t i = 0; i < request->cycle_count; i++)
        if (overview_marked(&request->analysis.span, &request->cycles[i], &begin, &end) &&
            end - begin > longest) {
            longest_begin = begin;
            longest = end - begin;
        }
    if (longest > 0)
        printf("the longest: %s\n",
               follow_up_of(&request->analysis, TRAIL_NONE, longest_begin, longest, command));
}

static void show_cycles(const struct request *request)
{
    if (request->cycle_count == 0) {
        fputs(EMPTY_GC, stdout);
        return;
    }
    rows_show(&request->analysis, put_cycle, request->cycles, sizeof *request->cycles,
              request->cycle_count, request->limit);
    show_longest_cycle(request);
}

/* Marking is shown as a share of the time; pauses are so short that the worst column is scaled to
 * be full. */
static void show_times(const struct request *request)
{
    const trail_analysis_span *span = &request->analysis.span;
    struct spark_pieces marking, stopped;
    char total[SHOW_SIZE], most[SHOW_SIZE], piece[SHOW_SIZE];
    int64_t begin, end, sum = 0, worst = 0;
    spark_begin(&marking, span->begin_ns, span->end_ns);
    spark_begin(&stopped, span->begin_ns, span->end_ns);
    for (size_t i = 0; i < request->cycle_count; i++) {
        if (!overview_marked(&request->analysis.span, &request->cycles[i], &begin, &end))
            continue;
        spark_cover(&marking, begin, end);
        sum += end - begin;
    }
    for (size_t i = 0; i < request->pause_count; i++)
        spark_cover(&stopped, request->pauses[i].begin_ns, request->pauses[i].end_ns);
    for (size_t i = 0; i < SPARK_WIDTH; i++)
        worst = stopped.ns[i] > worst ? stopped.ns[i] : worst;
    struct spark marks = spark_of(&marking), stops = spark_of(&stopped);
    printf("\nmarking  ");
    spark_line(&marks, 1);
    printf(" %s in all\nstopped  ", show_duration(total, sum));
    spark_line(&stops, (double)worst / (double)stops.piece_ns);
    printf(" at most %s of %s\n", show_duration(most, worst), show_duration(piece, stops.piece_ns));
}

static int longest_first(const void *a, const void *b)
{
    const trail_gc_pause *p = a, *q = b;
    return ORDER(pause_length(q), pause_length(p)) ?: ORDER(p->begin_ns, q->begin_ns);
}

/* The pauses are sorted, longest first. */
static int64_t pause_quantile(const trail_gc_pause *sorted, size_t count, double q)
{
    return count > 0 ? pause_length(&sorted[count - 1 - quantile_index(q, count)]) : 0;
}

static void show_pauses(const struct request *request, const trail_gc_pause *sorted)
{
    size_t count;
    int64_t total;
    char sum[SHOW_SIZE], p50[SHOW_SIZE], p99[SHOW_SIZE];
    (void)overview_pauses(request->analysis.answers, &count, &total);
    printf("\n%zu stop-the-world pause%s, %s in all (p50 %s, p99 %s); longest first:\n", count,
           plural_s(count), show_duration(sum, total),
           show_duration(p50, pause_quantile(sorted, count, 0.5)),
           show_duration(p99, pause_quantile(sorted, count, 0.99)));
    rows_show(&request->analysis, put_pause, sorted, sizeof *sorted, count, request->limit);
}

static int show(void *context)
{
    struct request *request = context;
    const trail_analysis *answers = request->analysis.answers;
    request->cycle_count = trail_analysis_gc_cycles(answers, &request->cycles);
    request->pause_count = trail_analysis_gc_pauses(answers, &request->pauses);
    if (request->analysis.json) {
        show_json(request);
        return EXIT_GOOD;
    }
    show_cycles(request);
    if (request->cycle_count > 0 || request->pause_count > 0)
        show_times(request);
    if (request->pause_count == 0)
        return EXIT_GOOD;
    trail_gc_pause *sorted = calloc(request->pause_count, sizeof *sorted);
    if (!sorted)
        return exit_no_memory();
    for (size_t i = 0; i < request->pause_count; i++)
        sorted[i] = request->pauses[i];
    qsort(sorted, request->pause_count, sizeof *sorted, longest_first);
    show_pauses(request, sorted);
    free(sorted);
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command, .options.what = TRAIL_ANALYZE_GC},
                              .limit = 20};
    int code = analysis_parse(&request.analysis, argc, argv);
    return analysis_answer(&request.analysis, code, show, &request);
}

const struct command command_gc = {
    COMMAND_ROW(gc),
    .synopsis = "[options] FILE",
    .details =
        "Shows each cycle: its mark phase, the heap, the assists that goroutines had to do and "
        "the sweeps after it; and the stop-the-world pauses, with their lengths and reasons.",
    .examples = "  trail gc app.trace\n"
                "  trail gc --from=1s --to=+200ms app.trace\n"
                "  trail gc --json app.trace | jq '[.pauses[] | .end_ns - .begin_ns] | max'",
    .wrapped = true,
};
