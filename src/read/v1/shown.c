/* v1, shown: states with an unknown end; see shown.h. */
#include "read/v1/shown.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/order.h"

static int compare_begins(const void *a, const void *b)
{
    const struct v1_begin *x = a, *y = b;
    return ORDER(x->offset, y->offset) ?: ORDER(x->g, y->g);
}

void v1_shown_collect(struct v1_shown *shown)
{
    *shown = (struct v1_shown){.collecting = true, .goroutines = OBJECTS_OF(struct v1_shown_g)};
}

bool v1_shown_replay(struct v1_shown *shown)
{
    bool good = true;
    IDMAP_VALUES(const struct v1_shown_g, g, &shown->goroutines.map) {
        good = good && idmap_put(&shown->last, g->id, (void *)(uintptr_t)(g->offset + 1));
    }
    objects_free(&shown->goroutines);
    shown->collecting = false;
    if (shown->doubted_count > 0)
        qsort(shown->doubted, shown->doubted_count, sizeof *shown->doubted, compare_begins);
    return good;
}

void v1_shown_fini(struct v1_shown *shown)
{
    objects_free(&shown->goroutines);
    idmap_free(&shown->last);
    free(shown->doubted);
    free(shown->lasting);
    *shown = (struct v1_shown){0};
}

struct v1_shown_g *v1_shown_get(struct v1_shown *shown, uint64_t id)
{
    struct v1_shown_g *g = objects_get(&shown->goroutines, id);
    if (g)
        g->id = id;
    return g;
}

bool v1_shown_doubt(struct v1_shown *shown, const struct v1_shown_g *g)
{
    if (!shown->collecting)
        return true;
    return APPEND(shown->doubted, shown->doubted_capacity, shown->doubted_count,
                  (struct v1_begin){g->offset, g->id});
}

bool v1_shown_is_doubted(const struct v1_shown *shown, const struct v1_shown_g *g)
{
    const struct v1_begin begin = {g->offset, g->id};
    return shown->doubted_count > 0 &&
           bsearch(&begin, shown->doubted, shown->doubted_count, sizeof begin, compare_begins);
}

bool v1_shown_is_last(const struct v1_shown *shown, const struct v1_shown_g *g)
{
    return (uintptr_t)idmap_find(&shown->last, g->id) == (uintptr_t)(g->offset + 1);
}

bool v1_shown_lasts(struct v1_shown *shown, struct v1_shown_g *g)
{
    return APPEND(shown->lasting, shown->lasting_capacity, shown->lasting_count, g);
}

static int compare_ids(const void *a, const void *b)
{
    const struct v1_shown_g *x = *(struct v1_shown_g *const *)a;
    const struct v1_shown_g *y = *(struct v1_shown_g *const *)b;
    return ORDER(x->id, y->id);
}

size_t v1_shown_sort_lasting(struct v1_shown *shown)
{
    if (shown->lasting_count > 0)
        qsort(shown->lasting, shown->lasting_count, sizeof(void *), compare_ids);
    return shown->lasting_count;
}
