/* Writes events of several traces as one, with IDs of their own: see merge_writer.h. */
#include "write/merge_writer.h"

#include <stdlib.h>

#include "base/order.h"
#include "write/event_ids.h"
#include "write/event_v1.h"

/* Readers take an address for one frame, so each trace's addresses have its number in their upper
 * bits. */
#define ORIGIN_PC_SHIFT 57
#define PC_MASK         (ORIGIN_ROOT_PC - 1)

_Static_assert(((uint64_t)TRAIL_MERGE_MOST - 1) << ORIGIN_PC_SHIFT >> ORIGIN_PC_SHIFT ==
                   TRAIL_MERGE_MOST - 1,
               "the number fits");

/* MARK: Helper */

static void helper_stop(struct merge_writer *w, struct model_m *m)
{
    struct model_p *p = m ? model_p_of(&w->base.model, m) : NULL;
    if (!p)
        return;
    ADD0(&w->base, m, V2_ProcStop);
    p->status = V2_PROC_IDLE;
    model_bind_p(m, NULL);
}

/* Puts the helper's P on a thread that has none. */
static struct model_m *helper_on(struct merge_writer *w, struct model_m *m)
{
    struct event_writer *base = &w->base;
    struct model_p *p = model_find_p(&base->model, w->helper.proc);
    if (p && model_thread_of_p(&base->model, p) == m)
        return m;
    if (p && p->status == V2_PROC_RUNNING)
        helper_stop(w, model_thread_of_p(&base->model, p));
    if (!p) {
        p = model_add_p(&base->model, w->helper.proc, V2_PROC_RUNNING);
        if (p)
            ADD(base, m, V2_ProcStatus, (uint64_t)p->id, V2_PROC_RUNNING);
    } else {
        (void)event_is_ready_p(base, p);
        ADD(base, m, V2_ProcStart, (uint64_t)p->id, model_next(&p->seq));
        p->status = V2_PROC_RUNNING;
    }
    model_bind_p(m, p);
    return m;
}

/* Returns the helper's thread, with its P and no goroutine, which it does not need for creating or
 * waking others. */
static struct model_m *helper_begin(struct merge_writer *w)
{
    return helper_on(w, model_m(&w->base.model, w->helper.thread));
}

static void helper_end(struct merge_writer *w, struct model_m *m)
{
    if (!w->entering)
        helper_stop(w, m);
}

static void helper_create(struct merge_writer *w, const struct model_g *g, uint64_t stack)
{
    bool blocked = g->status == V2_GO_WAITING;
    struct model_m *by = helper_begin(w);
    ADD(&w->base, by, blocked ? V2_GoCreateBlocked : V2_GoCreate, (uint64_t)g->id, stack, 0);
    helper_end(w, by);
}

/* Makes the helper's thread take a P from one in a system call; NULL: from none. */
static void steal_p(struct merge_writer *w, struct model_p *p, struct model_m *from)
{
    struct event_writer *base = &w->base;
    if (!event_is_ready_p(base, p))
        return;
    ADD(base, model_m(&base->model, w->helper.thread), V2_ProcSteal, (uint64_t)p->id,
        model_next(&p->seq), from ? (uint64_t)from->id : V2_NO_THREAD);
    p->status = V2_PROC_IDLE;
    if (from)
        model_bind_p(from, NULL);
}

static void start_on(struct event_writer *base, struct model_m *m, struct model_g *g)
{
    ADD(base, m, V2_GoStart, (uint64_t)g->id, model_next(&g->seq));
    g->status = V2_GO_RUNNING;
    model_bind_g(m, g);
}

void merge_writer_system(struct merge_writer *w, int64_t time_ns, unsigned type, uint64_t value)
{
    static const char text[] = "trail merge";
    struct event_writer *base = &w->base;
    base->time_ns = time_ns;
    struct model_m *m = helper_begin(w);
    if (type == V2_HeapAlloc || type == V2_HeapGoal) {
        ADD(base, m, type, value);
        helper_end(w, m);
        return;
    }
    const struct v2_frame frame = {.pc = PC_MASK, .function = {text, sizeof text - 1}};
    uint64_t stack = v2_writer_stack(base->out, &frame, 1);
    struct model_seq seq = {base->model.generation, 0};
    ADD(base, m, V2_GoCreate, (uint64_t)w->helper.goroutine, stack, 0);
    ADD(base, m, V2_GoStart, (uint64_t)w->helper.goroutine, model_next(&seq));
    if (type == V2_ProcsChange)
        ADD(base, m, type, value, 0);
    else if (type == V2_GCBegin)
        ADD(base, m, type, model_next_gc(&base->model), 0);
    else
        ADD(base, m, type, model_next_gc(&base->model));
    ADD0(base, m, V2_GoDestroy);
    w->helper.goroutine++;
    if (type != V2_ProcsChange)
        base->model.gc = type == V2_GCBegin ? MODEL_GC_ON : MODEL_GC_OFF;
    helper_end(w, m);
}

