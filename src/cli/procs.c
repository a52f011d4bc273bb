/*
 * trail procs: what each P did: ran goroutines, was kept in system calls, looked for work, idle.
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

static void show_json(const struct analysis *analysis, const trail_proc *procs, size_t count)
{
    struct json json = {0};
    int64_t slice_ns;
    (void)trail_analysis_thread_slices(analysis->answers, &slice_ns);
    json_open(&json, NULL, '{');
    json_signed(&json, "begin_ns", analysis->span.begin_ns);
    json_signed(&json, "end_ns", analysis->span.end_ns);
    json_signed(&json, "slice_ns", slice_ns);
    json_open(&json, "procs", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(&json, NULL, '{');
        json_signed(&json, "id", procs[i].id);
        json_signed(&json, "running_ns", procs[i].running_ns);
        json_signed(&json, "syscall_ns", procs[i].syscall_ns);
        json_signed(&json, "other_ns", procs[i].other_ns);
        json_signed(&json, "idle_ns", procs[i].idle_ns);
        json_number(&json, "runs", procs[i].runs);
        json_number(&json, "syscalls", procs[i].syscalls);
        json_number(&json, "taken", procs[i].taken);
        json_number(&json, "starts", procs[i].starts);
        running_json(analysis, &json, procs[i].running_slices);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_close(&json, '}');
    putchar('\n');
}

static void show_table(const struct analysis *analysis, const trail_proc *procs, size_t count)
{
    struct table table;
    char text[32];
    double whole = (double)(analysis->span.end_ns - analysis->span.begin_ns);
    table_begin(&table,
                "P> running> syscall> other> idle> running> runs> syscalls> taken> starts>");
    for (size_t i = 0; i < count; i++) {
        const trail_proc *p = &procs[i];
        (void)snprintf(text, sizeof text, "%" PRId64, p->id);
        table_word(&table, text);
        table_duration(&table, p->running_ns);
        table_duration(&table, p->syscall_ns);
        table_duration(&table, p->other_ns);
        table_duration(&table, p->idle_ns);
        table_percent(&table, whole > 0 ? (double)p->running_ns / whole : 0);
        table_number(&table, p->runs);
        table_number(&table, p->syscalls);
        table_number(&table, p->taken);
        table_number(&table, p->starts);
    }
    table_print(&table);
}

static int show_running(const struct analysis *analysis, const trail_proc *procs, size_t count)
{
    struct running *list = calloc(count + 1, sizeof *list);
    if (!list)
        return EXIT_INOUT;
    for (size_t i = 0; i < count; i++)
        list[i] = (struct running){procs[i].id, procs[i].running_ns, procs[i].running_slices};
    running_show(analysis, "P", list, count);
    free(list);
    return EXIT_GOOD;
}

static int show(void *context)
{
    const struct analysis *analysis = context;
    const trail_proc *procs;
    size_t count = trail_analysis_procs(analysis->answers, &procs);
    if (analysis->json) {
        show_json(analysis, procs, count);
        return EXIT_GOOD;
    }
    show_table(analysis, procs, count);
    return show_running(analysis, procs, count);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct analysis analysis = {.command = command, .options.what = TRAIL_ANALYZE_THREADS};
    return analysis_answer(&analysis, analysis_parse(&analysis, argc, argv), show, &analysis);
}

const struct command command_procs = {
    .name = "procs",
    .summary = "what each P did: ran goroutines, kept in system calls, idle",
    .synopsis = "[options] FILE",
    .details =
        "A row a P: how long goroutines ran on it, how long it was kept by one in a system call, "
        "in use\n"
        "otherwise (looking for work, the runtime's own), and idle; and how often.",
    .examples = "  trail procs app.trace\n"
                "  trail procs --from=1s --to=+200ms --json app.trace",
    .options = rows,
    .run = run,
};
