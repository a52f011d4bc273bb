/* v2, order: the handlers of events that are not in v2/common.h, and all error messages. */
#include "read/v2/common.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "read/v2/guess.h"
#include "wire/wire.h"

/* MARK: Finding, failing, requiring */

enum v2_step v2_fail(const struct step *s, const char *format, ...)
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

enum v2_step v2_fail_memory(const struct step *s)
{
    error_no_memory(s->order->error);
    return V2_FAILED;
}

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

/* Finds the M that holds P `id` and switches to its context; another M reports the status. */
static bool find_context_of_p(struct step *s, int64_t id)
{
    if (s->order->guess)
        return false; /* threads without events in this generation are not known */
    IDMAP_VALUES(const struct v2_m, m, &s->order->ms.map) {
        if (m->seen && m->p_id == id) {
            s->now = (struct context){.m = m->id, .p = id, .g = m->g_id};
            return true;
        }
    }
    return false;
}

struct v2_p *v2_create_p(struct v2_order *o, int64_t id, unsigned status)
{
    struct v2_p *p = objects_get(&o->ps, (uint64_t)id);
    if (!p) {
        error_no_memory(o->error);
        return NULL;
    }
    p->id = id;
    p->status = (uint8_t)status;
    set_seq(o, &p->seq, 0);
    return p;
}

void v2_destroy_p(struct v2_order *o, struct v2_p *p)
{
    int64_t id = p->id;
    free(p->ranges.items);
    p->id = TRAIL_NONE;
    objects_drop(&o->ps, (uint64_t)id);
}

static enum v2_step on_proc_status(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    unsigned announced = (uint8_t)arg(s, 1), status = announced;
    if (announced >= V2_PROC_STATUSES)
        return fail(s, "invalid status for proc %" PRId64 ": %u", id, announced);
    trail_proc_state from = proc_state_of(announced);
    bool promoted = false;
    struct v2_p *p = find_p(o, id);
    if (!p && o->guess && !(p = v2_guess_p(o, id, announced)))
        return v2_fail_memory(s);
    if (p) {
        if (announced == V2_PROC_ABANDONED && p->status == V2_PROC_SYSCALL) {
            /* "Abandoned" means that Go lost the information; this reader still has it. */
            promoted = true;
            from = TRAIL_PROC_RUNNING;
            status = V2_PROC_SYSCALL;
        } else if (p->status != announced) {
            return fail(s, "inconsistent status for proc %" PRId64 ": old %s vs. new %s", id,
                        proc_status_name(p->status), proc_status_name(announced));
        }
    } else {
        p = v2_create_p(o, id, status);
        if (!p)
            return V2_FAILED;
        bool found =
            o->generation == o->initial_generation && !idmap_find(&o->forgotten_ps, (uint64_t)id);
        from = found ? TRAIL_PROC_UNDETERMINED : TRAIL_PROC_NOT_EXIST;
    }
    set_seq(o, &p->seq, 0);
    if (announced == V2_PROC_RUNNING || announced == V2_PROC_SYSCALL)
        bind_p(s, id, p);
    if (promoted && !find_context_of_p(s, id))
        return fail(
            s, "failed to find sched context for proc %" PRId64 " that's about to be stolen", id);
    emit_proc(s, id, from, proc_state_of(status))->transition.status = (uint8_t)status;
    return V2_ADVANCED;
}