/* MARK: Entering */

/*
 * Enters a goroutine that is in a system call. If the thread still has its P, the goroutine is
 * created as one from C code. Otherwise it begins the call with the helper's P and loses that,
 * because readers distinguish the two.
 */
static void enter_call(struct merge_writer *w, struct model_m *m, struct model_g *g, uint64_t stack)
{
    struct event_writer *base = &w->base;
    if (m->p_id != TRAIL_NONE) {
        model_bind_g(m, g);
        ADD(base, m, V2_GoCreateSyscall, (uint64_t)g->id);
        return;
    }
    helper_create(w, g, stack);
    struct model_p *p = model_p_of(&base->model, helper_on(w, m));
    start_on(base, m, g);
    if (!p)
        return; /* no memory */
    ADD(base, m, V2_GoSyscallBegin, model_next(&p->seq), stack);
    g->status = V2_GO_SYSCALL;
    p->status = V2_PROC_SYSCALL;
    steal_p(w, p, m);
}

/* Creates a goroutine that existed from the beginning of its trace. */
static bool enter_g(struct merge_writer *w, const trail_event *e, unsigned status,
                    struct model_m *m)
{
    struct event_writer *base = &w->base;
    bool waits = status == V2_GO_WAITING,
         bound = status == V2_GO_SYSCALL || status == V2_GO_RUNNING;
    if (bound && (m->id == TRAIL_NONE || m->g_id != TRAIL_NONE))
        return false;
    if (status == V2_GO_RUNNING && m->p_id == TRAIL_NONE)
        return false;
    uint64_t stack = event_stack_id(base, e->stack);
    struct model_g *g =
        model_add_g(&base->model, e->transition.id, waits ? V2_GO_WAITING : V2_GO_RUNNABLE);
    if (!g)
        return false;
    if (status == V2_GO_SYSCALL) {
        g->status = V2_GO_SYSCALL;
        enter_call(w, m, g, stack);
        return true;
    }
    helper_create(w, g, stack);
    if (status == V2_GO_RUNNING)
        start_on(base, m, g);
    return true;
}

static void put_late_g(struct merge_writer *w, const trail_event *e)
{
    struct event_writer *base = &w->base;
    struct model_g *g = model_find_g(&base->model, e->transition.id);
    unsigned status = event_g_status(e->transition.to);
    bool in_call = status == V2_GO_SYSCALL;
    struct model_m *m = in_call ? event_call_thread(base, e) : model_m(&base->model, e->thread);
    if (g && in_call && g->status == V2_GO_SYSCALL && m->g_id == TRAIL_NONE)
        model_bind_g(m, g);
    if (g)
        event_writer_put(base, e);
    else if (event_writer_take(base, e))
        event_writer_done(base, e, enter_g(w, e, status, m));
}

/* A P cannot move to a thread that begins with another one. */
static void put_late_p(struct merge_writer *w, const trail_event *e)
{
    struct event_writer *base = &w->base;
    const struct model_p *p = model_find_p(&base->model, e->transition.id);
    if (p || event_p_status(e) == V2_PROC_IDLE ||
        event_v1_status_thread(base, e, p)->p_id == TRAIL_NONE)
        event_writer_put(base, e);
    else if (event_writer_take(base, e))
        event_writer_done(base, e, false);
}

/* A goroutine that waits in an assist cannot begin the assist. */
static bool begin_assist(struct event_writer *base, struct model_g *g)
{
    struct model_m *m = g->status == V2_GO_RUNNING ? model_thread_of_g(&base->model, g) : NULL;
    if (!m || m->p_id == TRAIL_NONE)
        return false;
    g->assists = true;
    ADD(base, m, V2_GCMarkAssistBegin, 0);
    return true;
}

static void put_late_assist(struct merge_writer *w, const trail_event *e)
{
    struct event_writer *base = &w->base;
    struct model_g *g = model_find_g(&base->model, e->range.scope_id);
    if (!g || g->assists)
        event_writer_put(base, e);
    else if (event_writer_take(base, e))
        event_writer_done(base, e, begin_assist(base, g));
}

static bool begin_sweep(struct event_writer *base, struct model_p *p)
{
    struct model_m *m = model_thread_of_p(&base->model, p);
    if (!m || m->id == TRAIL_NONE)
        return false;
    p->sweeps = true;
    ADD(base, m, V2_GCSweepBegin, 0);
    return true;
}

