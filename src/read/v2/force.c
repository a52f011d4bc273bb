/* v2, force: see force.h. */
#include "read/v2/force.h"

#include <string.h>

#include "read/v2/hole.h"

/* Chance bytes have large numbers; a program has not so many goroutines or Ps. */
#define MOST_SKIPPED UINT64_C(10000000)
#define HIGHEST_G    (UINT64_C(1) << 40)
#define HIGHEST_P    (UINT64_C(1) << 20)
#define HIGHEST_ID   (UINT64_C(1) << 24)

/* MARK: Threads and what they hold */

/* The cached pointers go with the numbers: see v2_m. */
static void unbind_g(struct v2_m *m)
{
    m->g_id = TRAIL_NONE;
    m->g = NULL;
}

static void unbind_p(struct v2_m *m)
{
    m->p_id = TRAIL_NONE;
    m->p = NULL;
}

/* Another thread's claim on a goroutine or P that is elsewhere now ends. */
static void unbind_others(struct v2_order *o, const struct v2_m *except, int64_t g, int64_t p)
{
    IDMAP_EACH(slot, &o->ms) {
        struct v2_m *m = slot->value;
        if (m == except)
            continue;
        if (g != TRAIL_NONE && m->g_id == g)
            unbind_g(m);
        if (p != TRAIL_NONE && m->p_id == p)
            unbind_p(m);
    }
    o->forced_work += o->ms.count;
}

static void forget_g(struct v2_order *o, int64_t id)
{
    struct v2_g *g = find_g(o, id);
    if (g)
        v2_hole_end_goroutine(o, g);
}

static void forget_p(struct v2_order *o, int64_t id)
{
    struct v2_p *p = find_p(o, id);
    if (p)
        v2_hole_end_proc(o, p);
}

/* The thread runs no goroutine: what became of the one that it had is unknown. */
static void free_of_g(struct v2_order *o, struct v2_m *m)
{
    if (m->g_id != TRAIL_NONE)
        forget_g(o, m->g_id);
    unbind_g(m);
}

static void free_of_p(struct v2_order *o, struct v2_m *m)
{
    if (m->p_id != TRAIL_NONE)
        forget_p(o, m->p_id);
    unbind_p(m);
}

void v2_force_forget(struct v2_order *o, struct v2_m *m)
{
    free_of_g(o, m);
    free_of_p(o, m);
}

/* MARK: States */

/* Puts a goroutine into a state; `n`: the sequence number that the event follows. */
static bool set_g(struct v2_order *o, struct v2_m *m, int64_t id, unsigned status, uint64_t n)
{
    struct v2_g *g = find_g(o, id);
    if (!g || g->status != status) {
        forget_g(o, id);
        unbind_others(o, m, id, TRAIL_NONE);
        if (m->g_id == id && status != V2_GO_RUNNING && status != V2_GO_SYSCALL)
            unbind_g(m);
        g = v2_create_g(o, id, status);
        if (!g)
            return false;
        v2_hole_begin_goroutine(o, g);
    }
    set_seq(o, &g->seq, n);
    return true;
}

static bool set_p(struct v2_order *o, struct v2_m *m, int64_t id, unsigned status, uint64_t n)
{
    struct v2_p *p = find_p(o, id);
    if (!p || p->status != status) {
        forget_p(o, id);
        unbind_others(o, m, TRAIL_NONE, id);
        if (m->p_id == id && status == V2_PROC_IDLE)
            unbind_p(m);
        p = v2_create_p(o, id, status);
        if (!p)
            return false;
        v2_hole_begin_proc(o, p);
    }
    set_seq(o, &p->seq, n);
    return true;
}

/* The goroutine on the thread, if it is known, has `status`, and so has its P. */
static bool set_own(struct v2_order *o, struct v2_m *m, unsigned g_status, unsigned p_status,
                    uint64_t p_seq)
{
    if (m->g_id == TRAIL_NONE)
        return false;
    const struct v2_g *g = find_g(o, m->g_id);
    if (!set_g(o, m, m->g_id, g_status, g ? g->seq.n : 0))
        return false;
    return m->p_id == TRAIL_NONE || set_p(o, m, m->p_id, p_status, p_seq);
}

static uint64_t p_seq_of(const struct v2_order *o, const struct v2_m *m)
{
    const struct v2_p *p = find_p(o, m->p_id);
    return p ? p->seq.n : 0;
}

/* MARK: Events */

static bool force_steal(struct v2_order *o, struct v2_m *m, const uint64_t *arg)
{
    int64_t id = (int64_t)arg[0];
    struct v2_m *victim = v2_order_m(o, arg[2]);
    if (!victim || !set_p(o, m, id, V2_PROC_SYSCALL, arg[1] - 1))
        return false;
    unbind_others(o, victim, TRAIL_NONE, id);
    if (victim->p_id != id)
        free_of_p(o, victim);
    victim->seen = true;
    victim->p_id = id;
    victim->p = NULL;
    return true;
}

static bool force_go_start(struct v2_order *o, struct v2_m *m, const uint64_t *arg)
{
    free_of_g(o, m);
    return set_g(o, m, (int64_t)arg[0], V2_GO_RUNNABLE, arg[1] - 1);
}

static bool force_blocked_exit(struct v2_order *o, struct v2_m *m)
{
    free_of_p(o, m);
    return set_own(o, m, V2_GO_SYSCALL, V2_PROC_SYSCALL, 0);
}

static bool force_gc(struct v2_order *o, const struct v2_m *m, uint8_t type, uint64_t n)
{
    if (m->g_id == TRAIL_NONE || (type == V2_GCEnd && o->gc != V2_GC_RUNNING))
        return false;
    if (type == V2_GCBegin)
        v2_hole_end_gc(o);
    o->gc_seq = n - 1;
    o->gc = type == V2_GCEnd ? V2_GC_RUNNING : V2_GC_UNDETERMINED;
    return true;
}

