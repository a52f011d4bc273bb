#include "read/v2_order.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "read/v2_generation.h"
#include "wire/wire.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/*
 * The handlers of common events become part of the loop that runs them, and their step stays in
 * registers. They change nothing before they can fail no more, because a failure is repeated to
 * tell why.
 */
#define COMMON static inline __attribute__((always_inline))

/* Text that outlives its generation. */
struct v2_name {
    size_t size;
    char data[];
};

struct v2_region {
    struct v2_region *outer;
    uint64_t task;
    struct v2_name *name;
};

struct v2_task {
    void *link; /* of the slab */
    uint64_t parent;
    struct v2_name *name;
};

/* Who does it: the context of an event. The step's handler changes `next`, the event keeps `now`.
 */
struct context {
    int64_t m, p, g;
};

/* One step: an offer on its way through its handler. */
struct step {
    struct v2_order *order;
    const uint64_t *arg;
    struct v2_m *m; /* never NULL: see v2_order_advance */
    struct context now;
    int64_t time_ns;
    uint8_t type;
    bool brief; /* a failure need not say why: see run() */
};

enum v2_step {
    V2_ADVANCED,
    V2_WAIT, /* for another thread's event */
    V2_FAILED
};

/* MARK: Finding, failing, requiring */

#define fail(s, ...) ((s)->brief ? V2_FAILED : fail_with(s, __VA_ARGS__))

static enum v2_step fail_with(struct step *s, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold, noinline));