static void put_late_sweep(struct merge_writer *w, const trail_event *e)
{
    struct event_writer *base = &w->base;
    struct model_p *p = model_find_p(&base->model, e->range.scope_id);
    if (!p || p->sweeps)
        event_writer_put(base, e);
    else if (event_writer_take(base, e))
        event_writer_done(base, e, begin_sweep(base, p));
}

/* Readers accept a status only at the beginning of the trace. In a trace that begins later,
 * everything that exists is new. */
static void put_late(struct merge_writer *w, const trail_event *e)
{
    switch (e->wire) {
    case V2_ProcStatus:
        put_late_p(w, e);
        break;
    case V2_GoStatus:
    case V2_GoStatusStack:
        put_late_g(w, e);
        break;
    case V2_GCMarkAssistActive:
        put_late_assist(w, e);
        break;
    case V2_GCSweepActive:
        put_late_sweep(w, e);
        break;
    default:
        event_writer_put(&w->base, e);
        break;
    }
}

void merge_writer_put(struct merge_writer *w, const trail_event *e)
{
    if (w->origins[w->base.model.origin].late)
        put_late(w, e);
    else
        event_writer_put(&w->base, e);
}

void merge_writer_enter(struct merge_writer *w)
{
    w->origins[w->base.model.origin].late = true;
    w->entering = true;
    w->left_out = w->base.stats.left_out;
}

/* Statuses that were left out come again as events of the trace, and count then. */
void merge_writer_entered(struct merge_writer *w)
{
    w->entering = false;
    w->base.stats.left_out = w->left_out;
    const struct model_p *p = model_find_p(&w->base.model, w->helper.proc);
    if (p && p->status == V2_PROC_RUNNING)
        helper_stop(w, model_thread_of_p(&w->base.model, p));
}

/* MARK: Leaving */

/* Writes what only a goroutine can record, on the first one that ends. */
static void put_last_words(struct merge_writer *w, struct model_m *m)
{
    struct merge_last_words *words = w->last_words;
    if (!words)
        return;
    w->last_words = NULL;
    if (words->procs_change)
        ADD(&w->base, m, V2_ProcsChange, words->procs, 0);
    if (words->gc_end) {
        ADD(&w->base, m, V2_GCEnd, model_next_gc(&w->base.model));
        w->base.model.gc = MODEL_GC_OFF;
    }
}

/* Ends the goroutine that runs on `m`. */
static void end_g(struct merge_writer *w, struct model_m *m, struct model_g *g)
{
    if (g->stops_world)
        ADD0(&w->base, m, V2_STWEnd);
    if (g->assists)
        ADD0(&w->base, m, V2_GCMarkAssistEnd);
    put_last_words(w, m);
    ADD0(&w->base, m, V2_GoDestroy);
    model_remove_g(&w->base.model, g);
    model_bind_g(m, NULL);
}

/* Ends a goroutine that is bound to a thread. False: it is not. */
static bool end_bound_g(struct merge_writer *w, struct model_g *g)
{
    struct trace_model *model = &w->base.model;
    struct model_m *m = model_thread_of_g(model, g);
    bool in_call = g->status == V2_GO_SYSCALL;
    if (!m || m->id == TRAIL_NONE || (!in_call && g->status != V2_GO_RUNNING))
        return false;
    if (!in_call) {
        end_g(w, m, g);
        return true;
    }
    struct model_p *p = model_p_of(model, m);
    if (p && p->status == V2_PROC_SYSCALL)
        steal_p(w, p, m);
    if (m->p_id != TRAIL_NONE || g->seq.generation != model->generation)
        return true; /* stays in its call */
    ADD0(&w->base, m, V2_GoDestroySyscall);
    model_remove_g(model, g);
    model_bind_g(m, NULL);
    return true;
}

/* Ends a goroutine that waits or is ready, on the helper's P. */
static void end_free_g(struct merge_writer *w, struct model_m *m, struct model_g *g)
{
    struct event_writer *base = &w->base;
    if (g->status == V2_GO_SYSCALL || g->status == V2_GO_RUNNING || !event_is_ready_g(base, g))
        return;
    if (g->status == V2_GO_WAITING)
        ADD(base, m, V2_GoUnblock, (uint64_t)g->id, model_next(&g->seq), 0);
    start_on(base, m, g);
    end_g(w, m, g);
}

