#include "analyze/gc.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "base/grow.h"

/* An open range. */
struct gc_open {
    int64_t owner; /* goroutine or P; the slab needs at least the size of a pointer */
    int64_t since_ns;
    trail_name name;
    trail_name function; /* of an assist, or of a pause that is not for the collection */
};

/* MARK: Cycles */

/* The cycle that events now belong to; without one, a cycle that began before the trace. */
static trail_gc_cycle *cycle_now(struct gc *gc)
{
    if (gc->cycle_count > 0)
        return &gc->cycles[gc->cycle_count - 1];
    if (!GROW(gc->cycles, gc->cycle_capacity, 1))
        return NULL;
    gc->cycles[gc->cycle_count++] = (trail_gc_cycle){0};
    return gc->cycles;
}

/* Returns when a range began; one that is found open began with the generation. */
static int64_t range_since(const struct gc *gc, const trail_event *event)
{
    const struct goroutines *all = &gc->analysis->goroutines;
    return event->kind == TRAIL_RANGE_ACTIVE ? counted_since(all, all->follow.sync_ns)
                                             : event->time_ns;
}

/* Returns the last cycle if all that is known of it is that assists belonged to it, or NULL. */
static trail_gc_cycle *cycle_of_assists(const struct gc *gc)
{
    if (gc->cycle_count == 0)
        return NULL;
    trail_gc_cycle *last = &gc->cycles[gc->cycle_count - 1];
    return last->has_begin || last->has_end ? NULL : last;
}

static bool cycle_begin(struct gc *gc, const trail_event *event)
{
    bool known = event->kind == TRAIL_RANGE_BEGIN;
    if (gc->marking)
        return true; /* repeated in a later generation */
    gc->marking = true;
    trail_gc_cycle *found_open = known ? NULL : cycle_of_assists(gc);
    if (found_open) {
        found_open->begin_ns = range_since(gc, event);
        return true;
    }
    if (!GROW(gc->cycles, gc->cycle_capacity, gc->cycle_count + 1))
        return false;
    gc->cycles[gc->cycle_count++] = (trail_gc_cycle){
        .has_begin = known,
        .begin_ns = range_since(gc, event),
        .heap_at_begin = gc->heap,
        .heap_goal = gc->goal,
    };
    return true;
}

static bool cycle_end(struct gc *gc, const trail_event *event)
{
    trail_gc_cycle *cycle = cycle_now(gc);
    if (!cycle)
        return false;
    cycle->has_end = true;
    cycle->end_ns = event->time_ns;
    cycle->heap_at_end = gc->heap;
    gc->marking = false;
    return true;
}

/* MARK: Assists, sweeps, pauses */

/* Whether the collection itself stops the world then: what allocates meanwhile is not to blame. */
static bool is_for_collection(trail_string name)
{
    return memmem(name.data, name.size, "(GC", 3) != NULL;
}

/* The function of the event; where Go did not record that, the goroutine's start function. */
static trail_name function_of(struct gc *gc, const trail_event *event)
{
    struct stacks *stacks = &gc->analysis->stacks;
    trail_name function = stacks_function(stacks, stacks_of(stacks, event->stack));
    const struct goroutine *g =
        function ? NULL : goroutines_find(&gc->analysis->goroutines, event->goroutine);
    return g ? g->name : function;
}

static bool open_range(struct gc *gc, struct objects *ranges, const trail_event *event)
{
    uint64_t owner = (uint64_t)event->range.scope_id;
    if (objects_find(ranges, owner))
        return true; /* repeated in a later generation */
    struct gc_open *open = objects_get(ranges, owner);
    if (!open)
        return false;
    *open = (struct gc_open){
        .owner = event->range.scope_id,
        .since_ns = range_since(gc, event),
        .name = names_of(&gc->analysis->names, event->range.name),
    };
    if (ranges == &gc->assists ||
        (ranges == &gc->stops && !is_for_collection(names_text(&gc->analysis->names, open->name))))
        open->function = function_of(gc, event);
    return true;
}

/* Counts an assist or a pause by its function. */
static bool count_helper(struct objects *helpers, trail_name function, int64_t ns)
{
    struct gc_helper *helper = objects_get(helpers, function);
    if (!helper)
        return false;
    helper->function = function;
    helper->count++;
    ns_add(&helper->ns, ns);
    return true;
}

static bool count_assist(struct gc *gc, const struct gc_open *open, int64_t ns)
{
    trail_gc_cycle *cycle = cycle_now(gc);
    if (!cycle || !count_helper(&gc->by_function, open->function, ns))
        return false;
    cycle->assists++;
    ns_add(&cycle->assist_ns, ns);
    if (ns > cycle->longest_assist_ns)
        cycle->longest_assist_ns = ns;
    return true;
}

static bool count_sweep(struct gc *gc, int64_t ns, uint64_t swept, uint64_t reclaimed)
{
    trail_gc_cycle *cycle = cycle_now(gc);
    if (!cycle)
        return false;
    cycle->sweeps++;
    ns_add(&cycle->sweep_ns, ns);
    cycle->swept_bytes += swept;
    cycle->reclaimed_bytes += reclaimed;
    return true;
}