static enum v2_step fail_with(struct step *s, const char *format, ...)
{
    char message[TRAIL_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    error_set(s->order->error, TRAIL_INCONSISTENT, "%s", message);
    s->order->error->goroutine = s->now.g;
    s->order->error->proc = s->now.p;
    return V2_FAILED;
}

static enum v2_step fail_memory(const struct step *s)
{
    error_set(s->order->error, TRAIL_NO_MEMORY, "out of memory while ordering events");
    return V2_FAILED;
}

static const char *type_name(const struct step *s)
{
    return v2_types[s->type].name;
}

static struct v2_g *find_g(const struct v2_order *order, int64_t id)
{
    return idmap_find(&order->gs, (uint64_t)id);
}

static struct v2_p *find_p(const struct v2_order *order, int64_t id)
{
    return idmap_find(&order->ps, (uint64_t)id);
}

/* The state of the goroutine of the context; NULL if it is gone. */
COMMON struct v2_g *current_g(const struct step *s)
{
    struct v2_g *g = s->m->g;
    if (LIKELY(g && g->id == s->now.g && g->alive))
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

static inline void set_seq(const struct v2_order *order, struct v2_seq *seq, uint64_t n)
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

/* What an event needs of its context: bits of one of these. */
enum {
    NEED_M = 1,
    NEED_P = 2,
    NEED_G = 4,
    NEED_NO_P = 8,
    NEED_NO_G = 16,
    NEED_USER_GO = NEED_M | NEED_P | NEED_G
};

COMMON enum v2_step unmet(struct step *s, unsigned needs)
{
    if ((needs & NEED_M) && s->now.m == TRAIL_NONE)
        return fail(s, "%s: expected a thread but didn't have one", type_name(s));
    if ((needs & NEED_P) && s->now.p == TRAIL_NONE)
        return fail(s, "%s: expected a proc but didn't have one", type_name(s));
    if ((needs & NEED_NO_P) && s->now.p != TRAIL_NONE)
        return fail(s, "%s: expected no proc but had one", type_name(s));
    if ((needs & NEED_G) && s->now.g == TRAIL_NONE)
        return fail(s, "%s: expected a goroutine but didn't have one", type_name(s));
    return fail(s, "%s: expected no goroutine but had one", type_name(s));
}

COMMON bool met(const struct step *s, unsigned needs)
{
    const struct context *now = &s->now;
    return !(((needs & NEED_M) && now->m == TRAIL_NONE) ||
             ((needs & NEED_P) && now->p == TRAIL_NONE) ||
             ((needs & NEED_NO_P) && now->p != TRAIL_NONE) ||
             ((needs & NEED_G) && now->g == TRAIL_NONE) ||
             ((needs & NEED_NO_G) && now->g != TRAIL_NONE));
}

#define REQUIRE(s, needs)                                                                          \
    do {                                                                                           \
        if (UNLIKELY(!met(s, needs)))                                                              \
            return unmet(s, needs);                                                                \
    } while (0)

static const char *go_status_name(unsigned status)
{
    static const char *const names[] = {"Bad", "Runnable", "Running", "Syscall", "Waiting"};
    return status < V2_GO_STATUSES ? names[status] : "Bad";
}

static const char *proc_status_name(unsigned status)
{
    static const char *const names[] = {"Bad", "Running", "Idle", "Syscall", "SyscallAbandoned"};
    return status < V2_PROC_STATUSES ? names[status] : "Bad";
}

/* MARK: Emitting */

COMMON trail_event *emit(struct step *s, trail_kind kind)
{
    struct v2_order *o = s->order;
    trail_event *e = o->out++;
    o->last_ns = s->time_ns > o->last_ns ? s->time_ns : (int64_t)((uint64_t)o->last_ns + 1);
    e->time_ns = o->last_ns;
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

COMMON enum v2_step bad_stack(struct step *s, uint64_t id)
{
    return fail(s, "found invalid stack ID %" PRIu64 " for event %s", id, type_name(s));
}

COMMON enum v2_step bad_string(struct step *s, uint64_t id)
{
    return fail(s, "found invalid string ID %" PRIu64 " for event %s", id, type_name(s));
}

#define STACK(s, id, handle)                                                                       \
    do {                                                                                           \
        if (UNLIKELY(!tables_stack((s)->order->tables, id, handle)))                               \
            return bad_stack(s, id);                                                               \
    } while (0)

#define STRING(s, id, handle)                                                                      \
    do {                                                                                           \
        if (UNLIKELY(!tables_string((s)->order->tables, id, handle)))                              \
            return bad_string(s, id);                                                              \
    } while (0)

/* MARK: Ps */

static trail_proc_state proc_state_of(unsigned status)
{
    static const uint8_t states[V2_PROC_STATUSES] = {
        [V2_PROC_RUNNING] = TRAIL_PROC_RUNNING,
        [V2_PROC_IDLE] = TRAIL_PROC_IDLE,
        [V2_PROC_SYSCALL] = TRAIL_PROC_RUNNING,
        [V2_PROC_ABANDONED] = TRAIL_PROC_IDLE,
    };
    return (trail_proc_state)states[status];
}

/* The context of the M that holds P `id`, for a P whose status another M announces. */
static bool find_context_of_p(struct step *s, int64_t id)
{
    const struct idmap *ms = &s->order->ms;
    for (size_t i = 0; ms->slots && i <= ms->mask; i++) {
        const struct v2_m *m = ms->slots[i].value;
        if (m && m->seen && m->p_id == id) {
            s->now = (struct context){.m = m->id, .p = id, .g = m->g_id};
            return true;
        }
    }
    return false;
}

static enum v2_step on_proc_status(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    unsigned announced = (uint8_t)s->arg[1], status = announced;
    if (announced >= V2_PROC_STATUSES)
        return fail(s, "invalid status for proc %" PRId64 ": %u", id, announced);
    trail_proc_state from = proc_state_of(announced);
    bool promoted = false;
    struct v2_p *p = find_p(o, id);
    if (p) {
        if (announced == V2_PROC_ABANDONED && p->status == V2_PROC_SYSCALL) {
            /* "Abandoned" is a loss of information that has not happened to us. */
            promoted = true;
            from = TRAIL_PROC_RUNNING;
            status = V2_PROC_SYSCALL;
        } else if (p->status != announced) {
            return fail(s, "inconsistent status for proc %" PRId64 ": old %s vs. new %s", id,
                        proc_status_name(p->status), proc_status_name(announced));
        }
    } else {
        p = slab_get(&o->p_slab);
        if (!p || !idmap_put(&o->ps, (uint64_t)id, p))
            return fail_memory(s);
        p->id = id;
        p->status = (uint8_t)status;
        from =
            o->generation == o->initial_generation ? TRAIL_PROC_UNDETERMINED : TRAIL_PROC_NOT_EXIST;
    }
    set_seq(o, &p->seq, 0);
    if (announced == V2_PROC_RUNNING || announced == V2_PROC_SYSCALL)
        bind_p(s, id, p);
    if (promoted && !find_context_of_p(s, id))
        return fail(
            s, "failed to find sched context for proc %" PRId64 " that's about to be stolen", id);
    emit_proc(s, id, from, proc_state_of(status));
    return V2_ADVANCED;
}

COMMON enum v2_step on_proc_start(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    struct v2_p *p = find_p(o, id);
    if (!p || p->status != V2_PROC_IDLE || !succeeds(o, p->seq, s->arg[1]) ||
        s->now.p != TRAIL_NONE)
        return V2_WAIT;
    REQUIRE(s, NEED_M | NEED_NO_P);
    p->status = V2_PROC_RUNNING;
    p->seq.n = s->arg[1];
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
    REQUIRE(s, NEED_M | NEED_P);
    p->status = V2_PROC_IDLE;
    bind_p(s, TRAIL_NONE, NULL);
    emit_proc(s, s->now.p, TRAIL_PROC_RUNNING, TRAIL_PROC_IDLE);
    return V2_ADVANCED;
}

static enum v2_step on_proc_steal(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0], victim_id = (int64_t)s->arg[2];
    struct v2_p *p = find_p(o, id);
    if (!p || (p->status != V2_PROC_SYSCALL && p->status != V2_PROC_ABANDONED) ||
        !succeeds(o, p->seq, s->arg[1]))
        return V2_WAIT;
    REQUIRE(s, NEED_M);
    bool abandoned = p->status == V2_PROC_ABANDONED;
    p->status = V2_PROC_IDLE;
    p->seq.n = s->arg[1];
    if (abandoned) {
        /* Whose it was is not known any more, and that M may have gone on. */
        emit_proc(s, id, TRAIL_PROC_IDLE, TRAIL_PROC_IDLE);
        return V2_ADVANCED;
    }
    if (victim_id == s->now.m) {
        if (s->now.p != id)
            return fail(s,
                        "tried to self-steal proc %" PRId64 " (thread %" PRId64
                        "), but got proc %" PRId64 " instead",
                        id, victim_id, s->now.p);
        bind_p(s, TRAIL_NONE, NULL);
    } else {
        struct v2_m *victim = idmap_find(&o->ms, (uint64_t)victim_id);
        if (!victim || !victim->seen)
            return fail(s, "stole proc from non-existent thread %" PRId64, victim_id);
        if (victim->p_id != id)
            return fail(s,
                        "tried to steal proc %" PRId64 " from thread %" PRId64
                        ", but got proc %" PRId64 " instead",
                        id, victim_id, victim->p_id);
        /* The victim is in a system call; its GoSyscallEndBlocked waits for this. */
        victim->p_id = TRAIL_NONE;
        victim->p = NULL;
    }
    emit_proc(s, id, TRAIL_PROC_RUNNING, TRAIL_PROC_IDLE);
    return V2_ADVANCED;
}

/* MARK: Goroutines */

static trail_go_state go_state_of(unsigned status)
{
    static const uint8_t states[V2_GO_STATUSES] = {
        [V2_GO_BAD] = TRAIL_GO_UNDETERMINED, [V2_GO_RUNNABLE] = TRAIL_GO_RUNNABLE,
        [V2_GO_RUNNING] = TRAIL_GO_RUNNING,  [V2_GO_SYSCALL] = TRAIL_GO_SYSCALL,
        [V2_GO_WAITING] = TRAIL_GO_WAITING,
    };
    return (trail_go_state)states[status];
}

static void drop_regions(struct v2_g *g)
{
    while (g->regions) {
        struct v2_region *outer = g->regions->outer;
        free(g->regions->name);
        free(g->regions);
        g->regions = outer;
    }
}

static struct v2_g *create_g(struct v2_order *o, int64_t id, unsigned status)
{
    struct v2_g *g = slab_get(&o->g_slab);
    if (!g || !idmap_put(&o->gs, (uint64_t)id, g)) {
        error_set(o->error, TRAIL_NO_MEMORY, "out of memory while ordering events");
        return NULL;
    }
    g->id = id;
    g->alive = true;
    g->status = (uint8_t)status;
    set_seq(o, &g->seq, 0);
    return g;
}

static void destroy_g(struct v2_order *o, struct v2_g *g)
{
    idmap_remove(&o->gs, (uint64_t)g->id);
    drop_regions(g);
    free(g->ranges.items);
    g->alive = false;
    slab_put(&o->g_slab, g);
}

static enum v2_step not_in_thread(struct step *s, int64_t g, int64_t held)
{
    return fail(s,
                "inconsistent thread for syscalling goroutine %" PRId64
                ": thread has goroutine %" PRId64,
                g, held);
}

/* A goroutine that sits in a system call is bound to thread `m_id`, which may be another one. */
static enum v2_step bind_syscalling(struct step *s, int64_t id, struct v2_g *g, int64_t m_id)
{
    struct v2_order *o = s->order;
    if (m_id == TRAIL_NONE)
        return fail(s, "found goroutine %" PRId64 " in syscall without a thread", id);
    if (m_id == s->now.m) {
        if (o->generation != o->initial_generation && s->now.g != id)
            return not_in_thread(s, id, s->now.g);
        bind_g(s, id, g);
        return V2_ADVANCED;
    }
    struct v2_m *m = v2_order_m(o, (uint64_t)m_id);
    if (!m)
        return fail_memory(s);
    if (m->seen) {
        if (m->g_id != id)
            return not_in_thread(s, id, m->g_id);
        s->now.g = id;
    } else {
        m->seen = true;
        m->g_id = id;
        m->g = g;
    }
    s->now.m = m_id;
    return V2_ADVANCED;
}

static enum v2_step on_go_status(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    unsigned status = (uint8_t)s->arg[2];
    trail_stack_handle stack = 0;
    if (status >= V2_GO_STATUSES)
        return fail(s, "invalid status for goroutine %" PRId64 ": %u", id, status);
    trail_go_state from = go_state_of(status);
    struct v2_g *g = find_g(o, id);
    if (g) {
        if (g->status != status)
            return fail(s, "inconsistent status for goroutine %" PRId64 ": old %s vs. new %s", id,
                        go_status_name(g->status), go_status_name(status));
        set_seq(o, &g->seq, 0);
    } else if (o->generation == o->initial_generation) {
        g = create_g(o, id, status);
        if (!g)
            return fail_memory(s);
        from = TRAIL_GO_UNDETERMINED;
    } else {
        return fail(s,
                    "found goroutine status for new goroutine after the first generation: "
                    "id=%" PRId64 " status=%s",
                    id, go_status_name(status));
    }
    if (status == V2_GO_RUNNING) {
        bind_g(s, id, g);
    } else if (status == V2_GO_SYSCALL) {
        enum v2_step bound = bind_syscalling(s, id, g, (int64_t)s->arg[1]);
        if (bound != V2_ADVANCED)
            return bound;
    }
    if (s->type == V2_GoStatusStack)
        STACK(s, s->arg[3], &stack);
    trail_event *e = emit_go(s, id, from, go_state_of(status));
    e->stack = stack;
    e->transition.stack = stack;
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_create(struct step *s)
{
    struct v2_order *o = s->order;
    bool blocked = s->type == V2_GoCreateBlocked;
    int64_t id = (int64_t)s->arg[0];
    trail_stack_handle start, stack;
    REQUIRE(s, NEED_M | NEED_P);
    const struct v2_g *creator = current_g(s);
    if (creator && creator->status != V2_GO_RUNNING)
        return fail(s, "%s event for goroutine that's not %s", type_name(s),
                    go_status_name(V2_GO_RUNNING));
    if (find_g(o, id))
        return fail(s, "tried to create goroutine (%" PRId64 ") that already exists", id);
    STACK(s, s->arg[2], &stack);
    STACK(s, s->arg[1], &start);
    if (!create_g(o, id, blocked ? V2_GO_WAITING : V2_GO_RUNNABLE))
        return V2_FAILED;
    trail_event *e =
        emit_go(s, id, TRAIL_GO_NOT_EXIST, blocked ? TRAIL_GO_WAITING : TRAIL_GO_RUNNABLE);
    e->stack = stack;
    e->transition.stack = start;
    return V2_ADVANCED;
}

/* The goroutine of the context, which must exist with `status`; NULL: failed. */
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
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    STACK(s, s->arg[1], &stack);
    STRING(s, s->arg[0], &reason);
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
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    destroy_g(s->order, g);
    bind_g(s, TRAIL_NONE, NULL);
    emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_NOT_EXIST);
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_start(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    struct v2_g *g = find_g(o, id);
    if (!g || g->status != V2_GO_RUNNABLE || !succeeds(o, g->seq, s->arg[1]))
        return V2_WAIT;
    REQUIRE(s, NEED_M | NEED_P | NEED_NO_G);
    g->status = V2_GO_RUNNING;
    g->seq.n = s->arg[1];
    bind_g(s, id, g);
    emit_go(s, id, TRAIL_GO_RUNNABLE, TRAIL_GO_RUNNING);
    return V2_ADVANCED;
}

COMMON enum v2_step on_go_unblock(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    trail_stack_handle stack;
    struct v2_g *g = find_g(o, id);
    if (!g || g->status != V2_GO_WAITING || !succeeds(o, g->seq, s->arg[1]))
        return V2_WAIT;
    STACK(s, s->arg[2], &stack);
    g->status = V2_GO_RUNNABLE;
    g->seq.n = s->arg[1];
    emit_go(s, id, TRAIL_GO_WAITING, TRAIL_GO_RUNNABLE)->stack = stack;
    return V2_ADVANCED;
}

/*
 * GoSwitch and GoSwitchDestroy hand the thread from one goroutine to another at once. Three events
 * tell it: the other is unblocked, the current one blocks or ends, the other starts (§6.5).
 */
static enum v2_step on_go_switch(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    struct v2_g *next = find_g(o, id);
    if (!next || next->status != V2_GO_WAITING || !succeeds(o, next->seq, s->arg[1]))
        return V2_WAIT;
    emit_go(s, id, TRAIL_GO_WAITING, TRAIL_GO_RUNNABLE);
    if (s->type == V2_GoSwitch) {
        g->status = V2_GO_WAITING;
        s->type = V2_GoBlock;
        emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_WAITING);
    } else {
        destroy_g(o, g);
        s->type = V2_GoDestroy;
        emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_NOT_EXIST);
    }
    next->status = V2_GO_RUNNING;
    next->seq.n = s->arg[1];
    bind_g(s, id, next);
    s->type = V2_GoStart;
    s->now.g = TRAIL_NONE;
    emit_go(s, id, TRAIL_GO_RUNNABLE, TRAIL_GO_RUNNING);
    return V2_ADVANCED;
}

