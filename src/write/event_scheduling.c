/* Events of Ps, goroutines and their system calls, and the dispatch of every event to its
 * function. */
#include "write/event_ids.h"
#include "write/event_ranges.h"
#include "write/event_v1.h"
#include "write/event_writer.h"

/* Returns the M on which the event can be written if its goroutine is in the given state; else
 * NULL. */
static struct model_m *context_in(struct event_writer *w, const trail_event *e, unsigned needs,
                                  unsigned status, struct model_g **g)
{
    struct model_m *m = event_context(w, e, needs);
    *g = m ? model_g_of(&w->model, m) : NULL;
    return *g && (*g)->status == status ? m : NULL;
}

/* MARK: Ps */

static bool put_proc_start(struct event_writer *w, const trail_event *e);

static bool put_proc_status(struct event_writer *w, const trail_event *e)
{
    unsigned status = event_p_status(e);
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    struct model_m *m = event_v1_status_thread(w, e, p);
    /* After damage (event_end_at_damage) it has been idle until now. */
    if (p && p->status == V2_PROC_IDLE && status == V2_PROC_RUNNING && w->begun)
        return put_proc_start(w, e);
    if (p && p->status != status)
        return false;
    if (!p && !(p = model_add_p(&w->model, e->transition.id, status)))
        return false;
    p->seq = (struct model_seq){w->model.generation, 0};
    if (model_p_runs(p))
        model_bind_p(m, p);
    return SEND(w, m, V2_ProcStatus, (uint64_t)p->id, status);
}

static bool put_proc_start(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = model_m(&w->model, e->thread);
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    if (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE)
        m = event_thread_named_after(w, EVENT_THREAD_OF_P, e->transition.id);
    if (!p || p->status != V2_PROC_IDLE || m->id == TRAIL_NONE || m->p_id != TRAIL_NONE ||
        !event_is_ready_p(w, p))
        return false;
    p->status = V2_PROC_RUNNING;
    model_bind_p(m, p);
    return SEND(w, m, V2_ProcStart, (uint64_t)p->id, model_next(&p->seq));
}

static bool put_proc_stop(struct event_writer *w, const trail_event *e)
{
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    struct model_m *m = p ? model_thread_of_p(&w->model, p) : NULL;
    if (!m || m->id == TRAIL_NONE || !model_p_runs(p))
        return false;
    p->status = V2_PROC_IDLE;
    model_bind_p(m, NULL);
    return SEND0(w, m, V2_ProcStop);
}

static bool put_proc_steal(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = model_m(&w->model, e->thread);
    struct model_p *p = model_find_p(&w->model, e->transition.id);
    if (e->flags & TRAIL_EVENT_IMPLIED) {
        w->implied_ns = w->time_ns;
        return true;
    }
    if (!p || m->id == TRAIL_NONE || !event_is_ready_p(w, p))
        return false;
    struct model_m *victim = model_thread_of_p(&w->model, p);
    uint64_t from = V2_NO_THREAD;
    if (p->status == V2_PROC_SYSCALL && victim && victim->seen) {
        from = (uint64_t)victim->id;
        model_bind_p(victim, NULL);
    } else if (p->status != V2_PROC_ABANDONED) {
        return false;
    }
    p->status = V2_PROC_IDLE;
    return SEND(w, m, V2_ProcSteal, (uint64_t)p->id, model_next(&p->seq), from);
}

/* MARK: System calls */

static bool put_syscall_begin(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p || !event_is_ready_p(w, p))
        return false;
    g->status = V2_GO_SYSCALL;
    p->status = V2_PROC_SYSCALL;
    return SEND(w, m, V2_GoSyscallBegin, model_next(&p->seq), event_stack_id(w, e->stack));
}

static bool put_syscall_end(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_SYSCALL, &g);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!p || p->status != V2_PROC_SYSCALL)
        return false;
    g->status = V2_GO_RUNNING;
    p->status = V2_PROC_RUNNING;
    return SEND0(w, m, V2_GoSyscallEnd);
}