static enum v2_step on_proc_steal(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0), victim_id = (int64_t)arg(s, 2);
    struct v2_p *p = find_p(o, id);
    if (!p || (p->status != V2_PROC_SYSCALL && p->status != V2_PROC_ABANDONED) ||
        !succeeds(o, p->seq, arg(s, 1)))
        return V2_WAIT;
    REQUIRE(s, V2_NEED_M);
    bool abandoned = p->status == V2_PROC_ABANDONED;
    p->status = V2_PROC_IDLE;
    p->seq.n = arg(s, 1);
    if (abandoned) {
        /* The holder is unknown, and that M may have continued. */
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
        struct v2_m *victim = objects_find(&o->ms, (uint64_t)victim_id);
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

struct v2_g *v2_create_g(struct v2_order *o, int64_t id, unsigned status)
{
    struct v2_g *g = objects_get(&o->gs, (uint64_t)id);
    if (!g || (o->guess && !v2_guess_begins(o->guess, id))) {
        error_no_memory(o->error);
        return NULL;
    }
    g->id = id;
    g->status = (uint8_t)status;
    set_seq(o, &g->seq, 0);
    return g;
}

void v2_destroy_g(struct v2_order *o, struct v2_g *g)
{
    int64_t id = g->id;
    v2_drop_regions(g);
    free(g->ranges.items);
    g->id = TRAIL_NONE;
    objects_drop(&o->gs, (uint64_t)id);
}

static enum v2_step not_in_thread(struct step *s, int64_t g, int64_t held)
{
    return fail(s,
                "inconsistent thread for syscalling goroutine %" PRId64
                ": thread has goroutine %" PRId64,
                g, held);
}

/*
 * Binds a goroutine in a system call to thread `m_id`, which may be another one than the event's.
 */
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
        return v2_fail_memory(s);
    if (o->guess && !m->seen && idmap_find(&o->guess->ms, (uint64_t)m_id))
        return fail(s, "thread %" PRId64 " has no goroutine yet", m_id);
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

/* Returns the start stack from the host's line: in format 22 the event has none. */
static trail_stack_handle start_stack(const struct v2_order *o, int64_t id)
{
    const struct identity *known = tables_goroutine(o->tables, (uint64_t)id);
    uint32_t handle;
    return known && tables_stack(o->tables, known->stack, &handle) ? handle : 0;
}

static enum v2_step on_go_status(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    unsigned status = (uint8_t)arg(s, 2);
    trail_stack_handle stack = 0;
    if (status >= V2_GO_STATUSES)
        return fail(s, "invalid status for goroutine %" PRId64 ": %u", id, status);
    trail_go_state from = go_state_of(status);
    struct v2_g *g = find_g(o, id);
    if (!g && o->guess)
        g = v2_guess_g(o, id, status);
    if (g) {
        if (g->status != status)
            return fail(s, "inconsistent status for goroutine %" PRId64 ": old %s vs. new %s", id,
                        go_status_name(g->status), go_status_name(status));
        set_seq(o, &g->seq, 0);
    } else if (o->generation == o->initial_generation) {
        g = v2_create_g(o, id, status);
        if (!g)
            return v2_fail_memory(s);
        from =
            idmap_find(&o->forgotten_gs, (uint64_t)id) ? TRAIL_GO_NOT_EXIST : TRAIL_GO_UNDETERMINED;
    } else {
        return fail(s,
                    "found goroutine status for new goroutine after the first generation: "
                    "id=%" PRId64 " status=%s",
                    id, go_status_name(status));
    }
    if (status == V2_GO_RUNNING) {
        bind_g(s, id, g);
    } else if (status == V2_GO_SYSCALL) {
        enum v2_step bound = bind_syscalling(s, id, g, (int64_t)arg(s, 1));
        if (bound != V2_ADVANCED)
            return bound;
    }
    if (s->type == V2_GoStatusStack)
        STACK(s, arg(s, 3), &stack);
    else
        stack = start_stack(o, id);
    trail_event *e = emit_go(s, id, from, go_state_of(status));
    if (stack != 0)
        e->wire = V2_GoStatusStack;
    e->stack = stack;
    e->transition.stack = stack;
    return V2_ADVANCED;
}

/*
 * GoSwitch and GoSwitchDestroy switch a thread from one goroutine to another in one event. It
 * becomes three: the other is unblocked, the current one blocks or ends, the other starts (§6.5).
 */
static enum v2_step on_go_switch(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = running_g(s, V2_GO_RUNNING);
    if (!g)
        return V2_FAILED;
    struct v2_g *next = find_g(o, id);
    if (!next || next->status != V2_GO_WAITING || !succeeds(o, next->seq, arg(s, 1)))
        return V2_WAIT;
    emit_go(s, id, TRAIL_GO_WAITING, TRAIL_GO_RUNNABLE);
    if (s->type == V2_GoSwitch) {
        g->status = V2_GO_WAITING;
        s->type = V2_GoBlock;
        emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_WAITING)->flags = TRAIL_EVENT_IMPLIED;
    } else {
        v2_destroy_g(o, g);
        s->type = V2_GoDestroy;
        emit_go(s, s->now.g, TRAIL_GO_RUNNING, TRAIL_GO_NOT_EXIST)->flags = TRAIL_EVENT_IMPLIED;
    }
    next->status = V2_GO_RUNNING;
    next->seq.n = arg(s, 1);
    bind_g(s, id, next);
    s->type = V2_GoStart;
    s->now.g = TRAIL_NONE;
    emit_go(s, id, TRAIL_GO_RUNNABLE, TRAIL_GO_RUNNING)->flags = TRAIL_EVENT_IMPLIED;
    return V2_ADVANCED;
}

