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

static struct running get(const void *of)
{
    const trail_thread *m = of;
    return (struct running){m->id, m->running_ns, m->goroutine, m->running_slices};
}

/* In recordings of trail record each thread is a goroutine. */
static bool has_goroutine(const struct row *row, const trail_thread *m)
{
    const trail_maker *maker = trail_reader_maker(row->analysis->reader);
    return maker && maker->made_by == TRAIL_MADE_BY_RECORD && m->goroutine != TRAIL_NONE;
}

static void put(struct row *row, const void *of)
{
    const trail_thread *m = of;
    row_id(row, "{machine_column}>", "id", m->id);
    if (has_goroutine(row, m))
        row_id(row, NULL, "goroutine", m->goroutine);
    row_time(row, "seen_at>", "first_ns", m->first_ns);
    row_time(row, NULL, "last_ns", m->last_ns);
    row_duration(row, "running>", "running_ns", m->running_ns);
    row_duration(row, "syscall>", "syscall_ns", m->syscall_ns);
    row_duration(row, "idle>", "idle_ns", m->idle_ns);
    row_share(row, "running>", share_of(m->running_ns, row->analysis->span.end_ns - m->first_ns));
    row_number(row, "runs>", "runs", m->runs);
    row_number(row, "syscalls>", "syscalls", m->syscalls);
    row_number(row, "{slots_taken}>", "procs", m->procs);
    row_number(row, "events>", "events", m->events);
    if (row->json)
        cpu_limits_json_thread(row->analysis->reader, row->json, m->id);
    running_json_slices(row, m->running_slices);
}

static const struct running_kind kind = {
    .one = TERM_machine,
    .id = TERM_machine_id,
    .list = "threads",
    .size = sizeof(trail_thread),
    .get = get,
    .put = put,
};

static int show(void *context)
{
    struct analysis *analysis = context;
    const trail_thread *list;
    size_t count = trail_analysis_threads(analysis->answers, &list);
    if (analysis->json || analysis->vocabulary.of != TRAIL_MADE_BY_RECORD)
        return running_show(analysis, &kind, list, count);
    /* A goroutine is a thread here: prints what trail goroutines prints. */
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
        "One row per thread (M), from its first event on: how long goroutines ran on it or were in "
        "system calls, how often, and how often it took a P.",
    .examples = "  trail threads app.trace\n"
                "  trail threads --from=1s --to=+200ms --json app.trace",
    .wrapped = true,
};
