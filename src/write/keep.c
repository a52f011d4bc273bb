/* Selects the events of some goroutines: see keep.h. */
#include "write/keep.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/search.h"
#include "wire/merged_ids.h"
#include "wire/wire.h"

static bool keep_has(const struct keep *keep, int64_t goroutine)
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
        /* A goroutine leaves its P without an event of its own: if the goroutine is left out, the
         * P's event is needed. */
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

/* Whether the event is kept whichever goroutines are: garbage collection, GOMAXPROCS. */
static bool is_of_all(const trail_event *e)
{
    if (e->kind == TRAIL_METRIC)
        return e->metric.metric == TRAIL_METRIC_GOMAXPROCS;
    bool range =
        e->kind == TRAIL_RANGE_BEGIN || e->kind == TRAIL_RANGE_ACTIVE || e->kind == TRAIL_RANGE_END;
    return range && (e->range.range == TRAIL_RANGE_STW || e->range.range == TRAIL_RANGE_GC);
}

/* Whether the event creates or wakes a goroutine that is kept. */
static bool has_part(const struct keep *keep, const trail_event *e)
{
    return e->kind == TRAIL_STATE_TRANSITION &&
           e->transition.resource == TRAIL_RESOURCE_GOROUTINE && keep_has(keep, e->transition.id);
}

/* Goroutines related to those that are kept. */
struct related {
    struct idmap parts;  /* that created or woke one of them */
    struct idmap common; /* that worked for their whole program: garbage collection, GOMAXPROCS */
    bool merged;         /* the trace contains several programs */
};

/* Whether goroutines of the program of `id` are kept. All goroutines of a program are in its
 * block. */
static bool is_of_kept(const struct keep *keep, int64_t id)
{
    uint64_t block = id_block(id);
    size_t at = SEARCH(i, 0, keep->count, id_block(keep->goroutines[i]) < block);
    return at < keep->count && id_block(keep->goroutines[at]) == block;
}

/* Returns false if out of memory. */
static bool relate(struct related *related, const struct keep *keep, const trail_event *e)
{
    bool part = has_part(keep, e), common = !part && is_of_all(e);
    /* Such thread numbers occur in merged traces, or on macOS: there, too, the first 10^9
     * goroutines of a program are one block. */
    related->merged |= e->thread != TRAIL_NONE && id_block(e->thread) > 0;
    if ((!part && !common) || e->goroutine == TRAIL_NONE || keep_has(keep, e->goroutine))
        return true;
    return idmap_put(part ? &related->parts : &related->common, (uint64_t)e->goroutine, related);
}

/* Returns the IDs of all these goroutines, sorted as numbers and unique; NULL if out of memory. */
static int64_t *join(const struct keep *keep, const struct related *related, size_t *count)
{
    const struct idmap *parts = &related->parts, *common = &related->common;
    int64_t *all = calloc(keep->count + parts->count + common->count + 1, sizeof *all);
    size_t n = 0;
    if (!all)
        return NULL;
    for (size_t i = 0; i < keep->count; i++)
        all[n++] = keep->goroutines[i];
    IDMAP_EACH(slot, parts)
        all[n++] = (int64_t)slot->id;
    IDMAP_EACH(slot, common) {
        int64_t id = (int64_t)slot->id;
        if (!idmap_find(parts, (uint64_t)id) && (!related->merged || is_of_kept(keep, id)))
            all[n++] = id;
    }
    qsort(all, n, sizeof *all, order_numbers);
    *count = n;
    return all;
}

int trail_convert_related(trail_reader *reader, const int64_t *goroutines, size_t count,
                          int64_t **related, size_t *related_count, trail_error *err)
{
    struct keep keep = {.goroutines = goroutines, .count = count};
    struct related found = {0};
    const trail_event *events;
    bool memory = true;
    long got;
    while (memory && (got = trail_reader_next_batch(reader, &events)) > 0)
        for (long i = 0; i < got && memory; i++)
            memory = relate(&found, &keep, &events[i]);
    *related = memory ? join(&keep, &found, related_count) : NULL;
    idmap_free(&found.parts);
    idmap_free(&found.common);
    if (!*related) {
        error_no_memory(err);
        return -1;
    }
    if (got < 0)
        *err = *trail_reader_error(reader);
    return got < 0 ? -1 : 0;
}