/* MARK: System calls */

COMMON enum v2_step on_syscall_begin(struct step *s)
{
    struct v2_order *o = s->order;
    trail_stack_handle stack;
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    struct v2_p *p = current_p(s);
    if (!p)
        return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p, type_name(s));
    if (!succeeds(o, p->seq, s->arg[0]))
        return fail(s,
                    "failed to advance %s: can't make sequence: %" PRIu64 " (gen=%" PRIu64
                    ") -> %" PRIu64 " (gen=%" PRIu64 ")",
                    type_name(s), p->seq.n, p->seq.generation, s->arg[0], o->generation);
    STACK(s, s->arg[1], &stack);
    g->status = V2_GO_SYSCALL;
    p->status = V2_PROC_SYSCALL;
    p->seq.n = s->arg[0];
    trail_event *e = emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_SYSCALL);
    e->stack = stack;
    e->transition.stack = stack;
    return V2_ADVANCED;
}

COMMON enum v2_step on_syscall_end(struct step *s)
{
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_SYSCALL);
    if (!g)
        return V2_FAILED;
    struct v2_p *p = current_p(s);
    if (!p)
        return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p, type_name(s));
    if (p->status != V2_PROC_SYSCALL)
        return fail(s, "expected proc %" PRId64 " in state %s, but got %s instead", s->now.p,
                    proc_status_name(V2_PROC_SYSCALL), proc_status_name(p->status));
    g->status = V2_GO_RUNNING;
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
            return V2_WAIT; /* for whoever takes the P away */
    }
    REQUIRE(s, NEED_M | NEED_G);
    struct v2_g *g = running_g(s, V2_GO_SYSCALL);
    if (!g)
        return V2_FAILED;
    g->status = V2_GO_RUNNABLE;
    bind_g(s, TRAIL_NONE, NULL);
    emit_go(s, s->now.g, TRAIL_GO_SYSCALL, TRAIL_GO_RUNNABLE);
    return V2_ADVANCED;
}

