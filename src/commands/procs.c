/*
 * trail procs: what each P did: ran goroutines, was kept by system calls, looked for work, was
 * idle.
 */
#include "base/share.h"
#include "ui/analysis.h"
#include "ui/running.h"

static const struct option rows[] = {
    ANALYSIS_ROWS,
    {0},
};

static struct running get(const void *list, size_t i)
{
    const trail_proc *p = (const trail_proc *)list + i;
    return (struct running){p->id, p->running_ns, TRAIL_NONE, p->running_slices};
}

static void put_json(const struct analysis *analysis, struct json *json, const void *list, size_t i)
{
    (void)analysis;
    const trail_proc *p = (const trail_proc *)list + i;
    json_signed(json, "running_ns", p->running_ns);
    json_signed(json, "syscall_ns", p->syscall_ns);
    json_signed(json, "other_ns", p->other_ns);
    json_signed(json, "idle_ns", p->idle_ns);
    json_number(json, "runs", p->runs);
    json_number(json, "syscalls", p->syscalls);
    json_number(json, "taken", p->taken);
    json_number(json, "starts", p->starts);
}

static void put_cells(const struct analysis *analysis, struct table *table, const void *list,
                      size_t i)
{
    const trail_proc *p = (const trail_proc *)list + i;
    table_duration(table, p->running_ns);
    table_duration(table, p->syscall_ns);
    table_duration(table, p->other_ns);
    table_duration(table, p->idle_ns);
    table_percent(table, share_of(p->running_ns, analysis->span.end_ns - analysis->span.begin_ns));
    table_number(table, p->runs);
    table_number(table, p->syscalls);
    table_number(table, p->taken);
    table_number(table, p->starts);
}

static const struct running_kind kind = {
    .one = TERM_slot,
    .id = TERM_slot_id,
    .list = "procs",
    .titles =
        "{slot_column}> running> syscall> other> idle> running> runs> syscalls> taken> starts>",
    .get = get,
    .json = put_json,
    .cells = put_cells,
};

static int show(void *context)
{
    const struct analysis *analysis = context;
    const trail_proc *list;
    size_t count = trail_analysis_procs(analysis->answers, &list);
    return running_show(analysis, &kind, list, count);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct analysis analysis = {.command = command, .options.what = TRAIL_ANALYZE_THREADS};
    return analysis_answer(&analysis, analysis_parse(&analysis, argc, argv), show, &analysis);
}

const struct command command_procs = {
    COMMAND_ROW(procs),
    .synopsis = "[options] FILE",
    .details =
        "A row a P: how long goroutines ran on it, how long it was kept by one in a system call, "
        "in use otherwise (looking for work, the runtime's own), and idle; and how often.",
    .examples = "  trail procs app.trace\n"
                "  trail procs --from=1s --to=+200ms --json app.trace",
    .options = rows,
    .run = run,
    .wrapped = true,
};
