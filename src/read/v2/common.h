/*
 * The events that make up nearly all of a trace: the part of the model that the merge inlines into
 * its loop. The rest, and all error messages, are in v2/order.c.
 *
 * A common handler changes nothing before its last check. If it fails or the event is not common,
 * the event can therefore be offered again to v2_order_advance_any, which handles everything and
 * reports the reason.
 *
 * This header is compiled twice (v2/merge.c): with V2_WORD_ARGS, arguments are extracted from the
 * event's bytes when a handler uses them.
 */
#pragma once

#include <inttypes.h>

#include "read/v2/order.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COMMON      static inline __attribute__((always_inline))

/* The context of an event: `now` in a step. Handlers change the M, the event keeps `now`. */
struct context {
    int64_t m, p, g;
};

/* One step: an event and the state of its handler. */
struct step {
    struct v2_order *order;
    const struct v2_wire_event *wire;
    struct v2_m *m; /* never NULL: see v2_order_advance */
    struct context now;
    struct v2_output output; /* a copy of the order's, written back by the caller of the step */
    int64_t time_ns;
    uint8_t type;
    bool brief; /* failures need no message: the event is offered again */
};

/* Sets *order->error, with the context of the step. Returns V2_FAILED. */
enum v2_step v2_fail(const struct step *s, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

#define fail(s, ...) ((s)->brief ? V2_FAILED : v2_fail(s, __VA_ARGS__))

enum v2_step v2_fail_memory(const struct step *s);

/* Tasks, regions and logs (v2/annotations.c); the last two free their data in the model. */
enum v2_step v2_annotation(struct step *s);
void v2_drop_regions(struct v2_g *g);
void v2_drop_tasks(struct v2_order *order);

/*
 * For v2/guess.c. _end returns whether `ends` end the goroutine's innermost regions, as far as it
 * has any; _move appends the regions that remain open to those of *to.
 */
struct v2_region_end;
bool v2_regions_end(const struct v2_g *g, const struct v2_region_end *ends);
void v2_regions_move(struct v2_g *from, const struct v2_region_end *ends, struct v2_g *to);

/* End the ranges that are open where the trace is damaged (v2/hole.c). */
void v2_end_ranges(struct step *s, const struct v2_ranges *ranges, trail_resource scope,
                   int64_t scope_id);
void v2_end_gc(struct step *s);

/* Creates a goroutine (NULL with *order->error if out of memory); destroys one. */
struct v2_g *v2_create_g(struct v2_order *order, int64_t id, unsigned status);
void v2_destroy_g(struct v2_order *order, struct v2_g *g);
struct v2_p *v2_create_p(struct v2_order *order, int64_t id, unsigned status);
void v2_destroy_p(struct v2_order *order, struct v2_p *p);

/* Returns argument i of the event, not counting the time. */
COMMON uint64_t arg(const struct step *s, unsigned i)
{
#ifdef V2_WORD_ARGS
    if (s->brief)
        return v2_word_number(s->wire->word, s->wire->ends, i + 1);
#endif
    return s->wire->arg[i];
}

COMMON const char *type_name(const struct step *s)
{
    return v2_types[s->type].name;
}

COMMON struct v2_g *find_g(const struct v2_order *order, int64_t id)
{
    return objects_find(&order->gs, (uint64_t)id);
}

COMMON struct v2_p *find_p(const struct v2_order *order, int64_t id)
{
    return objects_find(&order->ps, (uint64_t)id);
}

/* Returns the context's goroutine; NULL if it does not exist. */
COMMON struct v2_g *current_g(const struct step *s)
{
    struct v2_g *g = s->m->g;
    if (LIKELY(g && g->id == s->now.g))
        return g;
    return find_g(s->order, s->now.g);
}

COMMON struct v2_p *current_p(const struct step *s)
{
    struct v2_p *p = s->m->p;
    if (LIKELY(p && p->id == s->now.p))
        return p;
    return find_p(s->order, s->now.p);
}

COMMON bool succeeds(const struct v2_order *order, struct v2_seq old, uint64_t n)
{
    return old.generation == order->generation && n == old.n + 1;
}

COMMON void set_seq(const struct v2_order *order, struct v2_seq *seq, uint64_t n)
{
    seq->generation = order->generation;
    seq->n = n;
}

COMMON void bind_g(struct step *s, int64_t id, struct v2_g *g)
{
    s->m->g_id = id;
    s->m->g = g;
}

COMMON void bind_p(struct step *s, int64_t id, struct v2_p *p)
{
    s->m->p_id = id;
    s->m->p = p;
}

COMMON enum v2_step unmet(struct step *s, unsigned needs)
{
    if ((needs & V2_NEED_M) && s->now.m == TRAIL_NONE)
        return fail(s, "%s: expected a thread but didn't have one", type_name(s));
    if ((needs & V2_NEED_P) && s->now.p == TRAIL_NONE)
        return fail(s, "%s: expected a proc but didn't have one", type_name(s));
    if ((needs & V2_NEED_NO_P) && s->now.p != TRAIL_NONE)
        return fail(s, "%s: expected no proc but had one", type_name(s));
    if ((needs & V2_NEED_G) && s->now.g == TRAIL_NONE)
        return fail(s, "%s: expected a goroutine but didn't have one", type_name(s));
    return fail(s, "%s: expected no goroutine but had one", type_name(s));
}

/*
 * Whether the context meets `needs`. A P or a goroutine implies a thread, which is then not tested.
 */
COMMON bool met(const struct step *s, unsigned needs)
{
    const struct context *now = &s->now;
    if ((needs & V2_NEED_M) && !(needs & (V2_NEED_P | V2_NEED_G)) && now->m == TRAIL_NONE)
        return false;
    if ((needs & V2_NEED_P) && now->p == TRAIL_NONE)
        return false;
    if ((needs & V2_NEED_NO_P) && now->p != TRAIL_NONE)
        return false;
    if ((needs & V2_NEED_G) && now->g == TRAIL_NONE)
        return false;
    return !((needs & V2_NEED_NO_G) && now->g != TRAIL_NONE);
}

/* Where events are lost, the P of a thread may be unknown. */
COMMON bool allows_no_p(const struct step *s, unsigned needs)
{
    return !s->brief && s->order->lenient && met(s, needs & ~(unsigned)V2_NEED_P);
}

#define REQUIRE(s, needs)                                                                          \
    do {                                                                                           \
        if (UNLIKELY(!met(s, needs)) && !allows_no_p(s, needs))                                    \
            return unmet(s, needs);                                                                \
    } while (0)

COMMON const char *go_status_name(unsigned status)
{
    static const char *const names[] = {"Bad", "Runnable", "Running", "Syscall", "Waiting"};
    return status < V2_GO_STATUSES ? names[status] : "Bad";
}

COMMON const char *proc_status_name(unsigned status)
{
    static const char *const names[] = {"Bad", "Running", "Idle", "Syscall", "SyscallAbandoned"};
    return status < V2_PROC_STATUSES ? names[status] : "Bad";
}

/* MARK: Emitting */

COMMON trail_event *emit(struct step *s, trail_kind kind)
{
    trail_event *e = s->output.next++;
    int64_t later_ns = (int64_t)((uint64_t)s->output.last_ns + 1);
    s->output.last_ns = s->time_ns > s->output.last_ns ? s->time_ns : later_ns;
    e->time_ns = s->output.last_ns;
    e->thread = s->now.m;
    e->proc = s->now.p;
    e->goroutine = s->now.g;
    e->kind = (uint8_t)kind;
    e->wire = s->type;
    e->flags = 0;
    e->reserved = 0;
    e->stack = 0;
    return e;
}

COMMON trail_event *emit_transition(struct step *s, trail_resource resource, int64_t id,
                                    unsigned from, unsigned to)
{
    trail_event *e = emit(s, TRAIL_STATE_TRANSITION);
    e->transition.resource = (uint8_t)resource;
    e->transition.from = (uint8_t)from;
    e->transition.to = (uint8_t)to;
    e->transition.status = 0;
    e->transition.reason = 0;
    e->transition.stack = 0;
    e->transition.id = id;
    return e;
}

COMMON trail_event *emit_go(struct step *s, int64_t id, trail_go_state from, trail_go_state to)
{
    return emit_transition(s, TRAIL_RESOURCE_GOROUTINE, id, from, to);
}

COMMON trail_event *emit_proc(struct step *s, int64_t id, trail_proc_state from,
                              trail_proc_state to)
{
    return emit_transition(s, TRAIL_RESOURCE_PROC, id, from, to);
}

/*
 * Reports an unknown ID. Returns whether to drop the event: a reader that is not strict keeps it,
 * without the stack or string.
 */
COMMON bool refuses_id(struct step *s, const char *what, uint64_t id, uint32_t *handle)
{
    *handle = 0;
    (void)fail(s, "found invalid %s ID %" PRIu64 " for event %s", what, id, type_name(s));
    if (s->brief || s->order->strict)
        return true;
    s->order->unknown++;
    return false;
}

#define STACK(s, id, handle)                                                                       \
    do {                                                                                           \
        if (UNLIKELY(!tables_stack((s)->order->tables, id, handle)) &&                             \
            refuses_id(s, "stack", id, handle))                                                    \
            return V2_FAILED;                                                                      \
    } while (0)

#define STRING(s, id, handle)                                                                      \
    do {                                                                                           \
        if (UNLIKELY(!tables_string((s)->order->tables, id, handle)) &&                            \
            refuses_id(s, "string", id, handle))                                                   \
            return V2_FAILED;                                                                      \
    } while (0)

/* MARK: Handlers */

COMMON enum v2_step on_proc_start(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    struct v2_p *p = find_p(o, id);
    if (!p || p->status != V2_PROC_IDLE || !succeeds(o, p->seq, arg(s, 1)) ||
        s->now.p != TRAIL_NONE)
        return V2_WAIT;
    REQUIRE(s, V2_NEED_M | V2_NEED_NO_P);
    p->status = V2_PROC_RUNNING;
    p->seq.n = arg(s, 1);
    bind_p(s, id, p);
    emit_proc(s, id, TRAIL_PROC_IDLE, TRAIL_PROC_RUNNING);
    return V2_ADVANCED;
}

COMMON enum v2_step on_proc_stop(struct step *s)
{
    struct v2_p *p = current_p(s);
    if (!p)
        return fail(s, "event %s for proc (%" PRId64 ") that doesn't exist", type_name(s),
                    s->now.p);
    if (p->status != V2_PROC_RUNNING && p->status != V2_PROC_SYSCALL)
        return fail(s, "%s event for proc that's not %s or %s", type_name(s),
                    proc_status_name(V2_PROC_RUNNING), proc_status_name(V2_PROC_SYSCALL));
    REQUIRE(s, V2_NEED_M | V2_NEED_P);
    p->status = V2_PROC_IDLE;
    bind_p(s, TRAIL_NONE, NULL);
    emit_proc(s, s->now.p, TRAIL_PROC_RUNNING, TRAIL_PROC_IDLE);
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_create(struct step *s)
{
    struct v2_order *o = s->order;
    bool blocked = s->type == V2_GoCreateBlocked;
    int64_t id = (int64_t)arg(s, 0);
    trail_stack_handle start, stack;
    REQUIRE(s, V2_NEED_M | V2_NEED_P);
    const struct v2_g *creator = current_g(s);
    if (creator && creator->status != V2_GO_RUNNING)
        return fail(s, "%s event for goroutine that's not %s", type_name(s),
                    go_status_name(V2_GO_RUNNING));
    if (find_g(o, id))
        return fail(s, "tried to create goroutine (%" PRId64 ") that already exists", id);
    STACK(s, arg(s, 2), &stack);
    STACK(s, arg(s, 1), &start);
    if (!v2_create_g(o, id, blocked ? V2_GO_WAITING : V2_GO_RUNNABLE))
        return V2_FAILED;
    trail_event *e =
        emit_go(s, id, TRAIL_GO_NOT_EXIST, blocked ? TRAIL_GO_WAITING : TRAIL_GO_RUNNABLE);
    e->stack = stack;
    e->transition.stack = start;
    return V2_ADVANCED;
}

/* Returns the context's goroutine, which must exist with `status`; NULL after a failure. */
COMMON struct v2_g *running_g(struct step *s, unsigned status)
{
    struct v2_g *g = current_g(s);
    if (UNLIKELY(!g)) {
        fail(s, "event %s for goroutine (%" PRId64 ") that doesn't exist", type_name(s), s->now.g);
        return NULL;
    }
    if (UNLIKELY(g->status != status)) {
        fail(s, "%s event for goroutine that's not %s", type_name(s), go_status_name(status));
        return NULL;
    }
    return g;
}

/* GoStop and GoBlock. */
COMMON enum v2_step on_go_stop(struct step *s)
{
    bool stop = s->type == V2_GoStop;
    trail_stack_handle stack;
    trail_string_handle reason;
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    STACK(s, arg(s, 1), &stack);
    STRING(s, arg(s, 0), &reason);
    g->status = stop ? V2_GO_RUNNABLE : V2_GO_WAITING;
    bind_g(s, TRAIL_NONE, NULL);
    trail_event *e =
        emit_go(s, s->now.g, TRAIL_GO_RUNNING, stop ? TRAIL_GO_RUNNABLE : TRAIL_GO_WAITING);
    e->stack = stack;
    e->transition.reason = reason;
    e->transition.stack = stack;
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_destroy(struct step *s)
{
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    v2_destroy_g(s->order, g);
    bind_g(s, TRAIL_NONE, NULL);
    emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_NOT_EXIST);
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_start(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    struct v2_g *g = find_g(o, id);
    if (!g || g->status != V2_GO_RUNNABLE || !succeeds(o, g->seq, arg(s, 1)))
        return V2_WAIT;
    REQUIRE(s, V2_NEED_M | V2_NEED_P | V2_NEED_NO_G);
    g->status = V2_GO_RUNNING;
    g->seq.n = arg(s, 1);
    bind_g(s, id, g);
    emit_go(s, id, TRAIL_GO_RUNNABLE, TRAIL_GO_RUNNING);
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_unblock(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    trail_stack_handle stack;
    struct v2_g *g = find_g(o, id);
    if (!g || g->status != V2_GO_WAITING || !succeeds(o, g->seq, arg(s, 1)))
        return V2_WAIT;
    STACK(s, arg(s, 2), &stack);
    g->status = V2_GO_RUNNABLE;
    g->seq.n = arg(s, 1);
    emit_go(s, id, TRAIL_GO_WAITING, TRAIL_GO_RUNNABLE)->stack = stack;
    return V2_ADVANCED;
}

COMMON enum v2_step on_syscall_begin(struct step *s)
{
    struct v2_order *o = s->order;
    trail_stack_handle stack;
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    struct v2_p *p = current_p(s);
    if (!p && (s->brief || !o->lenient))
        return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p, type_name(s));
    if (p && !succeeds(o, p->seq, arg(s, 0)))
        return fail(s,
                    "failed to advance %s: can't make sequence: %" PRIu64 " (gen=%" PRIu64
                    ") -> %" PRIu64 " (gen=%" PRIu64 ")",
                    type_name(s), p->seq.n, p->seq.generation, arg(s, 0), o->generation);
    STACK(s, arg(s, 1), &stack);
    g->status = V2_GO_SYSCALL;
    if (p) {
        p->status = V2_PROC_SYSCALL;
        p->seq.n = arg(s, 0);
    }
    trail_event *e = emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_SYSCALL);
    e->stack = stack;
    e->transition.stack = stack;
    return V2_ADVANCED;
}

COMMON enum v2_step on_syscall_end(struct step *s)
{
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_SYSCALL);
    if (!g)
        return V2_FAILED;
    struct v2_p *p = current_p(s);
    if (!p && (s->brief || !s->order->lenient))
        return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p, type_name(s));
    if (p && p->status != V2_PROC_SYSCALL)
        return fail(s, "expected proc %" PRId64 " in state %s, but got %s instead", s->now.p,
                    proc_status_name(V2_PROC_SYSCALL), proc_status_name(p->status));
    g->status = V2_GO_RUNNING;
    if (p)
        p->status = V2_PROC_RUNNING;
    emit_go(s, s->now.g, TRAIL_GO_SYSCALL, TRAIL_GO_RUNNING);
    return V2_ADVANCED;
}