static enum v2_step on_create_syscall(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)s->arg[0];
    REQUIRE(s, NEED_M | NEED_NO_G);
    if (find_g(o, id))
        return fail(s, "tried to create goroutine (%" PRId64 ") in syscall that already exists",
                    id);
    struct v2_g *g = create_g(o, id, V2_GO_SYSCALL);
    if (!g)
        return fail_memory(s);
    bind_g(s, id, g);
    emit_go(s, id, TRAIL_GO_NOT_EXIST, TRAIL_GO_SYSCALL);
    return V2_ADVANCED;
}

/* The end of a C thread that called into Go. A P that it still holds is lost track of: see
 * "abandoned". */
static enum v2_step on_destroy_syscall(struct step *s)
{
    struct v2_order *o = s->order;
    REQUIRE(s, NEED_M | NEED_G);
    struct v2_g *g = running_g(s, V2_GO_SYSCALL);
    if (!g)
        return V2_FAILED;
    destroy_g(o, g);
    bind_g(s, TRAIL_NONE, NULL);
    if (s->now.p != TRAIL_NONE) {
        struct v2_p *p = current_p(s);
        if (!p)
            return fail(s, "found invalid proc %" PRId64 " during %s", s->now.p, type_name(s));
        if (p->status != V2_PROC_SYSCALL)
            return fail(s, "proc %" PRId64 " in unexpected state %s during %s", s->now.p,
                        proc_status_name(p->status), type_name(s));
        p->status = V2_PROC_ABANDONED;
        bind_p(s, TRAIL_NONE, NULL);
        s->type = V2_ProcSteal;
        emit_proc(s, s->now.p, TRAIL_PROC_RUNNING, TRAIL_PROC_IDLE);
        s->type = V2_GoDestroySyscall;
    }
    emit_go(s, s->now.g, TRAIL_GO_SYSCALL, TRAIL_GO_NOT_EXIST);
    return V2_ADVANCED;
}

/* MARK: Annotations */

static struct v2_name *name_copy(const struct v2_order *o, trail_string_handle handle)
{
    trail_string text = o->tables->strings[handle];
    struct v2_name *name = malloc(sizeof *name + text.size);
    if (!name)
        return NULL;
    name->size = text.size;
    memcpy(name->data, text.data, text.size);
    return name;
}

static enum v2_step bad_name(struct step *s, uint64_t id)
{
    return fail(s, "invalid string ID %" PRIu64 " for %s event", id, type_name(s));
}

static enum v2_step on_task_begin(struct step *s)
{
    struct v2_order *o = s->order;
    uint64_t id = s->arg[0], parent = s->arg[1];
    trail_string_handle type;
    trail_stack_handle stack;
    if (idmap_find(&o->tasks, id))
        return fail(s, "task ID conflict: %" PRIu64, id);
    if (parent == TRAIL_BACKGROUND_TASK)
        parent = TRAIL_NO_TASK;
    if (!tables_string(o->tables, s->arg[2], &type))
        return bad_name(s, s->arg[2]);
    struct v2_task *task = slab_get(&o->task_slab);
    if (!task || !idmap_put(&o->tasks, id, task))
        return fail_memory(s);
    task->parent = parent;
    task->name = name_copy(o, type);
    if (!task->name)
        return fail_memory(s);
    REQUIRE(s, NEED_USER_GO);
    STACK(s, s->arg[3], &stack);
    trail_event *e = emit(s, TRAIL_TASK_BEGIN);
    e->stack = stack;
    e->task.id = id;
    e->task.parent = parent;
    e->task.type = type;
    return V2_ADVANCED;
}