/* MARK: System calls */

static enum v2_step on_create_syscall(struct step *s)
{
    struct v2_order *o = s->order;
    int64_t id = (int64_t)arg(s, 0);
    REQUIRE(s, V2_NEED_M | V2_NEED_NO_G);
    if (find_g(o, id))
        return fail(s, "tried to create goroutine (%" PRId64 ") in syscall that already exists",
                    id);
    struct v2_g *g = v2_create_g(o, id, V2_GO_SYSCALL);
    if (!g)
        return v2_fail_memory(s);
    bind_g(s, id, g);
    emit_go(s, id, TRAIL_GO_NOT_EXIST, TRAIL_GO_SYSCALL);
    return V2_ADVANCED;
}

/* The end of a C thread that called into Go. A P that it still holds becomes "abandoned". */
static enum v2_step on_destroy_syscall(struct step *s)
{
    struct v2_order *o = s->order;
    REQUIRE(s, V2_NEED_M | V2_NEED_G);
    struct v2_g *g = running_g(s, V2_GO_SYSCALL);
    if (!g)
        return V2_FAILED;
    v2_destroy_g(o, g);
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
        emit_proc(s, s->now.p, TRAIL_PROC_RUNNING, TRAIL_PROC_IDLE)->flags = TRAIL_EVENT_IMPLIED;
        s->type = V2_GoDestroySyscall;
    }
    emit_go(s, s->now.g, TRAIL_GO_SYSCALL, TRAIL_GO_NOT_EXIST);
    return V2_ADVANCED;
}

/* MARK: Metrics and ranges */

static enum v2_step on_label(struct step *s)
{
    trail_string_handle text;
    REQUIRE(s, V2_NEED_USER_GO);
    STRING(s, arg(s, 0), &text);
    trail_event *e = emit(s, TRAIL_LABEL);
    e->label.goroutine = s->now.g;
    e->label.text = text;
    return V2_ADVANCED;
}

static enum v2_step on_procs_change(struct step *s)
{
    trail_stack_handle stack;
    REQUIRE(s, V2_NEED_USER_GO);
    STACK(s, arg(s, 1), &stack);
    trail_event *e = emit(s, TRAIL_METRIC);
    e->stack = stack;
    e->metric.metric = TRAIL_METRIC_GOMAXPROCS;
    e->metric.value = arg(s, 0);
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
    for (size_t i = 0; i < ranges->count; i++)
        if (ranges->items[i].type == type && ranges->items[i].kind == kind)
            return true;
    return false;
}

static enum v2_step add_range(struct step *s, struct v2_ranges *ranges, uint8_t type, uint64_t kind)
{
    if (!APPEND(ranges->items, ranges->capacity, ranges->count,
                (struct v2_range){.type = type, .kind = kind}))
        return v2_fail_memory(s);
    return V2_ADVANCED;
}

static enum v2_step begin_range(struct step *s, struct v2_ranges *ranges, uint64_t kind)
{
    if (has_range(ranges, s->type, kind))
        return fail(s, "discovered event already in-flight for when starting event %s",
                    type_name(s));
    return add_range(s, ranges, s->type, kind);
}

/* Ends the range of begin type `type`, whatever its kind, and returns its kind. */
static enum v2_step end_range(struct step *s, struct v2_ranges *ranges, uint8_t type,
                              uint64_t *kind)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (ranges->items[i].type == type) {
            *kind = ranges->items[i].kind;
            ranges->items[i] = ranges->items[--ranges->count];
            return V2_ADVANCED;
        }
    }
    return fail(s, "tried to end event %s, but not in-flight", v2_types[type].name);
}

/*
 * A range reported as in progress, of a goroutine or P: new in the first generation, known in later
 * ones.
 */
static enum v2_step active_range(struct step *s, struct v2_ranges *ranges, uint8_t type, int64_t id)
{
    bool initial = s->order->generation == s->order->initial_generation;
    bool known = has_range(ranges, type, 0);
    struct v2_guess *guess = s->order->guess;
    if (!known && guess)
        known = v2_guess_range(type == V2_GCSweepBegin ? &guess->ps : &guess->gs, id, ranges, type);
    if (initial && known)
        return fail(s, "found named active range already in first gen: %s", v2_types[type].name);
    if (!initial && !known)
        return fail(s, "resource is missing active range: %s", v2_types[type].name);
    return initial ? add_range(s, ranges, type, 0) : V2_ADVANCED;
}