static bool put_syscall_end_blocked(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->transition.id);
    if (g && g->left) {
        g->left = false;
        return true;
    }
    struct model_m *m = event_v1_leave_syscall(w, g);
    return m && SEND0(w, m, V2_GoSyscallEndBlocked);
}

static bool put_create_syscall(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_M | V2_NEED_NO_G);
    if (!m || m->g_id != TRAIL_NONE || model_find_g(&w->model, e->transition.id))
        return false;
    struct model_g *g = model_add_g(&w->model, e->transition.id, V2_GO_SYSCALL);
    if (!g)
        return false;
    model_bind_g(m, g);
    return SEND(w, m, V2_GoCreateSyscall, (uint64_t)g->id);
}

static bool put_destroy_syscall(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_M | V2_NEED_G, V2_GO_SYSCALL, &g);
    struct model_p *p = m ? model_p_of(&w->model, m) : NULL;
    if (!m || (p && p->status != V2_PROC_SYSCALL))
        return false;
    model_remove_g(&w->model, g);
    model_bind_g(m, NULL);
    if (w->implied_ns)
        w->time_ns = w->implied_ns;
    bool sent = SEND0(w, m, V2_GoDestroySyscall);
    if (p) {
        p->status = V2_PROC_ABANDONED;
        model_bind_p(m, NULL);
        w->last_ns++;
    }
    return sent;
}

/* MARK: Goroutines */

/* Creates a goroutine whose status comes after the first generation: no event referred to it
 * before. */
static struct model_g *introduce_g(struct event_writer *w, int64_t id, unsigned status,
                                   struct model_m *m)
{
    struct model_m *by = event_any_running(w);
    bool starts = status == V2_GO_RUNNING && m->id != TRAIL_NONE && m->p_id != TRAIL_NONE &&
                  m->g_id == TRAIL_NONE;
    if (starts)
        by = m;
    bool blocked = status == V2_GO_WAITING;
    if (!by || status == V2_GO_SYSCALL || (blocked && w->version < 23))
        return NULL;
    struct model_g *g = model_add_g(&w->model, id, blocked ? V2_GO_WAITING : V2_GO_RUNNABLE);
    if (g)
        ADD(w, by, blocked ? V2_GoCreateBlocked : V2_GoCreate, (uint64_t)id, 0, 0);
    if (g && starts) {
        ADD(w, m, V2_GoStart, (uint64_t)id, model_next(&g->seq));
        g->status = V2_GO_RUNNING;
        model_bind_g(m, g);
    }
    return g;
}

/* Returns the M of a goroutine in a system call; NULL if readers know that the goroutine is not on
 * it. */
static struct model_m *syscall_thread(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_call_thread(w, e);
    /* An event of another thread must not change a thread that readers know. */
    bool may_be_new = w->initial && m->g_id == TRAIL_NONE && (!m->seen || e->thread == m->id);
    return m->g_id == e->transition.id || may_be_new || !w->begun ? m : NULL;
}

static bool put_go_start(struct event_writer *w, const trail_event *e);

static bool put_go_status(struct event_writer *w, const trail_event *e)
{
    int64_t id = e->transition.id;
    unsigned status = event_g_status(e->transition.to);
    struct model_g *g = model_find_g(&w->model, id);
    struct model_m *m = model_m(&w->model, e->thread), *of = m;
    if (g && g->status == V2_GO_RUNNABLE && status == V2_GO_RUNNING && w->begun)
        return put_go_start(w, e);
    if (g && g->status != status)
        return false;
    if (status == V2_GO_SYSCALL && !(of = syscall_thread(w, e)))
        return false;
    if (!g && w->begun && !w->initial)
        return introduce_g(w, id, status, m) != NULL;
    if (!g && !(g = model_add_g(&w->model, id, status)))
        return false;
    g->seq = (struct model_seq){w->model.generation, 0};
    if (status == V2_GO_RUNNING || status == V2_GO_SYSCALL)
        model_bind_g(of, g);
    if (status == V2_GO_SYSCALL) {
        /* A status without a thread shows the call as one without a P. */
        m = e->proc == of->p_id || !of->seen ? of : &w->model.nobody;
        of->seen = true;
    }
    if (e->wire == V2_GoStatusStack && w->version >= 23)
        return SEND(w, m, V2_GoStatusStack, (uint64_t)id, (uint64_t)of->id, status,
                    event_stack_id(w, e->stack));
    return SEND(w, m, V2_GoStatus, (uint64_t)id, (uint64_t)of->id, status);
}