/* A task whose begin was not seen may end: it has no parent and no name then. */
static enum v2_step on_task_end(struct step *s)
{
    struct v2_order *o = s->order;
    uint64_t id = s->arg[0], parent = TRAIL_NO_TASK;
    trail_string_handle type = 0;
    trail_stack_handle stack;
    struct v2_task *task = idmap_remove(&o->tasks, id);
    if (task) {
        parent = task->parent;
        type = tables_extra_string(o->tables, task->name->data, task->name->size);
        free(task->name);
        slab_put(&o->task_slab, task);
    }
    REQUIRE(s, NEED_USER_GO);
    STACK(s, s->arg[1], &stack);
    trail_event *e = emit(s, TRAIL_TASK_END);
    e->stack = stack;
    e->task.id = id;
    e->task.parent = parent;
    e->task.type = type;
    return V2_ADVANCED;
}

static enum v2_step begin_region(struct step *s, struct v2_g *g, uint64_t task,
                                 trail_string_handle type)
{
    struct v2_region *region = malloc(sizeof *region);
    struct v2_name *name = name_copy(s->order, type);
    if (!region || !name) {
        free(region);
        free(name);
        return fail_memory(s);
    }
    *region = (struct v2_region){.outer = g->regions, .task = task, .name = name};
    g->regions = region;
    return V2_ADVANCED;
}

/* A region that began before the trace may end; one that is not the inner-most may not. */
static enum v2_step end_region(struct step *s, struct v2_g *g, uint64_t task,
                               trail_string_handle type)
{
    struct v2_region *inner = g->regions;
    trail_string text = s->order->tables->strings[type];
    if (!inner)
        return V2_ADVANCED;
    if (inner->task != task || inner->name->size != text.size ||
        memcmp(inner->name->data, text.data, text.size) != 0)
        return fail(s,
                    "misuse of region in goroutine %" PRId64 ": region end {%" PRIu64
                    " %.*s} when the inner-most active region start event is {%" PRIu64 " %.*s}",
                    g->id, task, (int)text.size, text.data, inner->task, (int)inner->name->size,
                    inner->name->data);
    g->regions = inner->outer;
    free(inner->name);
    free(inner);
    return V2_ADVANCED;
}

static enum v2_step on_region(struct step *s)
{
    bool begin = s->type == V2_UserRegionBegin;
    uint64_t task = s->arg[0];
    trail_string_handle type;
    trail_stack_handle stack;
    REQUIRE(s, NEED_USER_GO);
    if (!tables_string(s->order->tables, s->arg[1], &type))
        return bad_name(s, s->arg[1]);
    struct v2_g *g = current_g(s);
    if (!g)
        return fail(s, "encountered %s without known state for current goroutine %" PRId64,
                    type_name(s), s->now.g);
    enum v2_step step = begin ? begin_region(s, g, task, type) : end_region(s, g, task, type);
    if (step != V2_ADVANCED)
        return step;
    STACK(s, s->arg[2], &stack);
    trail_event *e = emit(s, begin ? TRAIL_REGION_BEGIN : TRAIL_REGION_END);
    e->stack = stack;
    e->region.task = task;
    e->region.type = type;
    return V2_ADVANCED;
}

static enum v2_step on_log(struct step *s)
{
    trail_stack_handle stack;
    trail_string_handle category, message;
    REQUIRE(s, NEED_USER_GO);
    STACK(s, s->arg[3], &stack);
    STRING(s, s->arg[1], &category);
    STRING(s, s->arg[2], &message);
    trail_event *e = emit(s, TRAIL_LOG);
    e->stack = stack;
    e->log.task = s->arg[0];
    e->log.category = category;
    e->log.message = message;
    return V2_ADVANCED;
}

static enum v2_step on_label(struct step *s)
{
    trail_string_handle text;
    REQUIRE(s, NEED_USER_GO);
    STRING(s, s->arg[0], &text);
    trail_event *e = emit(s, TRAIL_LABEL);
    e->label.goroutine = s->now.g;
    e->label.text = text;
    return V2_ADVANCED;
}

/* MARK: Metrics and ranges */

static enum v2_step on_procs_change(struct step *s)
{
    trail_stack_handle stack;
    REQUIRE(s, NEED_USER_GO);
    STACK(s, s->arg[1], &stack);
    trail_event *e = emit(s, TRAIL_METRIC);
    e->stack = stack;
    e->metric.metric = TRAIL_METRIC_GOMAXPROCS;
    e->metric.value = s->arg[0];
    return V2_ADVANCED;
}

COMMON enum v2_step on_heap(struct step *s)
{
    REQUIRE(s, NEED_M | NEED_P);
    trail_event *e = emit(s, TRAIL_METRIC);
    e->metric.metric = s->type == V2_HeapAlloc ? TRAIL_METRIC_HEAP_LIVE : TRAIL_METRIC_HEAP_GOAL;
    e->metric.value = s->arg[0];
    return V2_ADVANCED;
}

static trail_event *emit_range(struct step *s, trail_kind kind, trail_range range,
                               trail_resource scope, int64_t scope_id)
{
    trail_event *e = emit(s, kind);
    e->range.range = range;
    e->range.scope = scope;
    e->range.scope_id = scope_id;
    e->range.name = s->order->range_names[range];
    e->range.has_swept = false;
    return e;
}

static bool has_range(const struct v2_ranges *ranges, uint8_t type, uint64_t kind)
{
    for (uint32_t i = 0; i < ranges->count; i++)
        if (ranges->items[i].type == type && ranges->items[i].kind == kind)
            return true;
    return false;
}