/* Without its kind if damage has lost that; a converted trace has an empty string for it then. */
static trail_string_handle stw_name(struct v2_order *o, uint64_t kind)
{
    char name[V2_MAX_STRING + 32] = "stop-the-world (";
    size_t size = strlen(name);
    trail_string_handle handle;
    if (!tables_string(o->tables, kind, &handle) || o->tables->strings[handle].size == 0)
        return tables_extra_string(o->tables, name, size - strlen(" ("));
    trail_string text = o->tables->strings[handle]; /* any bytes, also 0 */
    memcpy(name + size, text.data, text.size);
    size += text.size;
    name[size++] = ')';
    return tables_extra_string(o->tables, name, size);
}

/* Returns the goroutine of the context, which has STW and mark assist ranges. */
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
    uint64_t kind = begin ? arg(s, 0) : 0;
    trail_stack_handle stack = 0;
    trail_string_handle known;
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = range_g(s);
    if (!g)
        return V2_FAILED;
    enum v2_step step =
        begin ? begin_range(s, &g->ranges, kind) : end_range(s, &g->ranges, V2_STWBegin, &kind);
    if (step != V2_ADVANCED)
        return step;
    if (begin) {
        STACK(s, arg(s, 1), &stack);
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
    REQUIRE(s, V2_NEED_USER_GO);
    struct v2_g *g = range_g(s);
    if (!g)
        return V2_FAILED;
    enum v2_step step = begin ? begin_range(s, &g->ranges, 0)
                              : end_range(s, &g->ranges, V2_GCMarkAssistBegin, &kind);
    if (step != V2_ADVANCED)
        return step;
    if (begin)
        STACK(s, arg(s, 0), &stack);
    emit_range(s, begin ? TRAIL_RANGE_BEGIN : TRAIL_RANGE_END, TRAIL_RANGE_MARK_ASSIST,
               TRAIL_RESOURCE_GOROUTINE, s->now.g)
        ->stack = stack;
    return V2_ADVANCED;
}

static enum v2_step on_mark_assist_active(struct step *s)
{
    int64_t id = (int64_t)arg(s, 0);
    struct v2_g *g = find_g(s->order, id);
    if (!g)
        return fail(s, "uninitialized goroutine %" PRId64 " found during %s", id, type_name(s));
    enum v2_step step = active_range(s, &g->ranges, V2_GCMarkAssistBegin, id);
    if (step == V2_ADVANCED)
        emit_range(s, TRAIL_RANGE_ACTIVE, TRAIL_RANGE_MARK_ASSIST, TRAIL_RESOURCE_GOROUTINE, id);
    return step;
}

static enum v2_step on_sweep(struct step *s)
{
    bool begin = s->type == V2_GCSweepBegin;
    uint64_t kind;
    trail_stack_handle stack = 0;
    REQUIRE(s, V2_NEED_M | V2_NEED_P);
    struct v2_p *p = current_p(s);
    if (!p)
        return fail(s, "uninitialized proc %" PRId64 " found during %s", s->now.p, type_name(s));
    enum v2_step step =
        begin ? begin_range(s, &p->ranges, 0) : end_range(s, &p->ranges, V2_GCSweepBegin, &kind);
    if (step != V2_ADVANCED)
        return step;
    if (begin)
        STACK(s, arg(s, 0), &stack);
    trail_event *e = emit_range(s, begin ? TRAIL_RANGE_BEGIN : TRAIL_RANGE_END, TRAIL_RANGE_SWEEP,
                                TRAIL_RESOURCE_PROC, s->now.p);
    e->stack = stack;
    if (!begin) {
        e->range.has_swept = true;
        e->range.swept_bytes = arg(s, 0);
        e->range.reclaimed_bytes = arg(s, 1);
    }
    return V2_ADVANCED;
}

static enum v2_step on_sweep_active(struct step *s)
{
    int64_t id = (int64_t)arg(s, 0);
    struct v2_p *p = find_p(s->order, id);
    if (!p)
        return fail(s, "encountered GCSweepActive for unknown proc %" PRId64, id);
    enum v2_step step = active_range(s, &p->ranges, V2_GCSweepBegin, id);
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
        if (arg(s, 0) != o->gc_seq + 1)
            return V2_WAIT;
        if (o->gc != V2_GC_RUNNING)
            return fail(s, "encountered GCActive while GC was not in progress");
        REQUIRE(s, V2_NEED_USER_GO);
    }
    o->gc_seq = arg(s, 0);
    o->gc = V2_GC_RUNNING;
    return emit_gc(s, TRAIL_RANGE_ACTIVE, 0);
}

