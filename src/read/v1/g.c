/* v1: states of the live goroutines. */
#include "read/v1/g.h"

#include "read/v1/waiters.h"

#include <stdlib.h>

#define WORD_BITS (8 * sizeof(uintptr_t))

void v1_gs_init(struct v1_gs *gs)
{
    *gs = (struct v1_gs){
        .live = OBJECTS_OF(struct v1_g),
        .region_slab = {.object_size = sizeof(struct v1_region)},
        .waiters_slab = {.object_size = sizeof(struct v1_waiters)},
    };
}

static void free_lists(struct v1_gs *gs)
{
    IDMAP_VALUES(struct v1_g, g, &gs->live.map) {
        free(g->wakeup.position);
    }
}

void v1_gs_fini(struct v1_gs *gs)
{
    free_lists(gs);
    objects_free(&gs->live);
    idmap_free(&gs->ended);
    slab_free(&gs->region_slab);
    slab_free(&gs->waiters_slab);
}

void v1_gs_reset(struct v1_gs *gs)
{
    v1_gs_fini(gs);
    v1_gs_init(gs);
}

static uintptr_t ended_word(const struct v1_gs *gs, uint64_t id)
{
    return (uintptr_t)idmap_find(&gs->ended, id / WORD_BITS);
}

static uintptr_t ended_bit(uint64_t id)
{
    return (uintptr_t)1 << (id % WORD_BITS);
}

struct v1_g *v1_gs_get_slow(struct v1_gs *gs, uint64_t id)
{
    struct v1_g *g = objects_get(&gs->live, id);
    if (!g)
        return NULL;
    g->id = id;
    g->alive = true;
    if (ended_word(gs, id) & ended_bit(id)) {
        g->status = V1_RUNNING;
        g->known = true;
    }
    /* Goroutine 0, the scheduler's, is always running. */
    if (id == 0) {
        g->state = V1_RUNNING;
        g->known = true;
    }
    return g;
}

void v1_g_drop_region(struct v1_gs *gs, struct v1_region **link)
{
    struct v1_region *region = *link;
    *link = region->outer;
    slab_put(&gs->region_slab, region);
}

bool v1_gs_end(struct v1_gs *gs, struct v1_g *g)
{
    uint64_t id = g->id;
    uintptr_t word = ended_word(gs, id) | ended_bit(id);
    if (!idmap_put(&gs->ended, id / WORD_BITS, (void *)word))
        return false;
    while (g->regions)
        v1_g_drop_region(gs, &g->regions);
    free(g->wakeup.position);
    g->alive = false;
    objects_drop(&gs->live, id);
    return true;
}