static enum v2_step add_range(struct step *s, struct v2_ranges *ranges, uint8_t type, uint64_t kind)
{
    if (ranges->count == ranges->capacity) {
        uint32_t capacity = ranges->capacity ? ranges->capacity * 2 : 2;
        struct v2_range *items = realloc(ranges->items, capacity * sizeof *items);
        if (!items)
            return fail_memory(s);
        ranges->items = items;
        ranges->capacity = capacity;
    }
    ranges->items[ranges->count++] = (struct v2_range){.type = type, .kind = kind};
    return V2_ADVANCED;
}

static enum v2_step begin_range(struct step *s, struct v2_ranges *ranges, uint64_t kind)
{
    if (has_range(ranges, s->type, kind))
        return fail(s, "discovered event already in-flight for when starting event %s",
                    type_name(s));
    return add_range(s, ranges, s->type, kind);
}

/* Ends the range of begin type `type`, whatever its kind, and tells the kind. */
static enum v2_step end_range(struct step *s, struct v2_ranges *ranges, uint8_t type,
                              uint64_t *kind)
{
    for (uint32_t i = 0; i < ranges->count; i++) {
        if (ranges->items[i].type == type) {
            *kind = ranges->items[i].kind;
            ranges->items[i] = ranges->items[--ranges->count];
            return V2_ADVANCED;
        }
    }
    return fail(s, "tried to end event %s, but not in-flight", v2_types[type].name);
}

/* A range announced as in progress: new in the first generation, known in any other. */
static enum v2_step active_range(struct step *s, struct v2_ranges *ranges, uint8_t type)
{
    bool initial = s->order->generation == s->order->initial_generation;
    bool known = has_range(ranges, type, 0);
    if (initial && known)
        return fail(s, "found named active range already in first gen: %s", v2_types[type].name);
    if (!initial && !known)
        return fail(s, "resource is missing active range: %s", v2_types[type].name);
    return initial ? add_range(s, ranges, type, 0) : V2_ADVANCED;
}

static trail_string_handle stw_name(struct v2_order *o, uint64_t kind)
{
    char name[V2_MAX_STRING + 32];
    trail_string_handle handle;
    tables_string(o->tables, kind, &handle);
    trail_string text = o->tables->strings[handle];
    int size = snprintf(name, sizeof name, "stop-the-world (%.*s)", (int)text.size, text.data);
    return tables_extra_string(o->tables, name, (size_t)size);
}

/* STW and mark assists: ranges of the goroutine of the context. */
static struct v2_g *range_g(struct step *s)
{
    struct v2_g *g = current_g(s);
    if (!g)
        fail(s, "encountered event %s without known state for current goroutine %" PRId64,
             type_name(s), s->now.g);
    return g;
}

static enum v2_step on_stw(struct step *s)
{
    bool begin = s->type == V2_STWBegin;
    uint64_t kind = begin ? s->arg[0] : 0;
    trail_stack_handle stack = 0;
    trail_string_handle known;
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = range_g(s);
    if (!g)
        return V2_FAILED;
    enum v2_step step =
        begin ? begin_range(s, &g->ranges, kind) : end_range(s, &g->ranges, V2_STWBegin, &kind);
    if (step != V2_ADVANCED)
        return step;
    if (begin) {
        STACK(s, s->arg[1], &stack);
        STRING(s, kind, &known);
    }
    trail_event *e = emit_range(s, begin ? TRAIL_RANGE_BEGIN : TRAIL_RANGE_END, TRAIL_RANGE_STW,
                                TRAIL_RESOURCE_GOROUTINE, s->now.g);
    e->stack = stack;
    e->range.name = stw_name(s->order, kind);
    return V2_ADVANCED;
}

static enum v2_step on_mark_assist(struct step *s)
{
    bool begin = s->type == V2_GCMarkAssistBegin;
    uint64_t kind;
    trail_stack_handle stack = 0;
    REQUIRE(s, NEED_USER_GO);
    struct v2_g *g = range_g(s);
    if (!g)
        return V2_FAILED;
    enum v2_step step = begin ? begin_range(s, &g->ranges, 0)
                              : end_range(s, &g->ranges, V2_GCMarkAssistBegin, &kind);
    if (step != V2_ADVANCED)
        return step;
    if (begin)
        STACK(s, s->arg[0], &stack);
    emit_range(s, begin ? TRAIL_RANGE_BEGIN : TRAIL_RANGE_END, TRAIL_RANGE_MARK_ASSIST,
               TRAIL_RESOURCE_GOROUTINE, s->now.g)
        ->stack = stack;
    return V2_ADVANCED;
}

static enum v2_step on_mark_assist_active(struct step *s)
{
    int64_t id = (int64_t)s->arg[0];
    struct v2_g *g = find_g(s->order, id);
    if (!g)
        return fail(s, "uninitialized goroutine %" PRId64 " found during %s", id, type_name(s));
    enum v2_step step = active_range(s, &g->ranges, V2_GCMarkAssistBegin);
    if (step == V2_ADVANCED)
        emit_range(s, TRAIL_RANGE_ACTIVE, TRAIL_RANGE_MARK_ASSIST, TRAIL_RESOURCE_GOROUTINE, id);
    return step;
}

static enum v2_step on_sweep(struct step *s)
{
    bool begin = s->type == V2_GCSweepBegin;
    uint64_t kind;
    trail_stack_handle stack = 0;
    REQUIRE(s, NEED_M | NEED_P);
    struct v2_p *p = current_p(s);
    if (!p)
        return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p, type_name(s));
    enum v2_step step =
        begin ? begin_range(s, &p->ranges, 0) : end_range(s, &p->ranges, V2_GCSweepBegin, &kind);
    if (step != V2_ADVANCED)
        return step;
    if (begin)
        STACK(s, s->arg[0], &stack);
    trail_event *e = emit_range(s, begin ? TRAIL_RANGE_BEGIN : TRAIL_RANGE_END, TRAIL_RANGE_SWEEP,
                                TRAIL_RESOURCE_PROC, s->now.p);
    e->stack = stack;
    if (!begin) {
        e->range.has_swept = true;
        e->range.swept_bytes = s->arg[0];
        e->range.reclaimed_bytes = s->arg[1];
    }
    return V2_ADVANCED;
}