static enum v2_step on_gc_begin(struct step *s)
{
    struct v2_order *o = s->order;
    trail_stack_handle stack;
    if (o->gc != V2_GC_UNDETERMINED) {
        if (arg(s, 0) != o->gc_seq + 1)
            return V2_WAIT;
        if (o->gc == V2_GC_RUNNING)
            return fail(s, "encountered GCBegin while GC was already in progress");
        REQUIRE(s, V2_NEED_USER_GO);
    }
    o->gc_seq = arg(s, 0);
    o->gc = V2_GC_RUNNING;
    STACK(s, arg(s, 1), &stack);
    return emit_gc(s, TRAIL_RANGE_BEGIN, stack);
}

static enum v2_step on_gc_end(struct step *s)
{
    struct v2_order *o = s->order;
    if (arg(s, 0) != o->gc_seq + 1)
        return V2_WAIT;
    if (o->gc == V2_GC_NOT_RUNNING)
        return fail(s, "encountered GCEnd when GC was not in progress");
    if (o->gc == V2_GC_UNDETERMINED)
        return fail(s, "encountered GCEnd when GC was in an undetermined state");
    REQUIRE(s, V2_NEED_USER_GO);
    o->gc_seq = arg(s, 0);
    o->gc = V2_GC_NOT_RUNNING;
    return emit_gc(s, TRAIL_RANGE_END, 0);
}

static enum v2_step on_alloc_free(struct step *s)
{
    REQUIRE(s, V2_NEED_M);
    trail_event *e = emit(s, TRAIL_EXPERIMENTAL);
    e->experimental.args = (uint8_t)(v2_types[s->type].args - 1);
    for (unsigned i = 0; i < e->experimental.args; i++)
        e->experimental.arg[i] = arg(s, i);
    return V2_ADVANCED;
}

/* MARK: Dispatch */

/* By type; NULL: handle_common. */
static enum v2_step (*const handlers[V2_TYPES])(struct step *) = {
    [V2_ProcsChange] = on_procs_change,
    [V2_ProcSteal] = on_proc_steal,
    [V2_ProcStatus] = on_proc_status,
    [V2_GoCreateSyscall] = on_create_syscall,
    [V2_GoDestroySyscall] = on_destroy_syscall,
    [V2_GoStatus] = on_go_status,
    [V2_GoStatusStack] = on_go_status,
    [V2_STWBegin] = on_stw,
    [V2_STWEnd] = on_stw,
    [V2_GCActive] = on_gc_active,
    [V2_GCBegin] = on_gc_begin,
    [V2_GCEnd] = on_gc_end,
    [V2_GCSweepActive] = on_sweep_active,
    [V2_GCSweepBegin] = on_sweep,
    [V2_GCSweepEnd] = on_sweep,
    [V2_GCMarkAssistActive] = on_mark_assist_active,
    [V2_GCMarkAssistBegin] = on_mark_assist,
    [V2_GCMarkAssistEnd] = on_mark_assist,
    [V2_GoLabel] = on_label,
    [V2_UserTaskBegin] = v2_annotation,
    [V2_UserTaskEnd] = v2_annotation,
    [V2_UserRegionBegin] = v2_annotation,
    [V2_UserRegionEnd] = v2_annotation,
    [V2_UserLog] = v2_annotation,
    [V2_GoSwitch] = on_go_switch,
    [V2_GoSwitchDestroy] = on_go_switch,
    [V2_Span] = on_alloc_free,
    [V2_SpanAlloc] = on_alloc_free,
    [V2_SpanFree] = on_alloc_free,
    [V2_HeapObject] = on_alloc_free,
    [V2_HeapObjectAlloc] = on_alloc_free,
    [V2_HeapObjectFree] = on_alloc_free,
    [V2_GoroutineStack] = on_alloc_free,
    [V2_GoroutineStackAlloc] = on_alloc_free,
    [V2_GoroutineStackFree] = on_alloc_free,
};