static bool count_pause(struct gc *gc, const struct gc_open *open, int64_t end_ns)
{
    if (!GROW(gc->pauses, gc->pause_capacity, gc->pause_count + 1) ||
        !count_helper(&gc->stopped_by, open->function, ns_between(open->since_ns, end_ns)))
        return false;
    gc->pauses[gc->pause_count++] = (trail_gc_pause){
        .begin_ns = open->since_ns,
        .end_ns = end_ns,
        .goroutine = open->owner,
        .name = open->name,
    };
    return true;
}

static bool close_range(struct gc *gc, struct objects *ranges, const trail_event *event)
{
    const struct gc_open *open = objects_find(ranges, (uint64_t)event->range.scope_id);
    bool good = true;
    if (!open)
        return true;
    int64_t ns = ns_between(open->since_ns, event->time_ns);
    if (ranges == &gc->assists)
        good = count_assist(gc, open, ns);
    else if (ranges == &gc->sweeps)
        good = count_sweep(gc, ns, event->range.swept_bytes, event->range.reclaimed_bytes);
    else
        good = count_pause(gc, open, event->time_ns);
    objects_drop(ranges, (uint64_t)event->range.scope_id);
    return good;
}

static bool take_event(void *part, const trail_event *event)
{
    struct gc *gc = part;
    if (event->kind == TRAIL_METRIC) {
        if (event->metric.metric == TRAIL_METRIC_HEAP_LIVE)
            gc->heap = event->metric.value;
        if (event->metric.metric == TRAIL_METRIC_HEAP_GOAL)
            gc->goal = event->metric.value;
        return true;
    }
    bool end = event->kind == TRAIL_RANGE_END;
    if (event->range.range == TRAIL_RANGE_GC)
        return end ? cycle_end(gc, event) : cycle_begin(gc, event);
    struct objects *ranges = event->range.range == TRAIL_RANGE_STW     ? &gc->stops
                             : event->range.range == TRAIL_RANGE_SWEEP ? &gc->sweeps
                                                                       : &gc->assists;
    return end ? close_range(gc, ranges, event) : open_range(gc, ranges, event);
}

/* MARK: Window and end */

static void clip(const struct objects *ranges, int64_t ns)
{
    IDMAP_EACH(slot, &ranges->map)
        ((struct gc_open *)slot->value)->since_ns = ns;
}

static void clear_helpers(const struct objects *helpers)
{
    IDMAP_VALUES(struct gc_helper, helper, &helpers->map) {
        *helper = (struct gc_helper){.function = helper->function};
    }
}

/* Only open ranges remain. */
static bool window_begins(void *part, int64_t ns)
{
    struct gc *gc = part;
    gc->pause_count = 0;
    clear_helpers(&gc->by_function);
    clear_helpers(&gc->stopped_by);
    clip(&gc->assists, ns);
    clip(&gc->sweeps, ns);
    clip(&gc->stops, ns);
    if (gc->marking) {
        trail_gc_cycle last = gc->cycles[gc->cycle_count - 1];
        gc->cycles[0] = (trail_gc_cycle){.has_begin = last.has_begin,
                                         .begin_ns = last.begin_ns,
                                         .heap_at_begin = last.heap_at_begin,
                                         .heap_goal = last.heap_goal};
        gc->cycle_count = 1;
    } else {
        gc->cycle_count = 0;
    }
    return true;
}

/* Ends open ranges. */
static bool finish(void *part, int64_t ns)
{
    struct gc *gc = part;
    IDMAP_EACH(slot, &gc->assists.map)
        if (!count_assist(gc, slot->value,
                          ns_between(((struct gc_open *)slot->value)->since_ns, ns)))
            return false;
    IDMAP_EACH(slot, &gc->sweeps.map)
        if (!count_sweep(gc, ns_between(((struct gc_open *)slot->value)->since_ns, ns), 0, 0))
            return false;
    IDMAP_EACH(slot, &gc->stops.map)
        if (!count_pause(gc, slot->value, ns))
            return false;
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct gc *gc = part;
    gc->analysis = analysis;
    gc->assists = gc->sweeps = gc->stops = OBJECTS_OF(struct gc_open);
    gc->by_function = gc->stopped_by = OBJECTS_OF(struct gc_helper);
    return true;
}

static void drop(void *part)
{
    struct gc *gc = part;
    free(gc->cycles);
    free(gc->pauses);
    objects_free(&gc->assists);
    objects_free(&gc->sweeps);
    objects_free(&gc->stops);
    objects_free(&gc->by_function);
    objects_free(&gc->stopped_by);
}

const struct analysis_part gc_part = {
    .what = TRAIL_ANALYZE_GC,
    .size = sizeof(struct gc),
    .uses_stacks = true,
    .init = init,
    .free = drop,
    .window_begins = window_begins,
    .finish = finish,
    .kinds = PART_RANGES | PART_KIND(METRIC),
    .event = take_event,
};

size_t trail_analysis_gc_cycles(const trail_analysis *analysis, const trail_gc_cycle **rows)
{
    const struct gc *gc = analysis_object(analysis, &gc_part);
    *rows = gc ? gc->cycles : NULL;
    return gc && analysis->counting ? gc->cycle_count : 0;
}

size_t trail_analysis_gc_pauses(const trail_analysis *analysis, const trail_gc_pause **rows)
{
    const struct gc *gc = analysis_object(analysis, &gc_part);
    *rows = gc ? gc->pauses : NULL;
    return gc && analysis->counting ? gc->pause_count : 0;
}
