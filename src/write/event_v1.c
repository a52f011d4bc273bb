/*
 * Records that traces of v1 lack and readers of v2 need. In v1 an event has a P and usually no
 * thread, Ps run without having been started, and the end of a system call may come long after its
 * effects. So the thread is found by what is bound to it, and what must have happened is written
 * before the event.
 */
#include "write/event_v1.h"

/* Starts a P that an event uses although nothing started it: on `m`, or on a thread of its own. */
static struct model_m *take_proc(struct event_writer *w, int64_t id, struct model_m *m)
{
    struct model_p *p = model_find_p(&w->model, id);
    if (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE)
        m = event_thread_named_after(w, EVENT_THREAD_OF_P, id);
    if (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE || (p && p->status != V2_PROC_IDLE))
        return NULL;
    if (!p) {
        p = model_add_p(&w->model, id, V2_PROC_RUNNING);
        if (!p)
            return NULL;
        ADD(w, m, V2_ProcStatus, (uint64_t)id, V2_PROC_RUNNING);
    } else {
        (void)event_is_ready_p(w, p);
        ADD(w, m, V2_ProcStart, (uint64_t)id, model_next(&p->seq));
        p->status = V2_PROC_RUNNING;
    }
    model_bind_p(m, p);
    return m;
}

struct model_m *event_v1_context(struct event_writer *w, const trail_event *e, unsigned needs,
                                 struct model_m *m)
{
    struct model_g *g = e->goroutine == TRAIL_NONE ? NULL : model_find_g(&w->model, e->goroutine);
    struct model_m *of_g = g ? model_thread_of_g(&w->model, g) : NULL, *of_p = NULL;
    if (event_is_real_p(e->proc)) {
        const struct model_p *p = model_find_p(&w->model, e->proc);
        of_p = p ? model_thread_of_p(&w->model, p) : NULL;
        if (!of_p && !(needs & V2_NEED_G))
            of_p = take_proc(w, e->proc, m);
    }
    if (!(needs & V2_NEED_G))
        return of_p ? of_p : of_g && of_g->p_id != TRAIL_NONE ? of_g : NULL;
    if (of_g && of_g->p_id != TRAIL_NONE)
        return of_g;
    return of_p && of_p->g_id != TRAIL_NONE ? of_p : NULL;
}

struct model_m *event_v1_status_thread(struct event_writer *w, const trail_event *e,
                                       const struct model_p *p)
{
    struct model_m *m = model_m(&w->model, e->thread);
    if (e->transition.status != 0)
        return m; /* v2 */
    struct model_m *known = p ? model_thread_of_p(&w->model, p) : NULL;
    if (known)
        return known; /* as in a trace that began later */
    if (e->transition.to == TRAIL_PROC_RUNNING && (m->id == TRAIL_NONE || m->p_id != TRAIL_NONE))
        return event_thread_named_after(w, EVENT_THREAD_OF_P, e->transition.id);
    return m;
}

/* Frees a P that is still on the goroutine's thread but, as far as readers know, in the system
 * call. */
static void free_proc(struct event_writer *w, struct model_m *m)
{
    struct model_p *p = model_p_of(&w->model, m);
    if (!p || p->status != V2_PROC_SYSCALL)
        return;
    (void)event_is_ready_p(w, p);
    ADD(w, m, V2_ProcSteal, (uint64_t)p->id, p->seq.n + 1, (uint64_t)m->id);
    ADD(w, m, V2_ProcStart, (uint64_t)p->id, p->seq.n + 2);
    p->seq.n += 2;
    p->status = V2_PROC_RUNNING;
}

struct model_m *event_v1_leave_syscall(struct event_writer *w, struct model_g *g)
{
    struct model_m *m = g && g->status == V2_GO_SYSCALL ? model_thread_of_g(&w->model, g) : NULL;
    if (!m || m->id == TRAIL_NONE)
        return NULL;
    free_proc(w, m);
    g->status = V2_GO_RUNNABLE;
    model_bind_g(m, NULL);
    return m;
}

/* The event that ends the call comes later, and then finds that the goroutine has left. */
bool event_v1_free(struct event_writer *w, struct model_m *m)
{
    struct model_g *g = model_g_of(&w->model, m);
    if (!g || !event_v1_leave_syscall(w, g))
        return false;
    ADD0(w, m, V2_GoSyscallEndBlocked);
    g->left = true;
    return true;
}
