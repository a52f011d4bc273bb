/* How long each state, range and task lasted, for printers. */
#include "timeline/spans.h"

/* Kinds of open spans, in the lowest bits of a key; the other bits are an ID. */
enum span_tag { SPAN_GOROUTINE, SPAN_TASK, SPAN_RANGE /* and the other three ranges */ };
#define SPAN_TAG_BITS 3

/*
 * No writer uses IDs so high that the shift loses bits. In a hostile file two spans may share a
 * key, which only gives wrong durations.
 */
static uint64_t span_key(unsigned tag, uint64_t id)
{
    return id << SPAN_TAG_BITS | tag;
}

static void span_begin(struct spans *spans, uint64_t key, int64_t time_ns)
{
    int64_t *begin_ns = objects_get(&spans->open, key);
    spans->failed |= !begin_ns;
    if (begin_ns)
        *begin_ns = time_ns;
}

/* Closes the span and returns its duration; -1 if it was not open. */
static int64_t span_end(struct spans *spans, uint64_t key, int64_t time_ns)
{
    const int64_t *begin_ns = objects_find(&spans->open, key);
    if (!begin_ns)
        return -1;
    int64_t lasted = (int64_t)((uint64_t)time_ns - (uint64_t)*begin_ns);
    objects_drop(&spans->open, key);
    return lasted;
}

static int64_t observe_transition(struct spans *spans, const trail_event *event)
{
    if (event->transition.resource != TRAIL_RESOURCE_GOROUTINE)
        return -1;
    uint64_t key = span_key(SPAN_GOROUTINE, (uint64_t)event->transition.id);
    unsigned from = event->transition.from, to = event->transition.to;
    /* The start of a state found at the start of the trace is unknown; a repeated state changes
     * nothing. */
    if (from == TRAIL_GO_UNDETERMINED || from == to)
        return -1;
    int64_t lasted = span_end(spans, key, event->time_ns);
    if (to != TRAIL_GO_NOT_EXIST)
        span_begin(spans, key, event->time_ns);
    return lasted;
}

int64_t spans_observe(struct spans *spans, const trail_event *event)
{
    switch (event->kind) {
    case TRAIL_STATE_TRANSITION:
        return observe_transition(spans, event);
    case TRAIL_RANGE_BEGIN:
        span_begin(spans,
                   span_key(SPAN_RANGE + event->range.range, (uint64_t)event->range.scope_id),
                   event->time_ns);
        return -1;
    case TRAIL_RANGE_END:
        return span_end(spans,
                        span_key(SPAN_RANGE + event->range.range, (uint64_t)event->range.scope_id),
                        event->time_ns);
    case TRAIL_TASK_BEGIN:
        span_begin(spans, span_key(SPAN_TASK, event->task.id), event->time_ns);
        return -1;
    case TRAIL_TASK_END:
        return span_end(spans, span_key(SPAN_TASK, event->task.id), event->time_ns);
    default:
        return -1;
    }
}

void spans_free(struct spans *spans)
{
    objects_free(&spans->open);
}