static bool force(struct v2_order *o, struct v2_m *m, const struct v2_wire_event *wire)
{
    const uint64_t *arg = wire->arg;
    switch (wire->type) {
    case V2_ProcStart:
        free_of_p(o, m);
        return set_p(o, m, (int64_t)arg[0], V2_PROC_IDLE, arg[1] - 1);
    case V2_ProcStop:
        return m->p_id != TRAIL_NONE && set_p(o, m, m->p_id, V2_PROC_RUNNING, p_seq_of(o, m));
    case V2_ProcSteal:
        return force_steal(o, m, arg);
    case V2_ProcStatus:
        forget_p(o, (int64_t)arg[0]);
        unbind_others(o, NULL, TRAIL_NONE, (int64_t)arg[0]);
        return true;
    case V2_GoStatus:
    case V2_GoStatusStack:
        forget_g(o, (int64_t)arg[0]);
        unbind_others(o, NULL, (int64_t)arg[0], TRAIL_NONE);
        return true;
    case V2_GoCreate:
    case V2_GoCreateBlocked:
        forget_g(o, (int64_t)arg[0]);
        unbind_others(o, NULL, (int64_t)arg[0], TRAIL_NONE);
        return m->g_id == TRAIL_NONE ||
               set_own(o, m, V2_GO_RUNNING, V2_PROC_RUNNING, p_seq_of(o, m));
    case V2_GoStart:
        return force_go_start(o, m, arg);
    case V2_GoUnblock:
        return set_g(o, m, (int64_t)arg[0], V2_GO_WAITING, arg[1] - 1);
    case V2_GoSyscallBegin:
        return set_own(o, m, V2_GO_RUNNING, V2_PROC_RUNNING, arg[0] - 1);
    case V2_GoSyscallEnd:
        return set_own(o, m, V2_GO_SYSCALL, V2_PROC_SYSCALL, p_seq_of(o, m));
    case V2_GoSyscallEndBlocked:
        return force_blocked_exit(o, m);
    case V2_GoDestroySyscall:
        return set_own(o, m, V2_GO_SYSCALL, V2_PROC_SYSCALL, p_seq_of(o, m));
    case V2_GoCreateSyscall:
        free_of_g(o, m);
        forget_g(o, (int64_t)arg[0]);
        unbind_others(o, NULL, (int64_t)arg[0], TRAIL_NONE);
        return true;
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        return set_own(o, m, V2_GO_RUNNING, V2_PROC_RUNNING, p_seq_of(o, m)) &&
               (int64_t)arg[0] != m->g_id &&
               set_g(o, m, (int64_t)arg[0], V2_GO_WAITING, arg[1] - 1);
    case V2_GCActive:
    case V2_GCBegin:
    case V2_GCEnd:
        return force_gc(o, m, wire->type, arg[0]);
    default:
        return set_own(o, m, V2_GO_RUNNING, V2_PROC_RUNNING, p_seq_of(o, m));
    }
}

/* MARK: What cannot be an event */

/* Of a type's argument, from the suffix of its name (v2.def). */
static bool is_named(const char *name, const char *suffix)
{
    size_t size = strlen(name), end = strlen(suffix);
    return size >= end && strcmp(name + size - end, suffix) == 0;
}

/* Whether a number may follow the one that the model has. */
static bool may_follow(const struct v2_order *o, const struct v2_seq *seq, uint64_t n)
{
    uint64_t last = seq && seq->generation == o->generation ? seq->n : 0;
    return n > last && n - last <= MOST_SKIPPED;
}

static bool is_plausible_arg(const struct v2_order *o, const struct v2_m *m, const char *name,
                             const struct v2_wire_event *wire, uint64_t value)
{
    uint32_t handle;
    if (is_named(name, "stack"))
        return tables_stack(o->tables, value, &handle) || (o->incomplete && value < HIGHEST_ID);
    if (is_named(name, "_string"))
        return tables_string(o->tables, value, &handle) || (o->incomplete && value < HIGHEST_ID);
    if (strcmp(name, "g_seq") == 0) {
        const struct v2_g *g = find_g(o, (int64_t)wire->arg[0]);
        return may_follow(o, g ? &g->seq : NULL, value);
    }
    if (strcmp(name, "p_seq") == 0) {
        const struct v2_p *p =
            find_p(o, wire->type == V2_GoSyscallBegin ? m->p_id : (int64_t)wire->arg[0]);
        return may_follow(o, p ? &p->seq : NULL, value);
    }
    if (strcmp(name, "p") == 0)
        return value < HIGHEST_P;
    if (strcmp(name, "g") == 0 || strcmp(name, "new_g") == 0)
        return value > 0 && value < HIGHEST_G;
    return true;
}

bool v2_force_is_plausible(const struct v2_order *o, const struct v2_cursor *c)
{
    struct v2_wire_event wire;
    if (!v2_decode_any(c->event, c->end, &wire))
        return false;
    const struct v2_type_info *type = &v2_types[wire.type];
    for (unsigned i = 1; i < type->args; i++)
        if (!is_plausible_arg(o, c->m, type->arg[i], &wire, wire.arg[i - 1]))
            return false;
    return true;
}

bool v2_force(struct v2_order *o, struct v2_cursor *c)
{
    struct v2_wire_event wire;
    if (c->m == &o->nobody || o->forced_work > V2_FORCED_WORK_MOST ||
        !v2_decode_any(c->event, c->end, &wire))
        return false;
    c->m->seen = true;
    o->initial_generation = o->generation; /* statuses may be of what is not known */
    o->forced++;
    return force(o, c->m, &wire);
}