static bool put_go_create(struct event_writer *w, const trail_event *e)
{
    struct model_m *m = event_context(w, e, V2_NEED_M | V2_NEED_P);
    const struct model_g *by = m ? model_g_of(&w->model, m) : NULL;
    if (!m || (by && by->status != V2_GO_RUNNING) || model_find_g(&w->model, e->transition.id))
        return false;
    unsigned status = e->wire == V2_GoCreateBlocked ? V2_GO_WAITING : V2_GO_RUNNABLE;
    struct model_g *g = model_add_g(&w->model, e->transition.id, status);
    return g && SEND(w, m, e->wire, (uint64_t)g->id, event_stack_id(w, e->transition.stack),
                     event_stack_id(w, e->stack));
}

static bool is_free(struct event_writer *w, struct model_m *m)
{
    return m->g_id == TRAIL_NONE || event_v1_free(w, m);
}

static bool put_go_start(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->transition.id);
    if (!g || g->status != V2_GO_RUNNABLE || !event_is_ready_g(w, g))
        return false;
    struct model_m *m = event_context(w, e, V2_NEED_M | V2_NEED_P);
    if (!m || !is_free(w, m) || m->p_id == TRAIL_NONE)
        return false;
    g->status = V2_GO_RUNNING;
    model_bind_g(m, g);
    return SEND(w, m, V2_GoStart, (uint64_t)g->id, model_next(&g->seq));
}

static bool put_go_destroy(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    if (!m)
        return false;
    model_remove_g(&w->model, g);
    model_bind_g(m, NULL);
    return SEND0(w, m, V2_GoDestroy);
}

/* GoStop and GoBlock. */
static bool put_go_stop(struct event_writer *w, const trail_event *e)
{
    struct model_g *g;
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    if (!m)
        return false;
    g->status = e->wire == V2_GoStop ? V2_GO_RUNNABLE : V2_GO_WAITING;
    model_bind_g(m, NULL);
    return SEND(w, m, e->wire, event_reason_id(w, e->transition.reason),
                event_stack_id(w, e->stack));
}

static bool put_go_unblock(struct event_writer *w, const trail_event *e)
{
    struct model_g *g = model_find_g(&w->model, e->transition.id);
    if (!g || g->status != V2_GO_WAITING || !event_is_ready_g(w, g))
        return false;
    struct model_m *m = model_m(&w->model, e->thread);
    g->status = V2_GO_RUNNABLE;
    return SEND(w, m, V2_GoUnblock, (uint64_t)g->id, model_next(&g->seq),
                event_stack_id(w, e->stack));
}

/* This is the first of the three events that the switch implies; the others follow from it. */
static bool put_go_switch(struct event_writer *w, const trail_event *e)
{
    struct model_g *g, *next = model_find_g(&w->model, e->transition.id);
    struct model_m *m = context_in(w, e, V2_NEED_USER_GO, V2_GO_RUNNING, &g);
    if (!m || !next || next->status != V2_GO_WAITING || !event_is_ready_g(w, next))
        return false;
    if (e->wire == V2_GoSwitch)
        g->status = V2_GO_WAITING;
    else
        model_remove_g(&w->model, g);
    next->status = V2_GO_RUNNING;
    model_bind_g(m, next);
    bool sent = SEND(w, m, e->wire, (uint64_t)next->id, model_next(&next->seq));
    w->last_ns += 2;
    return sent;
}

