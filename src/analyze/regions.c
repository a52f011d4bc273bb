#include "analyze/regions.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/text.h"
#include "wire/wire.h"

/* One allocation each, followed by the lists of `at_begin`. */
struct open_region {
    struct open_region *outer;
    trail_region region;
    trail_times at_begin; /* the goroutine's times at the start */
    trail_named_time lists[];
};

static struct open_region *open_region_make(const trail_times *at_begin)
{
    size_t blocks = at_begin->block_count, ranges = at_begin->range_count;
    struct open_region *open = malloc(sizeof *open + (blocks + ranges) * sizeof *open->lists);
    if (!open)
        return NULL;
    *open = (struct open_region){.at_begin = *at_begin};
    open->at_begin.block = open->lists;
    open->at_begin.range = open->lists + blocks;
    if (blocks > 0)
        memcpy(open->lists, at_begin->block, blocks * sizeof *open->lists);
    if (ranges > 0)
        memcpy(open->lists + blocks, at_begin->range, ranges * sizeof *open->lists);
    return open;
}

static bool region_begin(struct regions *regions, struct goroutine *g, const trail_event *event)
{
    trail_times now;
    arena_reset(&regions->analysis->scratch);
    if (!goroutine_times(&regions->analysis->goroutines, g, event->time_ns, NULL,
                         &regions->analysis->scratch, &now))
        return false;
    struct open_region *open = open_region_make(&now);
    if (!open)
        return false;
    open->outer = g->region;
    g->region = open;
    open->region = (trail_region){
        .goroutine = g->id,
        .task = event->region.task,
        .name = names_of(&regions->analysis->names, event->region.type),
        .has_start = true,
        .start_ns = event->time_ns,
    };
    return true;
}

/* A goroutine created inside a region inherits it as a nameless region of the same task. */
static bool inherit(void *part, struct goroutine *g, const trail_event *event)
{
    const struct regions *regions = part;
    const struct goroutine *creator =
        goroutines_find(&regions->analysis->goroutines, event->goroutine);
    if (event->transition.from != TRAIL_GO_NOT_EXIST || !creator || !creator->region ||
        creator == g)
        return true;
    static const trail_times none;
    struct open_region *open = open_region_make(&none);
    if (!open)
        return false;
    open->region = (trail_region){
        .goroutine = g->id,
        .task = creator->region->region.task,
        .has_start = true,
        .is_inherited = true,
        .start_ns = event->time_ns,
    };
    g->region = open;
    return true;
}

/* Keeps where the time of a region went, if it is the slowest of its name. */
static bool note_slowest(struct regions *regions, const trail_region *region)
{
    const trail_times *times = &region->times;
    struct region_slowest *slowest = objects_find(&regions->slowest, region->name);
    if (slowest && times->total_ns <= slowest->span.ns)
        return true;
    if (!slowest && !(slowest = objects_get(&regions->slowest, region->name)))
        return false;
    *slowest = (struct region_slowest){
        .span = {times->total_ns, region->start_ns, region->goroutine},
        .spent = {.known = true, .exec_ns = times->exec_ns, .ready_ns = times->sched_wait_ns},
    };
    for (uint32_t i = 0; i < times->range_count; i++)
        if (text_is(names_text(&regions->analysis->names, times->range[i].name), "GC mark assist"))
            slowest->spent.assist_ns = times->range[i].ns;
    return true;
}

/* Ends a region: makes its row, or adds it to its group. */
static bool region_row(struct regions *regions, struct goroutine *g, trail_region *region,
                       const trail_times *at_begin, int64_t now)
{
    bool keep = wants(regions->analysis, TRAIL_ANALYZE_REGIONS);
    if (!analysis_region_ends(regions->analysis, g, region, now))
        return false;
    if (!regions->analysis->counting ||
        !wants(regions->analysis, TRAIL_ANALYZE_REGIONS | TRAIL_ANALYZE_REGION_GROUPS))
        return true;
    arena_reset(&regions->analysis->scratch);
    if (!goroutine_times(&regions->analysis->goroutines, g, now, at_begin,
                         keep ? &regions->analysis->rows_arena : &regions->analysis->scratch,
                         &region->times))
        return false;
    if (keep) {
        if (!APPEND(regions->rows, regions->capacity, regions->count, *region))
            return false;
    }
    return !wants(regions->analysis, TRAIL_ANALYZE_REGION_GROUPS) ||
           (note_slowest(regions, region) &&
            groups_add(&regions->groups, region->name, &region->times, !region->has_end));
}

/*
 * Removes the region that ends: the innermost, or the one that a misused end names. NULL if there
 * is none.
 */
static struct open_region *take_ended(struct goroutine *g, const trail_event *event,
                                      const trail_region *ended)
{
    struct open_region **at = &g->region, *none = NULL;
    if (event->flags & TRAIL_EVENT_MISUSED)
        for (unsigned i = 0;
             *at && ((*at)->region.name != ended->name || (*at)->region.task != ended->task); i++)
            at = i < WIRE_REGION_DEPTH ? &(*at)->outer : &none;
    struct open_region *open = *at;
    if (open)
        *at = open->outer;
    return open;
}