COMMON enum v2_step on_syscall_end_blocked(struct step *s)
{
    if (s->now.p != TRAIL_NONE) {
        const struct v2_p *p = current_p(s);
        if (!p)
            return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p,
                        type_name(s));
        if (p->status == V2_PROC_SYSCALL)
            return V2_WAIT; /* until the P is stolen */
    }
    REQUIRE(s, V2_NEED_M | V2_NEED_G);
    struct v2_g *g = running_g(s, V2_GO_SYSCALL);
    if (!g)
        return V2_FAILED;
    g->status = V2_GO_RUNNABLE;
    bind_g(s, TRAIL_NONE, NULL);
    emit_go(s, s->now.g, TRAIL_GO_SYSCALL, TRAIL_GO_RUNNABLE);
    return V2_ADVANCED;
}

COMMON enum v2_step on_heap(struct step *s)
{
    REQUIRE(s, V2_NEED_M | V2_NEED_P);
    trail_event *e = emit(s, TRAIL_METRIC);
    e->metric.metric = s->type == V2_HeapAlloc ? TRAIL_METRIC_HEAP_LIVE : TRAIL_METRIC_HEAP_GOAL;
    e->metric.value = arg(s, 0);
    return V2_ADVANCED;
}

COMMON enum v2_step handle_common(struct step *s)
{
    switch (s->type) {
    case V2_ProcStart:
        return on_proc_start(s);
    case V2_ProcStop:
        return on_proc_stop(s);
    case V2_GoCreate:
    case V2_GoCreateBlocked:
        return on_go_create(s);
    case V2_GoStart:
        return on_go_start(s);
    case V2_GoDestroy:
        return on_go_destroy(s);
    case V2_GoStop:
    case V2_GoBlock:
        return on_go_stop(s);
    case V2_GoUnblock:
        return on_go_unblock(s);
    case V2_GoSyscallBegin:
        return on_syscall_begin(s);
    case V2_GoSyscallEnd:
        return on_syscall_end(s);
    case V2_GoSyscallEndBlocked:
        return on_syscall_end_blocked(s);
    case V2_HeapAlloc:
    case V2_HeapGoal:
        return on_heap(s);
    default:
        return V2_FAILED;
    }
}

COMMON struct step step_of(struct v2_order *order, const struct v2_cursor *c, bool brief)
{
    return (struct step){
        .order = order,
        .wire = &c->wire,
        .m = c->m,
        .now = {.m = c->m->id, .p = c->m->p_id, .g = c->m->g_id},
        .output = order->output,
        .time_ns = c->last_ns,
        .type = c->wire.type,
        .brief = brief,
    };
}
