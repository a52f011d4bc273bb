/* The states of goroutines, Ps and Ms in the written trace: see trace_model.h. */
#include "write/trace_model.h"

#include <stdlib.h>
#include <string.h>

void model_init(struct trace_model *model)
{
    *model = (struct trace_model){
        .gs = OBJECTS_OF(struct model_g),
        .ps = OBJECTS_OF(struct model_p),
        .ms = OBJECTS_OF(struct model_m),
        .nobody = {.id = TRAIL_NONE, .g_id = TRAIL_NONE, .p_id = TRAIL_NONE},
    };
}

static void drop_regions(struct model_g *g)
{
    while (g->regions) {
        struct model_region *outer = g->regions->outer;
        free(g->regions);
        g->regions = outer;
    }
}

void model_fini(struct trace_model *model)
{
    IDMAP_EACH(slot, &model->gs.map)
        drop_regions(slot->value);
    objects_free(&model->gs);
    objects_free(&model->ps);
    objects_free(&model->ms);
    idmap_free(&model->tasks);
}

struct model_m *model_m(struct trace_model *model, int64_t id)
{
    if (id == TRAIL_NONE)
        return &model->nobody;
    struct model_m *m = objects_find(&model->ms, (uint64_t)id);
    if (m)
        return m;
    m = objects_get(&model->ms, (uint64_t)id);
    if (!m) {
        model->no_memory = true;
        return &model->nobody;
    }
    m->id = id;
    m->g_id = m->p_id = TRAIL_NONE;
    return m;
}

struct model_g *model_add_g(struct trace_model *model, int64_t id, unsigned status)
{
    struct model_g *g = objects_get(&model->gs, (uint64_t)id);
    if (!g) {
        model->no_memory = true;
        return NULL;
    }
    g->id = id;
    g->thread = TRAIL_NONE;
    g->status = (uint8_t)status;
    g->origin = model->origin;
    g->seq.generation = model->generation;
    return g;
}

struct model_p *model_add_p(struct trace_model *model, int64_t id, unsigned status)
{
    struct model_p *p = objects_get(&model->ps, (uint64_t)id);
    if (!p) {
        model->no_memory = true;
        return NULL;
    }
    p->id = id;
    p->thread = TRAIL_NONE;
    p->status = (uint8_t)status;
    p->origin = model->origin;
    p->seq.generation = model->generation;
    return p;
}

void model_remove_g(struct trace_model *model, struct model_g *g)
{
    uint64_t id = (uint64_t)g->id;
    drop_regions(g);
    model->stopped_worlds -= g->stops_world;
    g->id = TRAIL_NONE;
    objects_drop(&model->gs, id);
}

struct model_m *model_thread_of_g(struct trace_model *model, const struct model_g *g)
{
    struct model_m *m =
        g->thread == TRAIL_NONE ? NULL : objects_find(&model->ms, (uint64_t)g->thread);
    return m && m->g_id == g->id ? m : NULL;
}

struct model_m *model_thread_of_p(struct trace_model *model, const struct model_p *p)
{
    struct model_m *m =
        p->thread == TRAIL_NONE ? NULL : objects_find(&model->ms, (uint64_t)p->thread);
    return m && m->p_id == p->id ? m : NULL;
}

bool model_region_begin(struct trace_model *model, struct model_g *g, uint64_t task,
                        trail_string name)
{
    struct model_region *region = malloc(sizeof *region + name.size);
    if (!region) {
        model->no_memory = true;
        return false;
    }
    *region = (struct model_region){.outer = g->regions, .task = task, .size = name.size};
    memcpy(region->name, name.data ? name.data : "", name.size);
    g->regions = region;
    return true;
}

bool model_region_end(struct model_g *g, uint64_t task, trail_string name)
{
    struct model_region *inner = g->regions;
    if (!inner)
        return true;
    if (inner->task != task || inner->size != name.size ||
        memcmp(inner->name, name.data ? name.data : "", name.size) != 0)
        return false;
    g->regions = inner->outer;
    free(inner);
    return true;
}

bool model_task_begin(struct trace_model *model, uint64_t id)
{
    if (idmap_find(&model->tasks, id))
        return false;
    if (idmap_put(&model->tasks, id, model))
        return true;
    model->no_memory = true;
    return false;
}

/* A reader learns about a thread only from what is announced on it, where it was last. */
static void forget_unannounced(struct trace_model *model, struct model_m *m)
{
    const struct model_g *g = model_g_of(model, m);
    const struct model_p *p = model_p_of(model, m);
    bool has_g = g && (g->status == V2_GO_RUNNING || g->status == V2_GO_SYSCALL);
    if (!has_g || g->thread != m->id)
        model_bind_g(m, NULL);
    if (!p || !model_p_runs(p) || p->thread != m->id)
        model_bind_p(m, NULL);
}

void model_forget_begun(struct trace_model *model)
{
    IDMAP_EACH(slot, &model->ms.map)
        forget_unannounced(model, slot->value);
    IDMAP_VALUES(struct model_g, g, &model->gs.map) {
        drop_regions(g);
        g->stops_world = false;
    }
    model->stopped_worlds = 0;
    idmap_clear(&model->tasks);
}