static void end_p(struct merge_writer *w, struct model_p *p)
{
    struct model_m *m = model_p_runs(p) ? model_thread_of_p(&w->base.model, p) : NULL;
    if (p->status == V2_PROC_ABANDONED) {
        steal_p(w, p, NULL);
    } else if (m && m->id != TRAIL_NONE && p->status == V2_PROC_SYSCALL) {
        steal_p(w, p, m);
    } else if (m && m->id != TRAIL_NONE) {
        if (p->sweeps)
            ADD(&w->base, m, V2_GCSweepEnd, 0, 0);
        p->sweeps = false;
        ADD0(&w->base, m, V2_ProcStop);
        p->status = V2_PROC_IDLE;
        model_bind_p(m, NULL);
    }
}

static unsigned origin_of_g(const void *g)
{
    return ((const struct model_g *)g)->origin;
}

static unsigned origin_of_p(const void *p)
{
    return ((const struct model_p *)p)->origin;
}

/* Returns the IDs that belong to one trace, ascending; the caller frees them. */
static int64_t *ids_of(struct merge_writer *w, const struct idmap *map, size_t number,
                       unsigned (*origin_of)(const void *value), size_t *count)
{
    int64_t *ids = calloc(map->count + 1, sizeof *ids);
    *count = 0;
    if (!ids) {
        w->base.model.no_memory = true;
        return NULL;
    }
    IDMAP_EACH(slot, map)
        if (origin_of(slot->value) == number)
            ids[(*count)++] = (int64_t)slot->id;
    qsort(ids, *count, sizeof *ids, order_numbers);
    return ids;
}

static void end_gs(struct merge_writer *w, size_t number)
{
    struct trace_model *model = &w->base.model;
    size_t count, left = 0;
    int64_t *ids = ids_of(w, &model->gs.map, number, origin_of_g, &count);
    for (size_t i = 0; i < count; i++)
        if (!end_bound_g(w, model_find_g(model, ids[i])))
            ids[left++] = ids[i];
    struct model_m *m = left > 0 ? helper_begin(w) : NULL;
    for (size_t i = 0; i < left; i++)
        end_free_g(w, m, model_find_g(model, ids[i]));
    if (m)
        helper_end(w, m);
    free(ids);
}

static void end_ps(struct merge_writer *w, size_t number)
{
    size_t count;
    int64_t *ids = ids_of(w, &w->base.model.ps.map, number, origin_of_p, &count);
    for (size_t i = 0; i < count; i++)
        if (ids[i] != w->helper.proc)
            end_p(w, model_find_p(&w->base.model, ids[i]));
    free(ids);
}

void merge_writer_leave(struct merge_writer *w, size_t number, int64_t time_ns,
                        struct merge_last_words *words)
{
    w->base.time_ns = time_ns;
    merge_writer_from(w, number);
    words->gc_end = words->gc_end && w->base.model.gc == MODEL_GC_ON;
    w->last_words = words->procs_change || words->gc_end ? words : NULL;
    end_gs(w, number);
    end_ps(w, number);
    if (w->last_words && words->procs_change)
        merge_writer_system(w, time_ns, V2_ProcsChange, words->procs);
    if (w->last_words && words->gc_end)
        merge_writer_system(w, time_ns, V2_GCEnd, 0);
    w->last_words = NULL;
}

/* MARK: Opening and closing */

int merge_writer_init(struct merge_writer *w, int version, size_t count,
                      const struct merge_helper *helper, const trail_sink *sink, trail_error *err)
{
    *w = (struct merge_writer){.helper = *helper};
    for (size_t i = 0; i < count; i++) {
        w->origins[i].ids.pc_mask = count > 1 ? PC_MASK : UINT64_MAX;
        w->origins[i].ids.pc_bits = (uint64_t)i << ORIGIN_PC_SHIFT;
    }
    return event_writer_init(&w->base, version, sink, err);
}

void merge_writer_add(struct merge_writer *w, trail_reader *reader, trail_string label)
{
    struct origin *ids = &w->origins[w->count].ids;
    if (w->count > 0)
        w->origins[w->count - 1].ids.next = ids;
    w->base.origins = &w->origins[0].ids;
    w->count++;
    ids->reader = reader;
    ids->label = label.size <= ORIGIN_LABEL ? label : (trail_string){"", 0};
    merge_writer_from(w, 0);
}

void merge_writer_from(struct merge_writer *w, size_t number)
{
    w->base.from = &w->origins[number].ids;
    w->base.model.origin = (uint8_t)number;
}

bool merge_writer_is_far(const struct merge_writer *w, int64_t time_ns)
{
    return time_ns - w->base.begin_ns >= EVENT_WRITER_FAR_NS / 2 &&
           w->base.model.stopped_worlds == 0;
}

bool merge_writer_fini(struct merge_writer *w, trail_convert_stats *stats, trail_error *err)
{
    for (size_t i = 0; i < w->count; i++)
        origin_fini(&w->origins[i].ids);
    return event_writer_fini(&w->base, stats, err);
}
