/* Sums up what a recording took and missed: see account.h. */
#include "collect/account.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"

/* MARK: Summaries */

void account_add(struct collect_summary *summary, struct collect *collect)
{
    struct collect_summary own;
    collect_summarize(collect, &own);
    collect_summary_add(summary, &own);
}

void account_summarize(const struct recorder *r, const struct recorded *process,
                       struct collect_summary *summary)
{
    *summary = process->summary;
    for (size_t i = 0; i < process->former_count; i++)
        account_add(summary, process->formers[i]);
    /* What is true of the program that it executes now. */
    if (process->collect) {
        summary->left = false;
        account_add(summary, process->collect);
    }
    summary->switches = *r->why_not ? r->why_not : NULL;
    summary->heap_wanted = r->options.heap;
    summary->lost_samples += samples_lost(r->samples);
    summary->lost_switches = switches_lost(r->switches);
    summary->lost_wakings = switches_lost_wakings(r->switches);
}

void account_summarize_all(const struct recorder *r, struct collect_summary *summary)
{
    struct collect_summary own;
    *summary = (struct collect_summary){0};
    for (const struct recorded *p = r->processes; p; p = p->next) {
        account_summarize(r, p, &own);
        collect_summary_add(summary, &own);
        summary->switches = own.switches;
        summary->heap_wanted = own.heap_wanted;
        summary->lost_switches = own.lost_switches;
        summary->lost_wakings = own.lost_wakings;
    }
    summary->lost_samples = samples_lost(r->samples);
    summary->wall_ns = trace_wall_ns(r->shared->trace);
    summary->most_threads = trace_most_threads(r->shared->trace);
    summary->left = false;
    if (r->program) {
        account_summarize(r, r->program, &own);
        summary->left = own.left;
    }
}

/* MARK: Rows of the trace */

int64_t account_cpu_ns(const struct recorded *process, const struct collect_summary *summary)
{
    return summary->switches ? process->cpu_ns : summary->running_ns;
}

static void write_process(const struct recorded *process, const struct collect_summary *summary,
                          struct trace *trace)
{
    trail_recorded row = {.what = TRAIL_RECORDED_PROCESS,
                          .pid = (uint64_t)process->pid,
                          .cpu_ns = account_cpu_ns(process, summary),
                          .recorder_ns = process->cost_ns,
                          .name = text_from(process->title)};
    trace_recorded(trace, &row);
    if (!summary->left)
        return;
    row.what = TRAIL_RECORDED_LEFT;
    row.cpu_ns = row.recorder_ns = 0;
    trace_recorded(trace, &row);
}

static void write_count(struct trace *trace, trail_recorded_what what, uint64_t count)
{
    if (count > 0)
        trace_recorded(trace, &(trail_recorded){.what = what, .count = count});
}

/* `late` counts executed programs that arrived too fast to list. */
static void write_missed(const struct recorder *r, uint64_t late, struct trace *trace)
{
    const struct executed_list *executed = &r->executed;
    write_count(trace, TRAIL_RECORDED_LATE, late);
    write_count(trace, TRAIL_RECORDED_UNKNOWN, executed->unknown);
    for (size_t i = 0; i < executed->count && executed->count > late; i++)
        trace_recorded(trace, &(trail_recorded){.what = TRAIL_RECORDED_MISSED,
                                                .pid = executed->items[i].pid,
                                                .name = text_from(executed->items[i].name)});
}

void account_write(const struct recorder *r, const struct recorded_trace *to)
{
    uint64_t late = 0;
    bool has_program = r->program && r->program->to == to;
    trace_recorded(to->trace,
                   &(trail_recorded){.what = TRAIL_RECORDED_RECORDER,
                                     .cpu_ns = (int64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID)});
    for (const struct recorded *p = r->processes; p; p = p->next) {
        struct collect_summary summary;
        account_summarize(r, p, &summary);
        late += summary.turned_away;
        if (p->to == to)
            write_process(p, &summary, to->trace);
    }
    if (has_program || to == r->shared)
        write_missed(r, late, to->trace);
}
