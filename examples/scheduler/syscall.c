/*
 * System calls: a thread that is in the kernel must not keep its P from others.
 *
 *   short    enter, exit: the P stays, and coming back costs one compare-and-swap
 *   long     the monitor sees that nothing moved since its last look, and takes the P
 *   known    to be long: the thread gives the P up itself, before
 *
 * While in a call, the P's status holds the thread's number: the thread that changes it first, the
 * one that comes back or the one that steals, has the P. Stealing is done under sched.lock as a
 * whole, so that a thread which lost its P and takes that lock knows that the event of the theft is
 * out.
 */
#include "scheduler.h"

#include <time.h>

static uint32_t in_syscall(const struct m *m)
{
    return P_SYSCALL | m->number << 2;
}

void syscall_enter(void)
{
    struct m *m = m_self();
    note(m->g, "syscall");
    trail_syscall_enter(&m->trail, 1);
    atomic_fetch_add(&m->p->tick, 1);
    atomic_store(&m->p->status, in_syscall(m));
}

static void give_up_in_call(struct m *m)
{
    give_up_p(m);
    wake();
}

void syscall_block(void)
{
    struct m *m = m_self();
    note(m->g, "syscall");
    trail_syscall_enter(&m->trail, 1);
    give_up_in_call(m);
}

bool syscall_lost_p(void)
{
    struct m *m = m_self();
    return !m->p || atomic_load(&m->p->status) != in_syscall(m);
}

/* Back without the P: on another one, if there is one; else the coroutine waits for its turn. */
static void come_back(struct m *m)
{
    struct g *g = m->g;
    struct p *p;
    trail_syscall_returned(&g->trail);
    outside_begin();
    m->p = NULL;
    note(g, "syscall-exit-blocked");
    p = p_get_idle();
    if (!p && g->stack) {
        trail_syscall_exit_blocked(&m->trail);
        leave(m, g, put_runnable_locked, g);
        return;
    }
    while (!p) {
        outside_end();
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        outside_begin();
        p = p_get_idle();
    }
    outside_end();
    p_take(m, p);
    trail_syscall_exit_blocked(&m->trail);
    note(g, "start");
    trail_go_start(&m->trail, &g->trail);
}

void syscall_exit(void)
{
    struct m *m = m_self();
    uint32_t mine = in_syscall(m);
    if (m->p && atomic_compare_exchange_strong(&m->p->status, &mine, P_RUNNING)) {
        note(m->g, "syscall-exit");
        trail_syscall_exit(&m->trail);
    } else
        come_back(m);
}

/* MARK: The monitor */

/* A P that did not move since the last look: stolen from a system call, or asked to preempt. */
static void look_at(struct m *m, struct p *p)
{
    uint32_t status = atomic_load(&p->status), tick = atomic_load(&p->tick);
    bool moved = tick != p->seen_tick;
    p->seen_tick = tick;
    if (moved)
        return;
    if (status == P_RUNNING)
        atomic_store(&p->preempt, true);
    if ((status & 3) != P_SYSCALL)
        return;
    outside_begin();
    if (atomic_compare_exchange_strong(&p->status, &status, P_RUNNING)) {
        trail_proc_steal(&m->trail, &p->trail);
        p_put_idle(p);
    }
    outside_end();
    wake();
}

void *monitor_main(void *argument)
{
    struct m *m = argument;
    m_begin(m);
    while (!atomic_load(&sched.quit)) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        for (unsigned i = 0; i < atomic_load(&sched.procs); i++)
            look_at(m, &sched.ps[i]);
    }
    m_end(m);
    return NULL;
}

/* MARK: Threads that are not ours call in */

void foreign_begin(struct m *m)
{
    *m = (struct m){0};
    m_begin(m);
    lock(&sched.lock);
    m->number = ++sched.next_number;
    unlock(&sched.lock);
}

/* Takes the P that foreign_leave left behind, if it is still there, as the monitor would. */
static void take_back(struct m *m)
{
    uint32_t mine = in_syscall(m);
    outside_begin();
    if (m->p && atomic_compare_exchange_strong(&m->p->status, &mine, P_RUNNING)) {
        trail_proc_steal(&m->trail, &m->p->trail);
        p_put_idle(m->p);
    }
    m->p = NULL;
    outside_end();
}

/* The caller becomes a coroutine that leaves a system call, on its own thread and stack. */
struct g *foreign_enter(struct m *m)
{
    struct g *g = g_new(NULL, NULL, false);
    take_back(m);
    all_add(g);
    outside_begin();
    note(g, "create-syscall");
    trail_go_create_syscall(&m->trail, &g->trail);
    outside_end();
    m->g = g;
    come_back(m);
    return g;
}

/* With keep_p the P stays in the system call until the monitor takes it or the thread returns. */
void foreign_leave(struct m *m, bool keep_p)
{
    struct g *g = m->g;
    note(g, "syscall");
    trail_syscall_enter(&m->trail, 1);
    if (keep_p) {
        note(g, "destroy-syscall");
        trail_go_destroy_syscall(&m->trail);
        atomic_store(&m->p->status, in_syscall(m));
    } else {
        give_up_in_call(m);
        outside_begin();
        note(g, "destroy-syscall");
        trail_go_destroy_syscall(&m->trail);
        outside_end();
    }
    m->g = NULL;
    g_free(g);
}

/* A P that was left behind must be gone before the thread's trail_m is. */
void foreign_end(struct m *m)
{
    while (m->p && !syscall_lost_p())
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    lock(&sched.lock); /* the theft is reported as a whole */
    unlock(&sched.lock);
    m_end(m);
}