static enum v2_step on_sweep_active(struct step *s)
{
    int64_t id = (int64_t)s->arg[0];
    struct v2_p *p = find_p(s->order, id);
    if (!p)
        return fail(s, "encountered GCSweepActive for unknown proc %" PRId64, id);
    enum v2_step step = active_range(s, &p->ranges, V2_GCSweepBegin);
    if (step == V2_ADVANCED)
        emit_range(s, TRAIL_RANGE_ACTIVE, TRAIL_RANGE_SWEEP, TRAIL_RESOURCE_PROC, id);
    return step;
}

static enum v2_step emit_gc(struct step *s, trail_kind kind, trail_stack_handle stack)
{
    emit_range(s, kind, TRAIL_RANGE_GC, TRAIL_RESOURCE_NONE, 0)->stack = stack;
    return V2_ADVANCED;
}

static enum v2_step on_gc_active(struct step *s)
{
    struct v2_order *o = s->order;
    if (o->generation == o->initial_generation) {
        if (o->gc != V2_GC_UNDETERMINED)
            return fail(s, "GCActive in the first generation isn't first GC event");
    } else {
        if (s->arg[0] != o->gc_seq + 1)
            return V2_WAIT;
        if (o->gc != V2_GC_RUNNING)
            return fail(s, "encountered GCActive while GC was not in progress");
        REQUIRE(s, NEED_USER_GO);
    }
    o->gc_seq = s->arg[0];
    o->gc = V2_GC_RUNNING;
    return emit_gc(s, TRAIL_RANGE_ACTIVE, 0);
}

static enum v2_step on_gc_begin(struct step *s)
{
    struct v2_order *o = s->order;
    trail_stack_handle stack;
    if (o->gc != V2_GC_UNDETERMINED) {
        if (s->arg[0] != o->gc_seq + 1)
            return V2_WAIT;
        if (o->gc == V2_GC_RUNNING)
            return fail(s, "encountered GCBegin while GC was already in progress");
        REQUIRE(s, NEED_USER_GO);
    }
    o->gc_seq = s->arg[0];
    o->gc = V2_GC_RUNNING;
    STACK(s, s->arg[1], &stack);
    return emit_gc(s, TRAIL_RANGE_BEGIN, stack);
}

static enum v2_step on_gc_end(struct step *s)
{
    struct v2_order *o = s->order;
    if (s->arg[0] != o->gc_seq + 1)
        return V2_WAIT;
    if (o->gc == V2_GC_NOT_RUNNING)
        return fail(s, "encountered GCEnd when GC was not in progress");
    if (o->gc == V2_GC_UNDETERMINED)
        return fail(s, "encountered GCEnd when GC was in an undetermined state");
    REQUIRE(s, NEED_USER_GO);
    o->gc_seq = s->arg[0];
    o->gc = V2_GC_NOT_RUNNING;
    return emit_gc(s, TRAIL_RANGE_END, 0);
}

static enum v2_step on_alloc_free(struct step *s)
{
    REQUIRE(s, NEED_M);
    trail_event *e = emit(s, TRAIL_EXPERIMENTAL);
    e->experimental.args = (uint8_t)(v2_types[s->type].args - 1);
    for (unsigned i = 0; i < e->experimental.args; i++)
        e->experimental.arg[i] = s->arg[i];
    return V2_ADVANCED;
}

/* MARK: Dispatch */

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

static enum v2_step handle_any(struct step *s)
{
    switch (s->type) {
    case V2_ProcsChange:
        return on_procs_change(s);
    case V2_ProcSteal:
        return on_proc_steal(s);
    case V2_ProcStatus:
        return on_proc_status(s);
    case V2_GoCreateSyscall:
        return on_create_syscall(s);
    case V2_GoDestroySyscall:
        return on_destroy_syscall(s);
    case V2_GoStatus:
    case V2_GoStatusStack:
        return on_go_status(s);
    case V2_STWBegin:
    case V2_STWEnd:
        return on_stw(s);
    case V2_GCActive:
        return on_gc_active(s);
    case V2_GCBegin:
        return on_gc_begin(s);
    case V2_GCEnd:
        return on_gc_end(s);
    case V2_GCSweepActive:
        return on_sweep_active(s);
    case V2_GCSweepBegin:
    case V2_GCSweepEnd:
        return on_sweep(s);
    case V2_GCMarkAssistActive:
        return on_mark_assist_active(s);
    case V2_GCMarkAssistBegin:
    case V2_GCMarkAssistEnd:
        return on_mark_assist(s);
    case V2_GoLabel:
        return on_label(s);
    case V2_UserTaskBegin:
        return on_task_begin(s);
    case V2_UserTaskEnd:
        return on_task_end(s);
    case V2_UserRegionBegin:
    case V2_UserRegionEnd:
        return on_region(s);
    case V2_UserLog:
        return on_log(s);
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        return on_go_switch(s);
    case V2_Span:
    case V2_SpanAlloc:
    case V2_SpanFree:
    case V2_HeapObject:
    case V2_HeapObjectAlloc:
    case V2_HeapObjectFree:
    case V2_GoroutineStack:
    case V2_GoroutineStackAlloc:
    case V2_GoroutineStackFree:
        return on_alloc_free(s);
    default:
        return handle_common(s);
    }
}

/* MARK: Runs */

COMMON struct step step_of(struct v2_order *order, const struct v2_cursor *c, bool brief)
{
    return (struct step){
        .order = order,
        .arg = c->wire.arg,
        .m = c->m,
        .now = {.m = c->m->id, .p = c->m->p_id, .g = c->m->g_id},
        .time_ns = c->last_ns,
        .type = c->wire.type,
        .brief = brief,
    };
}

/* Offers the cursor's event to the model: any event, and with a reason if it fails. */
static __attribute__((noinline)) enum v2_step advance_any(struct v2_order *order,
                                                          const struct v2_cursor *c)
{
    struct step s = step_of(order, c, false);
    return handle_any(&s);
}

