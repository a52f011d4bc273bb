/*
 * trail threads: what each thread (M) did: ran goroutines, was in system calls, or idle.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/analysis.h"
#include "cli/running.h"
#include "cli/table.h"

static const struct option rows[] = {
    ANALYSIS_ROWS,
    {0},
};

static void show_json(const struct analysis *analysis, const trail_thread *threads, size_t count)
{
    struct json json = {0};
    int64_t slice_ns;
    (void)trail_analysis_thread_slices(analysis->answers, &slice_ns);
    json_open(&json, NULL, '{');
    json_signed(&json, "begin_ns", analysis->span.begin_ns);
    json_signed(&json, "end_ns", analysis->span.end_ns);
    json_signed(&json, "slice_ns", slice_ns);
    json_open(&json, "threads", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(&json, NULL, '{');
        json_signed(&json, "id", threads[i].id);
        json_signed(&json, "first_ns", threads[i].first_ns);
        json_signed(&json, "last_ns", threads[i].last_ns);
        json_signed(&json, "running_ns", threads[i].running_ns);
        json_signed(&json, "syscall_ns", threads[i].syscall_ns);
        json_signed(&json, "idle_ns", threads[i].idle_ns);
        json_number(&json, "runs", threads[i].runs);
        json_number(&json, "syscalls", threads[i].syscalls);
        json_number(&json, "procs", threads[i].procs);
        json_number(&json, "events", threads[i].events);
        running_json(analysis, &json, threads[i].running_slices);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    putchar('\n');
}

static void show_table(const struct analysis *analysis, const trail_thread *threads, size_t count)
{
    struct table table;
    char text[32];
    table_begin(&table, "M> seen_at> running> syscall> idle> running> runs> syscalls> Ps_taken> "
                        "events>");
    for (size_t i = 0; i < count; i++) {
        const trail_thread *m = &threads[i];
        double whole = (double)(analysis->span.end_ns - m->first_ns);
        (void)snprintf(text, sizeof text, "%" PRId64, m->id);
        table_word(&table, text);
        table_duration(&table, m->first_ns - analysis->span.origin_ns);
        table_duration(&table, m->running_ns);
        table_duration(&table, m->syscall_ns);
        table_duration(&table, m->idle_ns);
        table_percent(&table, whole > 0 ? (double)m->running_ns / whole : 0);
        table_number(&table, m->runs);
        table_number(&table, m->syscalls);
        table_number(&table, m->procs);
        table_number(&table, m->events);
    }
    table_print(&table);
}

static int show_running(const struct analysis *analysis, const trail_thread *threads, size_t count)
{
    struct running *list = calloc(count + 1, sizeof *list);
    if (!list)
        return EXIT_INOUT;
    for (size_t i = 0; i < count; i++)
        list[i] = (struct running){threads[i].id, threads[i].running_ns, threads[i].running_slices};
    running_show(analysis, "M", list, count);
    free(list);
    return EXIT_GOOD;
}

static int show(void *context)
{
    const struct analysis *analysis = context;
    const trail_thread *threads;
    size_t count = trail_analysis_threads(analysis->answers, &threads);
    if (analysis->json) {
        show_json(analysis, threads, count);
        return EXIT_GOOD;
    }
    show_table(analysis, threads, count);
    return show_running(analysis, threads, count);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct analysis analysis = {.command = command, .options.what = TRAIL_ANALYZE_THREADS};
    return analysis_answer(&analysis, analysis_parse(&analysis, argc, argv), show, &analysis);
}

const struct command command_threads = {
    .name = "threads",
    .summary = "what each thread did: ran goroutines, was in system calls, idle",
    .synopsis = "[options] FILE",
    .details =
        "A row a thread (M), from its first event on: how long goroutines ran on it or were in "
        "system\n"
        "calls, how often, and how often it took a P.",
    .examples = "  trail threads app.trace\n"
                "  trail threads --from=1s --to=+200ms --json app.trace",
    .options = rows,
    .run = run,
};
