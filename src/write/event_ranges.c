/* Writes metrics, ranges, annotations and CPU samples: everything but Ps, goroutines and system
 * calls. */
#include "write/event_ranges.h"
#include "write/event_ids.h"
#include "write/event_v1.h"

static bool put_label(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    return m && SEND(w, m, V2_GoLabel, event_string_id(w, e->label.text));
}

/* MARK: Metrics and ranges */

static bool put_procs_change(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    return m && SEND(w, m, V2_ProcsChange, e->metric.value, event_stack_id(w, e->stack));
}

bool event_put_heap(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_M | V2_NEED_P);
    return m && SEND(w, m, e->wire, e->metric.value);
}

static bool put_stw(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_STWBegin;
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    struct model_g *g = m ? model_g_of(&w->model, m) : NULL;
    if (!g || g->stops_world == begin)
        return false;
    g->stops_world = begin;
    w->model.stopped_worlds += begin ? 1 : (size_t)-1;
    if (!begin)
        return SEND0(w, m, V2_STWEnd);
    return SEND(w, m, V2_STWBegin, event_stw_kind_id(w, e->range.name),
                event_stack_id(w, e->stack));
}

static bool put_mark_assist(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_GCMarkAssistBegin;
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    struct model_g *g = m ? model_g_of(&w->model, m) : NULL;
    if (!g || (begin && g->assists))
        return false;
    if (!begin && !g->assists) {
        if (!w->initial)
            return false;
        ADD(w, m, V2_GCMarkAssistActive, (uint64_t)g->id);
    }
    g->assists = begin;
    if (!begin)
        return SEND0(w, m, V2_GCMarkAssistEnd);
    return SEND(w, m, V2_GCMarkAssistBegin, event_stack_id(w, e->stack));
}

/* Whether a range can be announced as active: in the first generation if it is new, later if it is
 * known. */
static bool may_be_active(const struct event_writer *w, bool is)
{
    return !w->begun || is != w->initial;
}

static bool put_assist_active(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->range.scope_id);
    if (!g || !may_be_active(w, g->assists))
        return false;
    g->assists = true;
    return SEND(w, model_m(&w->model, e->thread), V2_GCMarkAssistActive, (uint64_t)g->id);
}

static bool put_sweep(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_GCSweepBegin;
    struct model_m *m = event_context(w, e, V2_NEED_M | V2_NEED_P);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p || p->sweeps == begin)
        return false;
    p->sweeps = begin;
    if (begin)
        return SEND(w, m, V2_GCSweepBegin, event_stack_id(w, e->stack));
    return SEND(w, m, V2_GCSweepEnd, e->range.swept_bytes, e->range.reclaimed_bytes);
}

static bool put_sweep_active(struct event_writer *w, const trail_event *e)
{
    struct model_p *p = model_find_p(&w->model, e->range.scope_id);
    if (!p || !may_be_active(w, p->sweeps))
        return false;
    p->sweeps = true;
    return SEND(w, model_m(&w->model, e->thread), V2_GCSweepActive, (uint64_t)p->id);
}

static bool put_gc_active(struct event_writer *w, const trail_event *e)
{
    struct trace_model *model = &w->model;
    bool free = w->initial || !w->begun;
    if (w->begun && model->gc != (w->initial ? MODEL_GC_UNDETERMINED : MODEL_GC_ON))
        return false;
    struct model_m *m = free ? model_m(model, e->thread) : event_context(w, e, V2_NEED_USER_GO);
    if (!m)
        return false;
    model->gc = MODEL_GC_ON;
    return SEND(w, m, V2_GCActive, model_next_gc(model));
}

static bool put_gc(struct event_writer *w, const trail_event *e)
{
    struct trace_model *model = &w->model;
    bool begin = e->wire == V2_GCBegin;
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    if (!m || (begin ? model->gc == MODEL_GC_ON : model->gc != MODEL_GC_ON))
        return false;
    model->gc = begin ? MODEL_GC_ON : MODEL_GC_OFF;
    if (begin)
        return SEND(w, m, V2_GCBegin, model_next_gc(model), event_stack_id(w, e->stack));
    return SEND(w, m, V2_GCEnd, model_next_gc(model));
}

