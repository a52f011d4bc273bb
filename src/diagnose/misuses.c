/* Misuses of annotations: see misuses.h. */
#include "diagnose/misuses.h"

#include "analyze/part.h"

static bool take_event(void *part, const trail_event *event)
{
    struct misuses *misuses = part;
    struct trail_analysis *analysis = misuses->analysis;
    if (!(event->flags & TRAIL_EVENT_MISUSED) || !analysis->counting || misuses->count++ > 0)
        return true;
    trail_string_handle name = event->log.category;
    misuses->what = "log";
    misuses->rule = "is outside every goroutine or names an unknown text";
    if (event->kind == TRAIL_TASK_BEGIN || event->kind == TRAIL_TASK_END) {
        misuses->what = "task";
        misuses->rule = event->kind == TRAIL_TASK_BEGIN ? "began with the ID of an open task"
                                                        : "ended outside every goroutine";
        name = event->task.type;
    } else if (event->kind != TRAIL_LOG) {
        misuses->what = "region";
        misuses->rule = event->kind == TRAIL_REGION_BEGIN
                            ? "began outside every goroutine"
                            : "ended although it was not the innermost open region of its "
                              "goroutine";
        name = event->region.type;
    }
    misuses->name = names_of(&analysis->names, name);
    misuses->stack = stacks_of(&analysis->stacks, event->stack);
    misuses->first = (trail_longest){
        .begin_ns = event->time_ns,
        .goroutine = event->goroutine,
    };
    return true;
}

static bool init(void *part, struct trail_analysis *analysis)
{
    struct misuses *misuses = part;
    misuses->analysis = analysis;
    return true;
}

static bool window_begins(void *part, int64_t ns)
{
    struct misuses *misuses = part;
    (void)ns;
    misuses->count = 0;
    return true;
}

const struct analysis_part misuses_part = {
    .what = TRAIL_ANALYZE_FINDINGS,
    .size = sizeof(struct misuses),
    .uses_stacks = true,
    .init = init,
    .window_begins = window_begins,
    .kinds = PART_TASKS | PART_REGIONS | PART_KIND(LOG),
    .event = take_event,
};
