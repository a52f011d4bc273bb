/* Sums up what a recording took and missed: see account.h. */
#include "collect/account.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "collect/other_ends.h"

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
    /* These hold only for the program that the process executes now. */
    if (process->collect) {
        summary->left = false;
        account_add(summary, process->collect);
    }
    summary->switches = *r->why_not ? r->why_not : NULL;
    summary->infers_ready = process->to && trace_infers_ready(process->to->trace);
    summary->heap_wanted = r->options.heap;
    summary->lost_samples += samples_lost(r->samples);
    summary->paused = r->switch_pause.length_ns > 0;
    summary->lost_switches = switches_lost(r->switches);
    summary->lost_wakings = switches_lost_wakings(r->switches);
}

/* A process that polls only to wait for others polls rarely; one that serves them polls more
 * often. */
#define FEW_WAITS 4

bool account_only_waits(const struct collect_summary *summary)
{
    int64_t for_others = summary->wait_ns[SHM_CHILD] + summary->wait_ns[SHM_SIGNAL];
    int64_t all = summary->running_ns + summary->ready_ns;
    if (summary->waits <= FEW_WAITS)
        for_others += summary->wait_ns[SHM_POLL];
    for (int i = SHM_NO_WAIT + 1; i < SHM_WAITS; i++)
        all += summary->wait_ns[i];
    return summary->most_threads <= 1 && for_others > all - for_others &&
           summary->running_ns < all / 10;
}

/* Clears times and places; keeps the counts. */
static void leave_times_out(struct collect_summary *summary)
{
    summary->running_ns = summary->spun_ns = summary->ready_ns = 0;
    summary->short_ns = summary->moments_ns = 0;
    memset(summary->wait_ns, 0, sizeof summary->wait_ns);
    memset(summary->worst, 0, sizeof summary->worst);
}

/* Whether the program only waits while a process that it started does not. */
static bool program_only_waits(const struct recorder *r)
{
    bool program = false, others = false;
    for (const struct recorded *p = r->processes; p; p = p->next) {
        struct collect_summary own;
        account_summarize(r, p, &own);
        if (p == r->program)
            program = account_only_waits(&own);
        else
            others |= !account_only_waits(&own);
    }
    return program && others;
}

size_t account_summarize_all(const struct recorder *r, struct collect_summary *summary)
{
    struct collect_summary own;
    bool only_waits = program_only_waits(r);
    size_t left_out = 0;
    *summary = (struct collect_summary){0};
    for (const struct recorded *p = r->processes; p; p = p->next) {
        account_summarize(r, p, &own);
        if (only_waits && account_only_waits(&own)) {
            leave_times_out(&own);
            left_out++;
        }
        collect_summary_add(summary, &own);
        summary->switches = own.switches;
        summary->infers_ready = own.infers_ready;
        summary->heap_wanted = own.heap_wanted;
        summary->paused = own.paused;
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
    return left_out;
}

/* MARK: Rows of the trace */

int64_t account_cpu_ns(const struct recorded *process, const struct collect_summary *summary)
{
    int64_t read_ns = process->cpu_ns - process->cpu_before_ns;
    bool exact = !summary->switches && summary->unseen_ns == 0;
    return exact || read_ns <= 0 ? summary->running_ns + summary->spun_ns : read_ns;
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
    row.count = process->why;
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
                                                .count = executed->items[i].why,
                                                .name = text_from(executed->items[i].name)});
}

void account_write(const struct recorder *r, const struct recorded_trace *to)
{
    uint64_t late = 0;
    bool has_program = r->program && r->program->to == to;
    trace_recorded(to->trace,
                   &(trail_recorded){.what = TRAIL_RECORDED_RECORDER,
                                     .cpu_ns = (int64_t)clock_ns(CLOCK_PROCESS_CPUTIME_ID)});
    cpu_limits_write(&to->cpus, to->trace);
    other_ends_write(to);
    write_count(to->trace, TRAIL_RECORDED_READY, trace_infers_ready(to->trace));
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
