#include "analyze/regions.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/pass.h"
#include "base/grow.h"

/* One allocation each, with the lists of `at_begin` behind it. */
struct open_region {
    struct open_region *outer;
    trail_region region;
    trail_times at_begin; /* where the goroutine's time had gone by then */
    trail_named_time lists[];
};

static bool wanted(const struct trail_analysis *analysis)
{
    return wants(analysis,
                 TRAIL_ANALYZE_REGIONS | TRAIL_ANALYZE_REGION_GROUPS | TRAIL_ANALYZE_TASKS) ||
           (wants(analysis, TRAIL_ANALYZE_PROFILES) &&
            profile_by_region(&analysis->options.profile));
}

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

static bool region_begin(struct trail_analysis *analysis, struct goroutine *g,
                         const trail_event *event)
{
    trail_times now;
    arena_reset(&analysis->scratch);
    if (!goroutine_times(&analysis->goroutines, g, event->time_ns, NULL, &analysis->scratch, &now))
        return false;
    struct open_region *open = open_region_make(&now);
    if (!open)
        return false;
    open->outer = g->region;
    g->region = open;
    open->region = (trail_region){
        .goroutine = g->id,
        .task = event->region.task,
        .name = names_of(&analysis->names, event->region.type),
        .has_start = true,
        .start_ns = event->time_ns,
    };
    return true;
}

bool regions_inherit(struct trail_analysis *analysis, struct goroutine *g, const trail_event *event)
{
    const struct goroutine *creator = goroutines_find(&analysis->goroutines, event->goroutine);
    if (!creator || !creator->region || creator == g)
        return true;
    static const trail_times none;
    struct open_region *open = open_region_make(&none);
    if (!open)
        return false;
    open->region = (trail_region){
        .goroutine = g->id,
        .task = creator->region->region.task,
        .has_start = true,
        .start_ns = event->time_ns,
    };
    g->region = open;
    return true;
}

/* The region is over; its row is made, and it is folded into its group. */
static bool region_row(struct trail_analysis *analysis, struct goroutine *g, trail_region *region,
                       const trail_times *at_begin, int64_t now)
{
    struct regions *regions = &analysis->regions;
    bool keep = wants(analysis, TRAIL_ANALYZE_REGIONS);
    if (wants(analysis, TRAIL_ANALYZE_PROFILES) && !profile_region(analysis, g, region, now))
        return false;
    if (!analysis->counting ||
        !wants(analysis, TRAIL_ANALYZE_REGIONS | TRAIL_ANALYZE_REGION_GROUPS))
        return true;
    arena_reset(&analysis->scratch);
    if (!goroutine_times(&analysis->goroutines, g, now, at_begin,
                         keep ? &analysis->rows_arena : &analysis->scratch, &region->times))
        return false;
    if (keep) {
        if (!GROW(regions->rows, regions->capacity, regions->count + 1))
            return false;
        regions->rows[regions->count++] = *region;
    }
    return !wants(analysis, TRAIL_ANALYZE_REGION_GROUPS) ||
           groups_add(&regions->groups, region->name, &region->times, !region->has_end);
}

static bool region_end(struct trail_analysis *analysis, struct goroutine *g,
                       const trail_event *event)
{
    struct open_region *open = g->region;
    trail_region region = {
        .goroutine = g->id,
        .task = event->region.task,
        .name = names_of(&analysis->names, event->region.type),
    };
    if (open) {
        region = open->region;
        g->region = open->outer;
    }
    region.has_end = true;
    region.end_ns = event->time_ns;
    bool good = region_row(analysis, g, &region, open ? &open->at_begin : NULL, event->time_ns);
    free(open);
    return good;
}

bool regions_event(struct trail_analysis *analysis, const trail_event *event)
{
    struct goroutine *g = goroutines_find(&analysis->goroutines, event->goroutine);
    bool begin = event->kind == TRAIL_REGION_BEGIN;
    if (!g || !wanted(analysis))
        return true;
    if (wants(analysis, TRAIL_ANALYZE_TASKS) && (begin || !g->region) &&
        !tasks_region(analysis, event->region.task, g->id))
        return false;
    return begin ? region_begin(analysis, g, event) : region_end(analysis, g, event);
}

bool regions_end_with(struct trail_analysis *analysis, struct goroutine *g, int64_t now,
                      int64_t end_ns)
{
    bool good = true, keep = !trail_is_system_goroutine(names_text(&analysis->names, g->name));
    while (g->region) {
        struct open_region *open = g->region;
        open->region.has_end = end_ns != 0;
        open->region.end_ns = end_ns;
        if (keep && good)
            good = region_row(analysis, g, &open->region, &open->at_begin, now);
        g->region = open->outer;
        free(open);
    }
    return good;
}

void regions_count_from(struct goroutine *g)
{
    for (struct open_region *open = g->region; open; open = open->outer)
        open->at_begin = (trail_times){0};
}

static int by_goroutine_and_start(const void *a, const void *b)
{
    const trail_region *x = a, *y = b;
    if (x->goroutine != y->goroutine)
        return x->goroutine < y->goroutine ? -1 : 1;
    if (x->has_start != y->has_start)
        return x->has_start ? 1 : -1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->end_ns < y->end_ns ? -1 : x->end_ns > y->end_ns;
}

void regions_finish(struct trail_analysis *analysis)
{
    struct regions *regions = &analysis->regions;
    struct goroutine_rows *goroutines = &analysis->rows;
    if (regions->count == 0)
        return;
    qsort(regions->rows, regions->count, sizeof *regions->rows, by_goroutine_and_start);
    size_t at = 0;
    for (size_t i = 0; i < goroutines->count; i++) {
        trail_goroutine *g = &goroutines->items[i];
        while (at < regions->count && regions->rows[at].goroutine < g->id)
            at++;
        g->regions = regions->rows + at;
        while (at < regions->count && regions->rows[at].goroutine == g->id)
            at++;
        g->region_count = (uint32_t)(regions->rows + at - g->regions);
    }
}

void regions_free_open(struct goroutine *g)
{
    while (g->region) {
        struct open_region *open = g->region;
        g->region = open->outer;
        free(open);
    }
}

void regions_free(struct regions *regions)
{
    free(regions->rows);
    groups_clear(&regions->groups);
}
