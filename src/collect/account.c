#include "collect/account.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "collect/recorder.h"

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

/* As many of those that were executed as came too fast are counted there. */
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
        recorder_summarize(r, p, &summary);
        late += summary.turned_away;
        if (p->to == to)
            write_process(p, &summary, to->trace);
    }
    if (has_program || to == r->shared)
        write_missed(r, late, to->trace);
}
