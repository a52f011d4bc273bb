/*
 * What readers of v2 know about the goroutines, Ps and Ms of a trace that is being written (§6.5),
 * so that nothing is written that they would reject, and what is alive can be announced when a
 * generation begins. It is the counterpart of read/v2/order.h, which orders and checks records that
 * are read; this one is queried before a record is written.
 *
 * Memory grows with what is alive.
 */
#pragma once

#include <trail/read.h>

#include "base/objects.h"
#include "wire/wire.h"

/* The number of the last record in `generation`; if that is not the current one, it is not
 * announced yet. */
struct model_seq {
    uint64_t generation, n;
};

struct model_region {
    struct model_region *outer;
    uint64_t task;
    size_t size;
    char name[];
};

struct model_g {
    void *link; /* for the slab, which overwrites it when the object is free */
    int64_t id;
    int64_t thread; /* that it was last bound to */
    struct model_seq seq;
    uint8_t status, origin;
    bool assists, stops_world;
    bool early;                   /* already runnable in the written trace, not yet in the source */
    bool left;                    /* a call that has not ended in the source */
    struct model_region *regions; /* inner-most first */
};

struct model_p {
    int64_t id;
    int64_t thread; /* that it was last bound to */
    struct model_seq seq;
    uint8_t status, origin;
    bool sweeps;
};

/* The IDs are authoritative; a pointer is a shortcut that may be stale. */
struct model_m {
    int64_t id; /* TRAIL_NONE: none */
    bool seen;
    int64_t g_id, p_id;
    struct model_g *g;
    struct model_p *p;
};

enum model_gc { MODEL_GC_UNDETERMINED, MODEL_GC_OFF, MODEL_GC_ON };

/* Initialised by model_init. Not thread-safe. */
struct trace_model {
    struct objects gs, ps, ms; /* struct model_g, model_p, model_m */
    struct idmap tasks;
    struct model_m nobody; /* for records without a thread; unbound after each */
    uint64_t generation;
    uint64_t gc_seq;
    enum model_gc gc;
    uint8_t origin;        /* the trace of the merge that new goroutines come from */
    size_t stopped_worlds; /* number of goroutines in a stop-the-world pause */
    bool no_memory;
};

void model_init(struct trace_model *model);
void model_fini(struct trace_model *model);

static inline struct model_g *model_find_g(const struct trace_model *model, int64_t id)
{
    return objects_find(&model->gs, (uint64_t)id);
}

static inline struct model_p *model_find_p(const struct trace_model *model, int64_t id)
{
    return objects_find(&model->ps, (uint64_t)id);
}

/* Returns the M with an ID, created if necessary; the placeholder for TRAIL_NONE or if out of
 * memory. */
struct model_m *model_m(struct trace_model *model, int64_t id);

/* Returns the number of the next record of a goroutine, a P, or garbage collection. */
static inline uint64_t model_next(struct model_seq *seq)
{
    return ++seq->n;
}

static inline uint64_t model_next_gc(struct trace_model *model)
{
    return ++model->gc_seq;
}

/* Whether the P is on a thread. */
static inline bool model_p_runs(const struct model_p *p)
{
    return p->status == V2_PROC_RUNNING || p->status == V2_PROC_SYSCALL;
}

/* Adds a goroutine or P. Returns NULL if out of memory. */
struct model_g *model_add_g(struct trace_model *model, int64_t id, unsigned status);
struct model_p *model_add_p(struct trace_model *model, int64_t id, unsigned status);

void model_remove_g(struct trace_model *model, struct model_g *g);

/* Returns what is bound to the M; NULL if nothing is, or it no longer exists. */
static inline struct model_g *model_g_of(const struct trace_model *model, const struct model_m *m)
{
    if (m->g && m->g->id == m->g_id)
        return m->g;
    return m->g_id == TRAIL_NONE ? NULL : model_find_g(model, m->g_id);
}

static inline struct model_p *model_p_of(const struct trace_model *model, const struct model_m *m)
{
    if (m->p && m->p->id == m->p_id)
        return m->p;
    return m->p_id == TRAIL_NONE ? NULL : model_find_p(model, m->p_id);
}

/* NULL unbinds. */
static inline void model_bind_g(struct model_m *m, struct model_g *g)
{
    m->g = g;
    m->g_id = g ? g->id : TRAIL_NONE;
    if (g)
        g->thread = m->id;
}

static inline void model_bind_p(struct model_m *m, struct model_p *p)
{
    m->p = p;
    m->p_id = p ? p->id : TRAIL_NONE;
    if (p)
        p->thread = m->id;
}

/* Returns the M that a goroutine or P is bound to, or NULL. */
struct model_m *model_thread_of_g(struct trace_model *model, const struct model_g *g);
struct model_m *model_thread_of_p(struct trace_model *model, const struct model_p *p);

/* Records that a region begins or ends now. Returns false if it may not. */
bool model_region_begin(struct trace_model *model, struct model_g *g, uint64_t task,
                        trail_string name);
bool model_region_end(struct model_g *g, uint64_t task, trail_string name);

/* Records that a task begins. Returns false if it may not. */
bool model_task_begin(struct trace_model *model, uint64_t id);

/* Drops what began before the first generation and cannot be known to readers. */
void model_forget_begun(struct trace_model *model);
