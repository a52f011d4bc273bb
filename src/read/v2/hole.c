/* v2 hole: see hole.h. */
#include "read/v2/hole.h"

#include <stdlib.h>

#include "read/v2/common.h"
#include "read/v2/successors.h"

#define INFERRED (TRAIL_EVENT_IMPLIED | TRAIL_EVENT_INFERRED)

static int by_id(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static bool make_room(struct v2_hole *hole, const struct v2_order *order)
{
    v2_hole_free(hole);
    hole->ids = malloc((order->gs.map.count + order->ps.map.count + 1) * sizeof *hole->ids);
    return hole->ids != NULL;
}

static void sort(struct v2_hole *hole)
{
    qsort(hole->ids, hole->goroutines, sizeof *hole->ids, by_id);
    qsort(hole->ids + hole->goroutines, hole->count - hole->goroutines, sizeof *hole->ids, by_id);
    hole->open = true;
}

bool v2_hole_begin(struct v2_hole *hole, const struct v2_order *order)
{
    if (!make_room(hole, order))
        return false;
    IDMAP_EACH(slot, &order->gs.map)
        hole->ids[hole->count++] = slot->id;
    hole->goroutines = hole->count;
    IDMAP_EACH(slot, &order->ps.map)
        hole->ids[hole->count++] = slot->id;
    sort(hole);
    return true;
}

/* MARK: What is sure */

/* Returns the type of the event with the next sequence number; 0 if it is not in the file. */
static uint8_t next_type(const struct v2_order *order, enum v2_numbered_kind kind, int64_t id,
                         struct v2_seq seq)
{
    uint64_t next = seq.generation == order->generation ? seq.n + 1 : 0; /* 0: its status */
    return v2_successors_type(order->successors, kind, (uint64_t)id, next);
}

/* A goroutine that runs or is in a system call leaves that state by an event of its thread. */
static bool is_sure_g(const struct v2_order *order, const struct v2_g *g)
{
    switch (next_type(order, V2_NUMBERED_G, g->id, g->seq)) {
    case V2_GoStatus:
    case V2_GoStatusStack:
        return true;
    case V2_GoStart:
        return g->status != V2_GO_WAITING;
    case V2_GoUnblock:
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        return g->status != V2_GO_RUNNABLE;
    default:
        return g->status == V2_GO_RUNNING || g->status == V2_GO_SYSCALL;
    }
}

/* Another thread may take a P that is in a system call. */
static bool is_sure_p(const struct v2_order *order, const struct v2_p *p)
{
    bool calls = p->status == V2_PROC_SYSCALL && p->seq.generation == order->generation;
    return p->status == V2_PROC_RUNNING || next_type(order, V2_NUMBERED_P, p->id, p->seq) != 0 ||
           (calls && v2_successors_type(order->successors, V2_NUMBERED_CALL, (uint64_t)p->id,
                                        p->seq.n) != 0);
}

bool v2_hole_goes_on(const struct v2_order *order, const struct v2_g *g)
{
    return next_type(order, V2_NUMBERED_G, g->id, g->seq) != 0;
}

/* Collects what threads hold whose next event is in the file; the others lose it. Returns false if
 * out of memory. */
static bool find_held(struct v2_order *order, v2_is_whole *is_whole, void *context,
                      struct idmap *gs, struct idmap *ps)
{
    bool good = true;
    IDMAP_VALUES(struct v2_m, m, &order->ms.map) {
        bool whole = is_whole(context, m);
        if (whole && m->g_id != TRAIL_NONE)
            good &= idmap_put(gs, (uint64_t)m->g_id, m);
        if (whole && m->p_id != TRAIL_NONE)
            good &= idmap_put(ps, (uint64_t)m->p_id, m);
        if (!whole) {
            m->g_id = m->p_id = TRAIL_NONE;
            m->g = NULL;
            m->p = NULL;
        }
    }
    return good;
}

bool v2_hole_begin_within(struct v2_hole *hole, struct v2_order *order, v2_is_whole *is_whole,
                          void *context)
{
    struct idmap gs = {0}, ps = {0};
    bool good = make_room(hole, order) && find_held(order, is_whole, context, &gs, &ps);
    hole->within = true;
    order->highest_g = 1;
    IDMAP_EACH(slot, &order->gs.map) {
        const struct v2_g *g = slot->value;
        order->highest_g = slot->id > order->highest_g ? slot->id : order->highest_g;
        bool on = g->status == V2_GO_RUNNING || g->status == V2_GO_SYSCALL;
        if (good && !(on ? idmap_find(&gs, slot->id) != NULL : is_sure_g(order, g)))
            hole->ids[hole->count++] = slot->id;
    }
    hole->goroutines = hole->count;
    IDMAP_EACH(slot, &order->ps.map) {
        const struct v2_p *p = slot->value;
        bool on = p->status == V2_PROC_RUNNING;
        if (good && !(on ? idmap_find(&ps, slot->id) != NULL : is_sure_p(order, p)))
            hole->ids[hole->count++] = slot->id;
    }
    sort(hole);
    idmap_free(&gs);
    idmap_free(&ps);
    return good;
}

/* MARK: Emitting */

/* An event without a thread, right after the previous one. */
static struct step implied(struct v2_order *order, uint8_t type)
{
    return (struct step){
        .order = order,
        .m = &order->nobody,
        .now = {.m = TRAIL_NONE, .p = TRAIL_NONE, .g = TRAIL_NONE},
        .output = order->output,
        .time_ns = order->output.last_ns,
        .type = type,
    };
}

static trail_go_state go_state(const struct v2_g *g)
{
    static const uint8_t states[V2_GO_STATUSES] = {
        [V2_GO_BAD] = TRAIL_GO_UNDETERMINED, [V2_GO_RUNNABLE] = TRAIL_GO_RUNNABLE,
        [V2_GO_RUNNING] = TRAIL_GO_RUNNING,  [V2_GO_SYSCALL] = TRAIL_GO_SYSCALL,
        [V2_GO_WAITING] = TRAIL_GO_WAITING,
    };
    return (trail_go_state)states[g->status];
}

static trail_proc_state proc_state(const struct v2_p *p)
{
    bool busy = p->status == V2_PROC_RUNNING || p->status == V2_PROC_SYSCALL;
    return busy ? TRAIL_PROC_RUNNING : TRAIL_PROC_IDLE;
}

static void end_goroutine(struct v2_order *order, struct v2_g *g)
{
    struct step s = implied(order, V2_GoStatus);
    v2_end_ranges(&s, &g->ranges, TRAIL_RESOURCE_GOROUTINE, g->id);
    emit_go(&s, g->id, go_state(g), TRAIL_GO_UNDETERMINED)->flags = INFERRED;
    order->output = s.output;
    v2_destroy_g(order, g);
}

void v2_hole_begin_goroutine(struct v2_order *order, const struct v2_g *g)
{
    struct step s = implied(order, V2_GoStatus);
    emit_go(&s, g->id, TRAIL_GO_NOT_EXIST, go_state(g))->flags = INFERRED;
    order->output = s.output;
}

static void end_proc(struct v2_order *order, struct v2_p *p)
{
    struct step s = implied(order, V2_ProcStatus);
    v2_end_ranges(&s, &p->ranges, TRAIL_RESOURCE_PROC, p->id);
    emit_proc(&s, p->id, proc_state(p), TRAIL_PROC_UNDETERMINED)->flags = INFERRED;
    order->output = s.output;
    v2_destroy_p(order, p);
}

void v2_hole_begin_proc(struct v2_order *order, const struct v2_p *p)
{
    struct step s = implied(order, V2_ProcStatus);
    trail_event *e = emit_proc(&s, p->id, TRAIL_PROC_NOT_EXIST, proc_state(p));
    e->flags = INFERRED;
    e->transition.status = p->status;
    order->output = s.output;
}

void v2_hole_end_gc(struct v2_order *order)
{
    struct step s = implied(order, V2_GCEnd);
    v2_end_gc(&s);
    order->output = s.output;
}

/* A cycle may have ended at any time if the event with the next number is lost. */
static void check_gc(struct v2_order *order)
{
    if (order->gc != V2_GC_RUNNING ||
        v2_successors_type(order->successors, V2_NUMBERED_GC, 0, order->gc_seq + 1))
        return;
    v2_hole_end_gc(order);
    order->gc = V2_GC_UNDETERMINED;
}

bool v2_hole_emit(struct v2_hole *hole, struct v2_order *order, const trail_event *full)
{
    for (; hole->next < hole->count && order->output.next < full; hole->next++) {
        uint64_t id = hole->ids[hole->next];
        bool is_goroutine = hole->next < hole->goroutines;
        if (hole->within && is_goroutine)
            v2_hole_forget_g(order, (int64_t)id);
        else if (hole->within)
            v2_hole_forget_p(order, (int64_t)id);
        else if (is_goroutine)
            end_goroutine(order, objects_find(&order->gs, id));
        else
            end_proc(order, objects_find(&order->ps, id));
    }
    if (hole->next < hole->count)
        return false;
    if (!hole->within) {
        v2_hole_end_gc(order);
        v2_order_restart(order);
    } else {
        check_gc(order);
    }
    v2_hole_free(hole);
    return true;
}

/* MARK: Within a generation */

/* Stores the number that it had plus 2, or 1 if it had none in this generation: see
 * v2_hole_forgotten. */
static void remember(const struct v2_order *order, struct idmap *forgotten, uint64_t id,
                     struct v2_seq seq)
{
    bool numbered = seq.generation == order->generation && seq.n < UINTPTR_MAX - 2;
    (void)idmap_put(forgotten, id, (void *)(numbered ? (uintptr_t)seq.n + 2 : (uintptr_t)1));
}

bool v2_hole_forgotten(const struct idmap *forgotten, uint64_t id, uint64_t *n)
{
    uintptr_t value = (uintptr_t)idmap_find(forgotten, id);
    *n = value > 1 ? value - 2 : 0;
    return value > 1;
}

void v2_hole_forget_g(struct v2_order *order, int64_t id)
{
    struct v2_g *g = find_g(order, id);
    if (!g)
        return;
    remember(order, &order->forgotten_gs, (uint64_t)id, g->seq);
    end_goroutine(order, g);
}

void v2_hole_forget_p(struct v2_order *order, int64_t id)
{
    struct v2_p *p = find_p(order, id);
    if (!p)
        return;
    remember(order, &order->forgotten_ps, (uint64_t)id, p->seq);
    end_proc(order, p);
}

/* A P was not taken during a system call that ends on it. */
static void find_again(struct v2_order *order, int64_t id)
{
    uint64_t n;
    if (id == TRAIL_NONE || find_p(order, id) ||
        !v2_hole_forgotten(&order->forgotten_ps, (uint64_t)id, &n))
        return;
    struct v2_p *p = v2_create_p(order, id, V2_PROC_RUNNING);
    if (!p)
        return;
    set_seq(order, &p->seq, n);
    v2_hole_begin_proc(order, p);
}

static void check_p(struct v2_order *order, int64_t id)
{
    const struct v2_p *p = find_p(order, id);
    if (p && !is_sure_p(order, p))
        v2_hole_forget_p(order, id);
}

void v2_hole_check(struct v2_order *order, const trail_event *event)
{
    for (const trail_event *end = order->output.next; event < end; event++) {
        if (event->kind == TRAIL_RANGE_BEGIN && event->range.range == TRAIL_RANGE_GC)
            check_gc(order);
        if (event->kind != TRAIL_STATE_TRANSITION)
            continue;
        if (event->wire == V2_GoSyscallBegin)
            check_p(order, event->proc);
        if (event->wire == V2_GoSyscallEnd)
            find_again(order, event->proc);
        if (event->transition.resource == TRAIL_RESOURCE_PROC)
            check_p(order, event->transition.id);
        if (event->transition.resource != TRAIL_RESOURCE_GOROUTINE)
            continue;
        if (event->transition.to == TRAIL_GO_NOT_EXIST)
            (void)idmap_put(&order->ended_gs, (uint64_t)event->transition.id, order);
        const struct v2_g *g = find_g(order, event->transition.id);
        if (g && !is_sure_g(order, g))
            v2_hole_forget_g(order, g->id);
    }
}

void v2_hole_free(struct v2_hole *hole)
{
    free(hole->ids);
    *hole = (struct v2_hole){0};
}
