/*
 * trail threads: what each thread (M) did: ran goroutines, was in system calls, or idle.
 */
#include "base/share.h"
#include "ui/cpu_limits.h"
#include "ui/groups.h"
#include "ui/running.h"

static const struct option rows[] = {
    ANALYSIS_ROWS,
    {0},
};

static struct running get(const void *list, size_t i)
{
    const trail_thread *m = (const trail_thread *)list + i;
    return (struct running){m->id, m->running_ns, m->goroutine, m->running_slices};
}

static void put_json(const struct analysis *analysis, struct json *json, const void *list, size_t i)
{
    const trail_thread *m = (const trail_thread *)list + i;
    json_signed(json, "first_ns", m->first_ns);
    json_signed(json, "last_ns", m->last_ns);
    json_signed(json, "running_ns", m->running_ns);
    json_signed(json, "syscall_ns", m->syscall_ns);
    json_signed(json, "idle_ns", m->idle_ns);
    json_number(json, "runs", m->runs);
    json_number(json, "syscalls", m->syscalls);
    json_number(json, "procs", m->procs);
    json_number(json, "events", m->events);
    cpu_limits_json_thread(analysis->reader, json, m->id);
}

static void put_cells(const struct analysis *analysis, struct table *table, const void *list,
                      size_t i)
{
    const trail_thread *m = (const trail_thread *)list + i;
    table_duration(table, m->first_ns - analysis->span.origin_ns);
    table_duration(table, m->running_ns);
    table_duration(table, m->syscall_ns);
    table_duration(table, m->idle_ns);
    table_percent(table, share_of(m->running_ns, analysis->span.end_ns - m->first_ns));
    table_number(table, m->runs);
    table_number(table, m->syscalls);
    table_number(table, m->procs);
    table_number(table, m->events);
}

static const struct running_kind kind = {
    .one = TERM_machine,
    .id = TERM_machine_id,
    .list = "threads",
    .titles = "{machine_column}> seen_at> running> syscall> idle> running> runs> syscalls> "
              "{slots_taken}> "
              "events>",
    .get = get,
    .json = put_json,
    .cells = put_cells,
};

static int show(void *context)
{
    struct analysis *analysis = context;
    const trail_thread *list;
    size_t count = trail_analysis_threads(analysis->answers, &list);
    if (analysis->json || analysis->vocabulary.of != TRAIL_MADE_BY_RECORD)
        return running_show(analysis, &kind, list, count);
    /* A goroutine is a thread: print what trail goroutines prints. */
    struct groups_view view = groups_of_goroutines(analysis);
    int code = groups_show_goroutines(&view);
    if (code == EXIT_GOOD)
        code = running_lines(analysis, &kind, list, count);
    if (code == EXIT_GOOD)
        cpu_limits_show_threads(analysis->reader);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct analysis analysis = {.command = command, .options.what = TRAIL_ANALYZE_THREADS};
    int code = analysis_parse(&analysis, argc, argv);
    /* What made the trace is known only after reading it. */
    if (!analysis.json && analysis.options.words != TRAIL_WORDS_GO)
        analysis.options.what |= TRAIL_ANALYZE_GROUPS;
    return analysis_answer(&analysis, code, show, &analysis);
}

const struct command command_threads = {
    COMMAND_ROW(threads),
    .synopsis = "[options] FILE",
    .details =
        "A row a thread (M), from its first event on: how long goroutines ran on it or were in "
        "system calls, how often, and how often it took a P.",
    .examples = "  trail threads app.trace\n"
                "  trail threads --from=1s --to=+200ms --json app.trace",
    .options = rows,
    .run = run,
    .wrapped = true,
};
