/*
 * Rows of goroutines: a row for each goroutine that has ended, or one for all with the same start
 * function.
 */
#include <stdlib.h>

#include "analyze/groups.h"
#include "analyze/part.h"
#include "analyze/regions.h"
#include "base/grow.h"
#include "base/order.h"

struct goroutine_rows {
    struct trail_analysis *analysis;
    const struct regions *regions; /* NULL: not requested */
    trail_goroutine *items;
    size_t count, capacity;
    struct groups groups;
};

static bool keep_row(struct goroutine_rows *rows, const struct goroutine *g,
                     const trail_times *times, int64_t end_ns)
{
    if (!GROW(rows->items, rows->capacity, rows->count + 1))
        return false;
    rows->items[rows->count++] = (trail_goroutine){
        .id = g->id,
        .name = g->name,
        .pc = g->pc,
        .creation_ns = g->creation_ns,
        .start_ns = g->start_ns,
        .end_ns = end_ns,
        .times = *times,
    };
    return true;
}

static bool goroutine_ends(void *part, struct goroutine *g, int64_t now, int64_t end_ns)
{
    struct goroutine_rows *rows = part;
    struct trail_analysis *analysis = rows->analysis;
    bool keep = wants(analysis, TRAIL_ANALYZE_GOROUTINES);
    trail_times times;
    if (!analysis->counting)
        return true;
    arena_reset(&analysis->scratch);
    if (!goroutine_times(&analysis->goroutines, g, now, NULL,
                         keep ? &analysis->rows_arena : &analysis->scratch, &times))
        return false;
    if (keep && !keep_row(rows, g, &times, end_ns))
        return false;
    return !wants(analysis, TRAIL_ANALYZE_GROUPS) ||
           groups_add(&rows->groups, g->name, &times, end_ns == 0);
}

static int by_id(const void *a, const void *b)
{
    const trail_goroutine *x = a, *y = b;
    return ORDER(x->id, y->id) ?: ORDER(x->creation_ns, y->creation_ns);
}

/* Assigns its regions to each goroutine. Both are sorted by goroutine. */
static void assign_regions(struct goroutine_rows *rows, const struct regions *regions)
{
    size_t at = 0;
    EACH(trail_goroutine, g, rows->items, rows->count) {
        while (at < regions->count && regions->rows[at].goroutine < g->id)
            at++;
        g->regions = regions->rows + at;
        while (at < regions->count && regions->rows[at].goroutine == g->id)
            at++;
        g->region_count = (uint32_t)(regions->rows + at - g->regions);
    }
}

static bool finish(void *part, int64_t ns)
{
    struct goroutine_rows *rows = part;
    (void)ns;
    if (rows->count > 0)
        qsort(rows->items, rows->count, sizeof *rows->items, by_id);
    if (rows->regions && rows->regions->count > 0)
        assign_regions(rows, rows->regions);
    return groups_finish(&rows->groups);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct goroutine_rows *rows = part;
    rows->analysis = analysis;
    rows->regions = analysis_object(analysis, &regions_part);
    rows->groups.distributions = wants(analysis, TRAIL_ANALYZE_DISTRIBUTIONS);
    return true;
}

static void drop(void *part)
{
    struct goroutine_rows *rows = part;
    free(rows->items);
    groups_clear(&rows->groups);
}

const struct analysis_part goroutine_rows_part = {
    .what = TRAIL_ANALYZE_GOROUTINES | TRAIL_ANALYZE_GROUPS,
    .size = sizeof(struct goroutine_rows),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .finish = finish,
    .ends = goroutine_ends,
};

size_t trail_analysis_goroutines(const trail_analysis *analysis, const trail_goroutine **rows)
{
    const struct goroutine_rows *all = analysis_object(analysis, &goroutine_rows_part);
    *rows = all ? all->items : NULL;
    return all ? all->count : 0;
}

size_t trail_analysis_groups(const trail_analysis *analysis, const trail_group **rows)
{
    const struct goroutine_rows *all = analysis_object(analysis, &goroutine_rows_part);
    *rows = all ? all->groups.rows : NULL;
    return all ? all->groups.count : 0;
}