/* MARK: Dispatch */

/* Every event that is not in the table is written by event_put_range. */
static bool (*const put_functions[V2_TYPES])(struct event_writer *w, const trail_event *e) = {
    [V2_ProcStatus] = put_proc_status,
    [V2_ProcStart] = put_proc_start,
    [V2_ProcStop] = put_proc_stop,
    [V2_ProcSteal] = put_proc_steal,
    [V2_GoStatus] = put_go_status,
    [V2_GoStatusStack] = put_go_status,
    [V2_GoCreate] = put_go_create,
    [V2_GoCreateBlocked] = put_go_create,
    [V2_GoStart] = put_go_start,
    [V2_GoDestroy] = put_go_destroy,
    [V2_GoStop] = put_go_stop,
    [V2_GoBlock] = put_go_stop,
    [V2_GoUnblock] = put_go_unblock,
    [V2_GoSwitch] = put_go_switch,
    [V2_GoSwitchDestroy] = put_go_switch,
    [V2_GoSyscallBegin] = put_syscall_begin,
    [V2_GoSyscallEnd] = put_syscall_end,
    [V2_GoSyscallEndBlocked] = put_syscall_end_blocked,
    [V2_GoCreateSyscall] = put_create_syscall,
    [V2_GoDestroySyscall] = put_destroy_syscall,
    [V2_HeapAlloc] = event_put_heap,
    [V2_HeapGoal] = event_put_heap,
};

static bool put(struct event_writer *w, const trail_event *e)
{
    /* v1 allows a P of that number; in v2 the number stands for "none". */
    if (e->kind == TRAIL_STATE_TRANSITION && e->transition.id == TRAIL_NONE)
        return false;
    return (e->wire < V2_TYPES && put_functions[e->wire] ? put_functions[e->wire]
                                                         : event_put_range)(w, e);
}

/*
 * A goroutine or P whose state is unknown after damage no longer runs: another may be on its thread
 * after the damage.
 */
static void end_at_damage(struct event_writer *w, const trail_event *e)
{
    const bool is_p = e->transition.resource == TRAIL_RESOURCE_PROC;
    struct model_p *p = is_p ? model_find_p(&w->model, e->transition.id) : NULL;
    struct model_g *g = is_p ? NULL : model_find_g(&w->model, e->transition.id);
    struct model_m *m = NULL;
    if (p || g)
        m = p ? model_thread_of_p(&w->model, p) : model_thread_of_g(&w->model, g);
    if (!m || m->id == TRAIL_NONE)
        return;
    g = model_g_of(&w->model, m);
    p = model_p_of(&w->model, m);
    if (!p || p->status != V2_PROC_RUNNING)
        return;
    if (g && g->status == V2_GO_RUNNING) {
        g->status = V2_GO_RUNNABLE;
        model_bind_g(m, NULL);
        ADD(w, m, V2_GoStop, 0, 0);
    }
    if (is_p) {
        p->status = V2_PROC_IDLE;
        model_bind_p(m, NULL);
        ADD0(w, m, V2_ProcStop);
    }
}

/* Whether the event introduces a goroutine to readers of the generation. */
static bool presents_g(const trail_event *e)
{
    return e->wire == V2_GoStatus || e->wire == V2_GoStatusStack || e->wire == V2_GoCreate ||
           e->wire == V2_GoCreateBlocked || e->wire == V2_GoCreateSyscall;
}

void event_writer_put(struct event_writer *w, const trail_event *e)
{
    if (!event_writer_take(w, e)) {
        if (event_is_of_damage(e) && e->kind == TRAIL_STATE_TRANSITION)
            end_at_damage(w, e);
        return;
    }
    if (presents_g(e))
        event_label_g(w, e->transition.id, e->wire == V2_GoStatusStack ? e->transition.stack : 0);
    event_writer_done(w, e, put(w, e));
}