/* MARK: Annotations, samples, experiments */

static bool put_task(struct event_writer *w, const trail_event *e)
{
    bool begin = e->wire == V2_UserTaskBegin;
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    if (!m || (begin && !model_task_begin(&w->model, e->task.id)))
        return false;
    uint64_t parent = e->task.parent == TRAIL_NO_TASK ? TRAIL_BACKGROUND_TASK : e->task.parent;
    if (begin)
        return SEND(w, m, V2_UserTaskBegin, e->task.id, parent, event_string_id(w, e->task.type),
                    event_stack_id(w, e->stack));
    idmap_remove(&w->model.tasks, e->task.id);
    return SEND(w, m, V2_UserTaskEnd, e->task.id, event_stack_id(w, e->stack));
}

static bool put_region(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    struct model_g *g = m ? model_g_of(&w->model, m) : NULL;
    trail_string name = trail_reader_string(w->from->reader, e->region.type);
    if (name.size > V2_MAX_STRING)
        name.size = V2_MAX_STRING;
    if (!g ||
        !(e->wire == V2_UserRegionBegin ? model_region_begin(&w->model, g, e->region.task, name)
                                        : model_region_end(g, e->region.task, name)))
        return false;
    return SEND(w, m, e->wire, e->region.task, event_string_id(w, e->region.type),
                event_stack_id(w, e->stack));
}

static bool put_log(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_USER_GO);
    return m && SEND(w, m, V2_UserLog, e->log.task, event_string_id(w, e->log.category),
                     event_string_id(w, e->log.message), event_stack_id(w, e->stack));
}

static bool put_sample(struct event_writer *w, const trail_event *e)
{
    if (!w->begun)
        return true;
    w->stats.events++;
    w->last_ns = w->time_ns > w->last_ns ? w->time_ns : w->last_ns + 1;
    return v2_writer_sample(w->out, w->last_ns, (uint64_t)e->thread,
                            event_is_real_p(e->proc) ? (uint64_t)e->proc : V2_NO_PROC,
                            e->goroutine == TRAIL_NONE ? 0 : (uint64_t)e->goroutine,
                            event_stack_id(w, e->stack));
}

static bool put_experimental(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_M);
    return m && w->version >= 23 &&
           event_send(w, m, e->wire, e->experimental.args, e->experimental.arg);
}

typedef bool put_fn(struct event_writer *w, const trail_event *e);

static put_fn *const functions[V2_TYPES] = {
    [V2_GoLabel] = put_label,
    [V2_ProcsChange] = put_procs_change,
    [V2_STWBegin] = put_stw,
    [V2_STWEnd] = put_stw,
    [V2_GCActive] = put_gc_active,
    [V2_GCBegin] = put_gc,
    [V2_GCEnd] = put_gc,
    [V2_GCSweepActive] = put_sweep_active,
    [V2_GCSweepBegin] = put_sweep,
    [V2_GCSweepEnd] = put_sweep,
    [V2_GCMarkAssistActive] = put_assist_active,
    [V2_GCMarkAssistBegin] = put_mark_assist,
    [V2_GCMarkAssistEnd] = put_mark_assist,
    [V2_UserTaskBegin] = put_task,
    [V2_UserTaskEnd] = put_task,
    [V2_UserRegionBegin] = put_region,
    [V2_UserRegionEnd] = put_region,
    [V2_UserLog] = put_log,
    [V2_CPUSample] = put_sample,
};

bool event_put_range(struct event_writer *w, const trail_event *e)
{
    put_fn *function = e->wire < V2_TYPES ? functions[e->wire] : NULL;
    return (function ? function : put_experimental)(w, e);
}
