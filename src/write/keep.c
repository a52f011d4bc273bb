#include "write/keep.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/idmap.h"
#include "base/search.h"
#include "wire/wire.h"

bool keep_has(const struct keep *keep, int64_t goroutine)
{
    size_t at = SEARCH(i, 0, keep->count, keep->goroutines[i] < goroutine);
    return at < keep->count && keep->goroutines[at] == goroutine;
}

/* Handles the first of the three events of a switch, a wake-up. */
static bool keep_switch(struct keep *keep, trail_event *e)
{
    bool from = keep_has(keep, e->goroutine), to = keep_has(keep, e->transition.id);
    keep->split = from != to;
    if (keep->split && to)
        e->wire = V2_GoUnblock;
    return to;
}

static bool keep_transition(struct keep *keep, trail_event *e)
{
    bool implied = e->flags & TRAIL_EVENT_IMPLIED;
    if (e->transition.resource != TRAIL_RESOURCE_GOROUTINE) {
        /* A goroutine leaves its P without an event of its own: without the goroutine, the P's
         * event is needed. */
        if (implied && !keep_has(keep, e->goroutine))
            e->flags = 0;
        return true;
    }
    if (e->wire == V2_GoSwitch || e->wire == V2_GoSwitchDestroy)
        return keep_switch(keep, e);
    if (implied && keep->split) {
        e->flags = 0;
        keep->split = e->wire != V2_GoStart;
    }
    return keep_has(keep, e->transition.id);
}

bool keep_event(struct keep *keep, trail_event *e)
{
    switch (e->kind) {
    case TRAIL_STATE_TRANSITION:
        return keep_transition(keep, e);
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        return e->range.scope != TRAIL_RESOURCE_GOROUTINE || keep_has(keep, e->range.scope_id);
    case TRAIL_LABEL:
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
    case TRAIL_LOG:
    case TRAIL_STACK_SAMPLE:
        return keep_has(keep, e->goroutine);
    default:
        return true;
    }
}

/* MARK: Which goroutines are kept */

/* Whether it is kept with any goroutine: garbage collection, GOMAXPROCS. */
static bool is_of_all(const trail_event *e)
{
    if (e->kind == TRAIL_METRIC)
        return e->metric.metric == TRAIL_METRIC_GOMAXPROCS;
    bool range =
        e->kind == TRAIL_RANGE_BEGIN || e->kind == TRAIL_RANGE_ACTIVE || e->kind == TRAIL_RANGE_END;
    return range && (e->range.range == TRAIL_RANGE_STW || e->range.range == TRAIL_RANGE_GC);
}

static bool has_part(const struct keep *keep, const trail_event *e)
{
    if (e->goroutine == TRAIL_NONE)
        return false;
    if (e->kind != TRAIL_STATE_TRANSITION)
        return is_of_all(e);
    return e->transition.resource == TRAIL_RESOURCE_GOROUTINE && keep_has(keep, e->transition.id);
}

static int ascending(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* Returns the IDs of both, ascending; NULL on out of memory. */
static int64_t *join(const struct keep *keep, const struct idmap *more, size_t *count)
{
    int64_t *all = calloc(keep->count + more->count + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < keep->count; i++)
        all[n++] = keep->goroutines[i];
    for (size_t i = 0; more->slots && i <= more->mask; i++)
        if (more->slots[i].value)
            all[n++] = (int64_t)more->slots[i].id;
    qsort(all, n, sizeof *all, ascending);
    *count = n;
    return all;
}

int trail_convert_related(trail_reader *reader, const int64_t *goroutines, size_t count,
                          int64_t **related, size_t *related_count, trail_error *err)
{
    struct keep keep = {.goroutines = goroutines, .count = count};
    struct idmap more = {0};
    const trail_event *events;
    bool memory = true;
    long got;
    while (memory && (got = trail_reader_next_batch(reader, &events)) > 0)
        for (long i = 0; i < got && memory; i++)
            if (has_part(&keep, &events[i]) && !keep_has(&keep, events[i].goroutine))
                memory = idmap_put(&more, (uint64_t)events[i].goroutine, reader);
    *related = memory ? join(&keep, &more, related_count) : NULL;
    idmap_free(&more);
    if (!*related) {
        error_set(err, TRAIL_NO_MEMORY, "out of memory for a list of goroutines");
        return -1;
    }
    if (got < 0)
        *err = *trail_reader_error(reader);
    return got < 0 ? -1 : 0;
}
