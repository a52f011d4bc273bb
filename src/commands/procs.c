/*
 * trail procs: what each P did: ran goroutines, was held by system calls, looked for work, was
 * idle.
 */
#include "base/share.h"
#include "ui/analysis.h"
#include "ui/running.h"

static const struct option rows[] = {
    ANALYSIS_ROWS,
    {0},
};

static struct running get(const void *of)
{
    const trail_proc *p = of;
    return (struct running){p->id, p->running_ns, TRAIL_NONE, p->running_slices};
}

static void put(struct row *row, const void *of)
{
    const trail_proc *p = of;
    const trail_analysis_span *span = &row->analysis->span;
    row_id(row, "{slot_column}>", "id", p->id);
    row_duration(row, "running>", "running_ns", p->running_ns);
    row_duration(row, "syscall>", "syscall_ns", p->syscall_ns);
    row_duration(row, "other>", "other_ns", p->other_ns);
    row_duration(row, "idle>", "idle_ns", p->idle_ns);
    row_share(row, "running>", share_of(p->running_ns, span->end_ns - span->begin_ns));
    row_number(row, "runs>", "runs", p->runs);
    row_number(row, "syscalls>", "syscalls", p->syscalls);
    row_number(row, "taken>", "taken", p->taken);
    row_number(row, "starts>", "starts", p->starts);
    running_json_slices(row, p->running_slices);
}

static const struct running_kind kind = {
    .one = TERM_slot,
    .id = TERM_slot_id,
    .list = "procs",
    .size = sizeof(trail_proc),
    .get = get,
    .put = put,
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
    .details = "One row per P: how long goroutines ran on it, how long a goroutine in a system "
               "call kept it, how long it was otherwise in use (looking for work, or running the "
               "runtime itself) or idle; and how often.",
    .examples = "  trail procs app.trace\n"
                "  trail procs --from=1s --to=+200ms --json app.trace",
    .wrapped = true,
};
