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

/* Returns when a range began; one that is found open, with the generation. */
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

/* Whether the collection itself stops the world for that: what allocated meanwhile is not to blame. */
static bool is_for_collection(trail_string name)
{
    return memmem(name.data, name.size, "(GC", 3) != NULL;
}

static bool open_range(struct gc *gc, struct idmap *map, const trail_event *event)
{
    int64_t owner = event->range.scope_id;
    struct gc_open *open = idmap_find(map, (uint64_t)owner);
    if (open)
        return true; /* repeated in a later generation */
    open = slab_get(&gc->slab);
    if (!open)
        return false;
    *open = (struct gc_open){
        .owner = owner,
        .since_ns = range_since(gc, event),
        .name = names_of(&gc->analysis->names, event->range.name),
    };
    if (map == &gc->assists ||
        (map == &gc->stops && !is_for_collection(names_text(&gc->analysis->names, open->name))))
        open->function =
            stacks_function(&gc->analysis->stacks, stacks_of(&gc->analysis->stacks, event->stack));
    return idmap_put(map, (uint64_t)owner, open);
}

/* Counts an assist or a pause by its function. */
static bool count_helper(struct gc *gc, struct idmap *map, trail_name function, int64_t ns)
{
    struct gc_helper *helper = idmap_find(map, function);
    if (!helper) {
        helper = slab_get(&gc->helpers);
        if (!helper || !idmap_put(map, function, helper))
            return false;
        helper->function = function;
    }
    helper->count++;
    ns_add(&helper->ns, ns);
    return true;
}

static bool count_assist(struct gc *gc, const struct gc_open *open, int64_t ns)
{
    trail_gc_cycle *cycle = cycle_now(gc);
    if (!cycle || !count_helper(gc, &gc->by_function, open->function, ns))
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
        !count_helper(gc, &gc->stopped_by, open->function, ns_between(open->since_ns, end_ns)))
        return false;
    gc->pauses[gc->pause_count++] = (trail_gc_pause){
        .begin_ns = open->since_ns,
        .end_ns = end_ns,
        .goroutine = open->owner,
        .name = open->name,
    };
    return true;
}

static bool close_range(struct gc *gc, struct idmap *map, const trail_event *event)
{
    struct gc_open *open = idmap_remove(map, (uint64_t)event->range.scope_id);
    bool good = true;
    if (!open)
        return true;
    int64_t ns = ns_between(open->since_ns, event->time_ns);
    if (map == &gc->assists)
        good = count_assist(gc, open, ns);
    else if (map == &gc->sweeps)
        good = count_sweep(gc, ns, event->range.swept_bytes, event->range.reclaimed_bytes);
    else
        good = count_pause(gc, open, event->time_ns);
    slab_put(&gc->slab, open);
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
    struct idmap *map = event->range.range == TRAIL_RANGE_STW     ? &gc->stops
                        : event->range.range == TRAIL_RANGE_SWEEP ? &gc->sweeps
                                                                  : &gc->assists;
    return end ? close_range(gc, map, event) : open_range(gc, map, event);
}

/* MARK: Window and end */

static void clip(struct idmap *map, int64_t ns)
{
    IDMAP_EACH(slot, map)
        ((struct gc_open *)slot->value)->since_ns = ns;
}

static void clear_helpers(const struct idmap *helpers)
{
    IDMAP_EACH(slot, helpers) {
        struct gc_helper *helper = slot->value;
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
    IDMAP_EACH(slot, &gc->assists)
        if (!count_assist(gc, slot->value,
                          ns_between(((struct gc_open *)slot->value)->since_ns, ns)))
            return false;
    IDMAP_EACH(slot, &gc->sweeps)
        if (!count_sweep(gc, ns_between(((struct gc_open *)slot->value)->since_ns, ns), 0, 0))
            return false;
    IDMAP_EACH(slot, &gc->stops)
        if (!count_pause(gc, slot->value, ns))
            return false;
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis, void *const *needed)
{
    struct gc *gc = part;
    (void)needed;
    gc->analysis = analysis;
    gc->slab.object_size = sizeof(struct gc_open);
    gc->helpers.object_size = sizeof(struct gc_helper);
    return true;
}

static void drop(void *part)
{
    struct gc *gc = part;
    free(gc->cycles);
    free(gc->pauses);
    idmap_free(&gc->assists);
    idmap_free(&gc->sweeps);
    idmap_free(&gc->stops);
    slab_free(&gc->slab);
    idmap_free(&gc->by_function);
    idmap_free(&gc->stopped_by);
    slab_free(&gc->helpers);
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