static bool region_end(struct regions *regions, struct goroutine *g, const trail_event *event)
{
    trail_region region = {
        .goroutine = g->id,
        .task = event->region.task,
        .name = names_of(&regions->analysis->names, event->region.type),
    };
    struct open_region *open = take_ended(g, event, &region);
    if (open)
        region = open->region;
    else if (event->flags & TRAIL_EVENT_MISUSED)
        return true; /* it never began */
    region.has_end = true;
    region.end_ns = event->time_ns;
    bool good = region_row(regions, g, &region, open ? &open->at_begin : NULL, event->time_ns);
    free(open);
    return good;
}

static bool take_event(void *part, const trail_event *event)
{
    struct regions *regions = part;
    struct goroutine *g = goroutines_find(&regions->analysis->goroutines, event->goroutine);
    if (!g || !regions->wanted)
        return true;
    return event->kind == TRAIL_REGION_BEGIN ? region_begin(regions, g, event)
                                             : region_end(regions, g, event);
}

/* The goroutine has ended, and so have its regions, unless it is a goroutine of the runtime. */
static bool end_all(void *part, struct goroutine *g, int64_t now, int64_t end_ns)
{
    struct regions *regions = part;
    bool good = true,
         keep = !trail_is_system_goroutine(names_text(&regions->analysis->names, g->name));
    while (g->region) {
        struct open_region *open = g->region;
        open->region.has_end = end_ns != 0;
        open->region.end_ns = end_ns;
        if (keep && good)
            good = region_row(regions, g, &open->region, &open->at_begin, now);
        g->region = open->outer;
        free(open);
    }
    return good;
}

/* Whether they end, and when, is unknown. */
static bool lose_all(void *part, struct goroutine *g, int64_t now)
{
    return end_all(part, g, now, 0);
}

static bool window_begins(void *part, int64_t ns)
{
    const struct regions *regions = part;
    (void)ns;
    IDMAP_VALUES(const struct goroutine, g, &regions->analysis->goroutines.follow.alive) {
        for (struct open_region *open = g->region; open; open = open->outer)
            open->at_begin = (trail_times){0};
    }
    return true;
}

static int by_goroutine_and_start(const void *a, const void *b)
{
    const trail_region *x = a, *y = b;
    return ORDER(x->goroutine, y->goroutine) ?: ORDER(x->has_start, y->has_start) ?:
           ORDER(x->start_ns, y->start_ns) ?: ORDER(x->end_ns, y->end_ns);
}

static bool finish(void *part, int64_t ns)
{
    struct regions *regions = part;
    (void)ns;
    if (regions->count > 0)
        qsort(regions->rows, regions->count, sizeof *regions->rows, by_goroutine_and_start);
    return groups_finish(&regions->groups);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct regions *regions = part;
    unsigned rows = TRAIL_ANALYZE_REGIONS | TRAIL_ANALYZE_REGION_GROUPS | TRAIL_ANALYZE_TASKS;
    regions->analysis = analysis;
    regions->wanted = wants(analysis, rows) || (wants(analysis, TRAIL_ANALYZE_PROFILES) &&
                                                profile_by_region(&analysis->options.profile));
    regions->slowest = OBJECTS_OF(struct region_slowest);
    regions->groups.distributions = wants(analysis, TRAIL_ANALYZE_DISTRIBUTIONS);
    return true;
}

static void drop(void *part)
{
    struct regions *regions = part;
    IDMAP_VALUES(const struct goroutine, g, &regions->analysis->goroutines.follow.alive) {
        for (struct open_region *outer, *open = g->region; open; open = outer) {
            outer = open->outer;
            free(open);
        }
    }
    free(regions->rows);
    groups_clear(&regions->groups);
    objects_free(&regions->slowest);
}

const struct analysis_part regions_part = {
    .what = TRAIL_ANALYZE_REGIONS | TRAIL_ANALYZE_REGION_GROUPS | TRAIL_ANALYZE_TASKS |
            TRAIL_ANALYZE_PROFILES,
    .size = sizeof(struct regions),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .window_begins = window_begins,
    .finish = finish,
    .kinds = PART_REGIONS,
    .event = take_event,
    .begins = inherit,
    .ends = end_all,
    .lost = lose_all,
};

size_t trail_analysis_regions(const trail_analysis *analysis, const trail_region **rows)
{
    const struct regions *regions = analysis_object(analysis, &regions_part);
    *rows = regions ? regions->rows : NULL;
    return regions ? regions->count : 0;
}

size_t trail_analysis_region_groups(const trail_analysis *analysis, const trail_group **rows)
{
    const struct regions *regions = analysis_object(analysis, &regions_part);
    *rows = regions ? regions->groups.rows : NULL;
    return regions ? regions->groups.count : 0;
}