/* The same, for speed; an event that is not common or fails is offered again. */
COMMON enum v2_step advance(struct v2_order *order, const struct v2_cursor *c)
{
    struct step s = step_of(order, c, true);
    c->m->seen = true;
    enum v2_step step = handle_common(&s);
    return LIKELY(step != V2_FAILED) ? step : advance_any(order, c);
}

/* On Linux a tick is 64 ns, and integers give the same as Go's floating point. */
COMMON int64_t delta_ns(const struct v2_clock *clock, uint64_t ticks)
{
    if (LIKELY(clock->exact != 0 && ticks <= UINT32_MAX))
        return (int64_t)(ticks * clock->exact);
    return v2_ticks_to_ns(clock->ns_per_tick, ticks);
}

typedef const uint8_t *decode_fn(const uint8_t *at, const uint8_t *end,
                                 struct v2_wire_event *event);

/* Decodes the event at cursor->at, which is before cursor->end. */
COMMON bool decode_next(const struct v2_order *order, struct v2_cursor *c, decode_fn *decode)
{
    c->event = c->at;
    const uint8_t *at = decode(c->at, c->end, &c->wire);
    if (UNLIKELY(!at))
        return false;
    c->at = at;
    if (UNLIKELY(c->last_ns == 0))
        c->last_ns = c->batch_ns;
    c->last_ns = (int64_t)((uint64_t)c->last_ns + (uint64_t)delta_ns(&order->clock, c->wire.ticks));
    return true;
}

bool v2_cursor_start(const struct v2_order *order, struct v2_cursor *c)
{
    return decode_next(order, c, v2_decode_any);
}

static inline __attribute__((always_inline)) enum v2_run run(struct v2_order *order,
                                                             struct v2_cursor *c, int64_t limit_ns,
                                                             const trail_event *full,
                                                             decode_fn *decode)
{
    if (UNLIKELY(order->initial_generation == 0))
        order->initial_generation = order->generation;
    do {
        trail_event *before = order->out;
        enum v2_step step = advance(order, c);
        if (UNLIKELY(step != V2_ADVANCED))
            return step == V2_WAIT ? V2_RUN_WAIT : V2_RUN_FAILED;
        order->steps++;
        if (UNLIKELY(c->at == c->end))
            return V2_RUN_END;
        if (UNLIKELY(!decode_next(order, c, decode))) {
            order->out = before;
            return V2_RUN_MALFORMED;
        }
    } while (c->last_ns <= limit_ns && order->out < full);
    return V2_RUN_LIMIT;
}

static enum v2_run run_any(struct v2_order *order, struct v2_cursor *c, int64_t limit_ns,
                           const trail_event *full)
{
    return run(order, c, limit_ns, full, v2_decode_any);
}

#ifdef V2_DECODE_BMI2
V2_BMI2 static enum v2_run run_bmi2(struct v2_order *order, struct v2_cursor *c, int64_t limit_ns,
                                    const trail_event *full)
{
    return run(order, c, limit_ns, full, v2_decode_bmi2);
}
#endif

/* The fastest for this CPU. */
static v2_run_fn *best_run(void)
{
#ifdef V2_DECODE_BMI2
    if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return run_bmi2;
#endif
    return run_any;
}

/* MARK: Life of the model */

void v2_order_init(struct v2_order *order, struct tables *tables, trail_error *error)
{
    *order = (struct v2_order){
        .g_slab.object_size = sizeof(struct v2_g),
        .p_slab.object_size = sizeof(struct v2_p),
        .m_slab.object_size = sizeof(struct v2_m),
        .task_slab.object_size = sizeof(struct v2_task),
        .nobody = {.id = TRAIL_NONE, .g_id = TRAIL_NONE, .p_id = TRAIL_NONE},
        .last_ns = 0,
        .tables = tables,
        .error = error,
        .run = best_run(),
    };
}

void v2_order_fini(struct v2_order *order)
{
    for (size_t i = 0; order->gs.slots && i <= order->gs.mask; i++) {
        struct v2_g *g = order->gs.slots[i].value;
        if (g) {
            drop_regions(g);
            free(g->ranges.items);
        }
    }
    for (size_t i = 0; order->ps.slots && i <= order->ps.mask; i++)
        if (order->ps.slots[i].value)
            free(((struct v2_p *)order->ps.slots[i].value)->ranges.items);
    for (size_t i = 0; order->tasks.slots && i <= order->tasks.mask; i++)
        if (order->tasks.slots[i].value)
            free(((struct v2_task *)order->tasks.slots[i].value)->name);
    idmap_free(&order->gs);
    idmap_free(&order->ps);
    idmap_free(&order->ms);
    idmap_free(&order->tasks);
    slab_free(&order->g_slab);
    slab_free(&order->p_slab);
    slab_free(&order->m_slab);
    slab_free(&order->task_slab);
}

bool v2_order_generation(struct v2_order *order, uint64_t generation, double ns_per_tick)
{
    static const char *const names[TRAIL_RANGES] = {
        [TRAIL_RANGE_GC] = "GC concurrent mark phase",
        [TRAIL_RANGE_SWEEP] = "GC incremental sweep",
        [TRAIL_RANGE_MARK_ASSIST] = "GC mark assist",
    };
    bool whole = ns_per_tick < 0x1p31 && ns_per_tick == (double)(uint64_t)ns_per_tick;
    order->clock = (struct v2_clock){
        .ns_per_tick = ns_per_tick,
        .exact = whole ? (uint64_t)ns_per_tick : 0,
    };
    order->generation = generation;
    for (int i = 0; i < TRAIL_RANGES; i++) {
        if (!names[i])
            continue;
        order->range_names[i] = tables_extra_string(order->tables, names[i], strlen(names[i]));
        if (order->range_names[i] == 0)
            return false;
    }
    return true;
}

struct v2_m *v2_order_m(struct v2_order *order, uint64_t thread)
{
    struct v2_m *m = idmap_find(&order->ms, thread);
    if (m)
        return m;
    m = slab_get(&order->m_slab);
    if (!m || !idmap_put(&order->ms, thread, m))
        return NULL;
    m->id = (int64_t)thread;
    m->g_id = TRAIL_NONE;
    m->p_id = TRAIL_NONE;
    return m;
}
