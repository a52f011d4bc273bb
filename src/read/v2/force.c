/* v2, force: see force.h. */
#include "read/v2/force.h"

#include <string.h>

#include "read/v2/hole.h"
#include "read/v2/successors.h"

/* Larger numbers are chance bytes: no program has this many goroutines or Ps. */
#define MOST_SKIPPED  UINT64_C(10000000)
#define HIGHEST_G     (UINT64_C(1) << 40)
#define MOST_LEFT_OUT 1000
#define HIGHEST_P     (UINT64_C(1) << 20)
#define HIGHEST_ID    (UINT64_C(1) << 24)

/* MARK: Threads and what they hold */

/* The cached pointers are cleared with the numbers: see v2_m. */
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

/* Ends the claims of other threads on a goroutine or P that is now elsewhere. */
static void unbind_others(struct v2_order *o, const struct v2_m *except, int64_t g, int64_t p)
{
    IDMAP_VALUES(struct v2_m, m, &o->ms.map) {
        if (m == except)
            continue;
        if (g != TRAIL_NONE && m->g_id == g)
            unbind_g(m);
        if (p != TRAIL_NONE && m->p_id == p)
            unbind_p(m);
    }
    o->forced_work += o->ms.map.count;
}

/* The thread runs no goroutine: what happened to its previous one is unknown. */
static void free_of_g(struct v2_order *o, struct v2_m *m)
{
    if (m->g_id != TRAIL_NONE)
        v2_hole_forget_g(o, m->g_id);
    unbind_g(m);
}

static void free_of_p(struct v2_order *o, struct v2_m *m)
{
    if (m->p_id != TRAIL_NONE)
        v2_hole_forget_p(o, m->p_id);
    unbind_p(m);
}

void v2_force_unbind(struct v2_m *m)
{
    unbind_g(m);
    unbind_p(m);
}

void v2_force_forget(struct v2_order *o, struct v2_m *m)
{
    free_of_g(o, m);
    free_of_p(o, m);
}

/* MARK: States */