enum v2_step v2_order_advance_any(struct v2_order *order, struct v2_cursor *c)
{
    struct v2_wire_event wire; /* the cursor's is packed, or has no type: see v2/merge.c */
    if (UNLIKELY(order->initial_generation == 0))
        order->initial_generation = order->generation;
    (void)v2_decode_any(c->event, c->end, &wire);
    c->m->seen = true;
    struct step s = step_of(order, c, false);
    s.wire = &wire;
    s.type = wire.type;
    if (UNLIKELY(order->guess) &&
        (wire.type == V2_GCActive || wire.type == V2_GCBegin || wire.type == V2_GCEnd))
        v2_guess_gc(order, wire.type, wire.arg[0]);
    enum v2_step step = handlers[s.type] ? handlers[s.type](&s) : handle_common(&s);
    order->output = s.output;
    order->nobody.g_id = TRAIL_NONE;
    order->nobody.p_id = TRAIL_NONE;
    return step;
}

/* MARK: Ends that damage hides */

void v2_end_ranges(struct step *s, const struct v2_ranges *ranges, trail_resource scope,
                   int64_t scope_id)
{
    static const char stw[] = "stop-the-world"; /* its kind may be a string that is gone */
    unsigned ended = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        uint8_t type = ranges->items[i].type;
        trail_range range = type == V2_STWBegin       ? TRAIL_RANGE_STW
                            : type == V2_GCSweepBegin ? TRAIL_RANGE_SWEEP
                                                      : TRAIL_RANGE_MARK_ASSIST;
        if (ended & 1U << range)
            continue; /* it has stops of several kinds, against the rules */
        ended |= 1U << range;
        trail_event *e = emit_range(s, TRAIL_RANGE_END, range, scope, scope_id);
        e->flags = TRAIL_EVENT_IMPLIED | TRAIL_EVENT_INFERRED;
        if (range == TRAIL_RANGE_STW)
            e->range.name = tables_extra_string(s->order->tables, stw, sizeof stw - 1);
    }
}

void v2_end_gc(struct step *s)
{
    if (s->order->gc == V2_GC_RUNNING) {
        emit_gc(s, TRAIL_RANGE_END, 0);
        s->output.next[-1].flags = TRAIL_EVENT_IMPLIED | TRAIL_EVENT_INFERRED;
    }
}

/* MARK: Life of the model */

void v2_order_init(struct v2_order *order, struct tables *tables, trail_error *error)
{
    *order = (struct v2_order){
        .gs = OBJECTS_OF(struct v2_g),
        .ps = OBJECTS_OF(struct v2_p),
        .ms = OBJECTS_OF(struct v2_m),
        .nobody = {.id = TRAIL_NONE, .g_id = TRAIL_NONE, .p_id = TRAIL_NONE},
        .tables = tables,
        .error = error,
    };
}

void v2_order_restart(struct v2_order *order)
{
    IDMAP_VALUES(struct v2_m, m, &order->ms.map) {
        m->seen = false;
        m->g_id = m->p_id = TRAIL_NONE;
        m->g = NULL;
        m->p = NULL;
    }
    order->initial_generation = 0;
    order->gc = V2_GC_UNDETERMINED;
    order->gc_seq = 0;
}

void v2_order_fini(struct v2_order *order)
{
    IDMAP_VALUES(struct v2_g, g, &order->gs.map) {
        v2_drop_regions(g);
        free(g->ranges.items);
    }
    IDMAP_EACH(slot, &order->ps.map)
        free(((struct v2_p *)slot->value)->ranges.items);
    objects_free(&order->gs);
    objects_free(&order->ps);
    objects_free(&order->ms);
    idmap_free(&order->forgotten_gs);
    idmap_free(&order->forgotten_ps);
    idmap_free(&order->ended_gs);
    v2_drop_tasks(order);
}

static int64_t moment_ns(double ns_per_tick)
{
    double ns = (double)V2_MOMENT_TICKS * ns_per_tick;
    return ns < (double)V2_MOMENT_NS ? V2_MOMENT_NS : ns < 0x1p62 ? (int64_t)ns : INT64_MAX;
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
        .moment_ns = moment_ns(ns_per_tick),
        .exact_until = whole ? UINT32_MAX : 0,
    };
    order->generation = generation;
    idmap_clear(&order->forgotten_gs);
    idmap_clear(&order->forgotten_ps);
    idmap_clear(&order->ended_gs);
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
    struct v2_m *m = objects_find(&order->ms, thread);
    if (m)
        return m;
    m = objects_get(&order->ms, thread);
    if (!m)
        return NULL;
    m->id = (int64_t)thread;
    m->g_id = TRAIL_NONE;
    m->p_id = TRAIL_NONE;
    return m;
}