/* Puts a goroutine into a state; `n`: the sequence number before the event's. */
static bool set_g(struct v2_order *o, struct v2_m *m, int64_t id, unsigned status, uint64_t n)
{
    struct v2_g *g = find_g(o, id);
    if (!g || g->status != status) {
        v2_hole_forget_g(o, id);
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
        v2_hole_forget_p(o, id);
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

/* Puts the thread's goroutine and its P, if any, into these states. Returns false if there is no
 * goroutine, or out of memory. */
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
        v2_hole_forget_p(o, (int64_t)arg[0]);
        unbind_others(o, NULL, TRAIL_NONE, (int64_t)arg[0]);
        return true;
    case V2_GoStatus:
    case V2_GoStatusStack:
        v2_hole_forget_g(o, (int64_t)arg[0]);
        unbind_others(o, NULL, (int64_t)arg[0], TRAIL_NONE);
        return true;
    case V2_GoCreate:
    case V2_GoCreateBlocked:
        v2_hole_forget_g(o, (int64_t)arg[0]);
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
        v2_hole_forget_g(o, (int64_t)arg[0]);
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

/* MARK: What is waited for */

/* Whether an event that needs number `n` - 1 waits for an event that comes later in the file. */
static bool may_come(const struct v2_order *o, bool is_proc, uint64_t id, uint64_t n,
                     const struct v2_seq *seq, bool on_thread)
{
    uint64_t last = 0;
    bool known = seq && seq->generation == o->generation;
    if (known)
        last = seq->n;
    else
        known = v2_hole_forgotten(is_proc ? &o->forgotten_ps : &o->forgotten_gs, id, &last);
    if (known && last + 1 >= n)
        return seq && last + 1 == n && on_thread;
    return v2_successors_type(o->successors, is_proc ? V2_NUMBERED_P : V2_NUMBERED_G, id, n - 1);
}

bool v2_force_is_due(const struct v2_order *o, const struct v2_cursor *c)
{
    struct v2_wire_event wire;
    if (!o->successors || !v2_decode_any(c->event, c->end, &wire))
        return false;
    uint64_t id = wire.arg[0], n = wire.arg[1];
    const struct v2_g *g;
    const struct v2_p *p;
    switch (wire.type) {
    case V2_GoStart:
    case V2_GoUnblock:
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        g = find_g(o, (int64_t)id);
        return !may_come(o, false, id, n, g ? &g->seq : NULL,
                         g && (g->status == V2_GO_RUNNING || g->status == V2_GO_SYSCALL));
    case V2_ProcStart:
    case V2_ProcSteal:
        p = find_p(o, (int64_t)id);
        return !may_come(o, true, id, n, p ? &p->seq : NULL, p && p->status != V2_PROC_IDLE);
    default:
        return false;
    }
}

/* MARK: What cannot be an event */

/* Whether a type's argument is of this kind, by the suffix of its name (v2.def). */
static bool is_named(const char *name, const char *suffix)
{
    size_t size = strlen(name), end = strlen(suffix);
    return size >= end && strcmp(name + size - end, suffix) == 0;
}

/* Whether a number is plausible, given the model's. */
static bool may_follow(const struct v2_order *o, const struct v2_seq *seq, uint64_t n)
{
    uint64_t last = seq && seq->generation == o->generation ? seq->n : 0;
    return n <= last || n - last <= MOST_SKIPPED;
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
    if (strcmp(name, "pstatus") == 0)
        return value < V2_PROC_STATUSES;
    if (strcmp(name, "gstatus") == 0)
        return value < V2_GO_STATUSES;
    if (strcmp(name, "m") == 0)
        return value == V2_NO_THREAD || objects_find(&o->ms, value) != NULL ||
               (o->incomplete && value < HIGHEST_ID);
    if (strcmp(name, "p") == 0)
        return value < HIGHEST_P;
    if (strcmp(name, "g") == 0 || strcmp(name, "new_g") == 0)
        return value > 0 && value < HIGHEST_G && value / MOST_LEFT_OUT <= o->highest_g;
    return true;
}

/* Returns the goroutine that an event names; 0: none. */
static uint64_t named_g(const struct v2_wire_event *wire)
{
    switch (wire->type) {
    case V2_GoCreate:
    case V2_GoCreateBlocked:
    case V2_GoCreateSyscall:
    case V2_GoStatus:
    case V2_GoStatusStack:
    case V2_GoStart:
    case V2_GoUnblock:
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        return wire->arg[0];
    default:
        return 0;
    }
}

/* Returns the model's sequence number for the goroutine or P of an event; NULL: none. */
static const struct v2_seq *seq_of(const struct v2_order *o, const struct v2_m *m,
                                   const struct v2_wire_event *wire, uint64_t *n)
{
    const struct v2_g *g = NULL;
    const struct v2_p *p = NULL;
    *n = wire->arg[1];
    switch (wire->type) {
    case V2_GoStart:
    case V2_GoUnblock:
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        g = find_g(o, (int64_t)wire->arg[0]);
        return g ? &g->seq : NULL;
    case V2_GoSyscallBegin:
        *n = wire->arg[0];
        p = find_p(o, m->p_id);
        return p ? &p->seq : NULL;
    case V2_ProcStart:
    case V2_ProcSteal:
        p = find_p(o, (int64_t)wire->arg[0]);
        return p ? &p->seq : NULL;
    default:
        return NULL;
    }
}

bool v2_force_is_over(const struct v2_order *o, const struct v2_cursor *c)
{
    struct v2_wire_event wire;
    uint64_t n;
    if (!v2_decode_any(c->event, c->end, &wire))
        return false;
    const struct v2_seq *seq = seq_of(o, c->m, &wire, &n);
    return idmap_find(&o->ended_gs, named_g(&wire)) ||
           (seq && seq->generation == o->generation && n <= seq->n);
}

bool v2_force_ends_another(const struct v2_order *o, const struct v2_cursor *c)
{
    uint8_t type = *c->event;
    const struct v2_g *g = find_g(o, c->m->g_id);
    return (type == V2_GoDestroy || type == V2_GoDestroySyscall || type == V2_GoSwitchDestroy) &&
           g && v2_hole_goes_on(o, g);
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

/* A goroutine that occurs nowhere else in the generation comes from chance bytes. */
static bool is_alone(const struct v2_order *o, const struct v2_wire_event *wire)
{
    uint64_t id = wire->arg[0];
    bool starts = wire->type == V2_GoStart || wire->type == V2_GoUnblock ||
                  wire->type == V2_GoSwitch || wire->type == V2_GoSwitchDestroy;
    return starts && !find_g(o, (int64_t)id) && !idmap_find(&o->forgotten_gs, id) &&
           !v2_successors_several(o->successors, V2_NUMBERED_G, id);
}

bool v2_force(struct v2_order *o, struct v2_cursor *c)
{
    struct v2_wire_event wire;
    if (c->m == &o->nobody || o->forced_work > V2_FORCED_WORK_MOST ||
        !v2_decode_any(c->event, c->end, &wire) || is_alone(o, &wire))
        return false;
    c->m->seen = true;
    o->initial_generation = o->generation; /* statuses may be of unknown goroutines and Ps */
    o->forced++;
    return force(o, c->m, &wire);
}
