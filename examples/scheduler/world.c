/*
 * Stopping the world: every P is taken from its owner, and threads that have none emit nothing.
 *
 * A running coroutine is asked to stop at its next safe point; its thread finds sched.stopping set
 * and gives its P up. A P in a system call is stolen, an idle one is taken. Threads without a P
 * emit their events under sched.lock and only while the world goes on (outside_begin). So the
 * formats before 1.22 get what they need for their first snapshot: no thread emits, and no
 * goroutine changes its state.
 */
#include "scheduler.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void outside_begin(void)
{
    lock(&sched.lock);
    while (atomic_load(&sched.stopping)) {
        unlock(&sched.lock);
        syscall(SYS_futex, &sched.stopping, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        lock(&sched.lock);
    }
}

void outside_end(void)
{
    unlock(&sched.lock);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

bool world_hold(void)
{
    bool mine;
    lock(&sched.lock);
    mine = !sched.world_taken;
    sched.world_taken = true;
    unlock(&sched.lock);
    return mine;
}

void world_release(void)
{
    lock(&sched.lock);
    sched.world_taken = false;
    unlock(&sched.lock);
}

/* One thread stops the world at a time; the next one must be stoppable by it meanwhile. */
static void take_world(void)
{
    while (!world_hold()) {
        if (g_self())
            yield();
        else
            nap();
    }
}

/* Takes it if that can be done from here; asks for it otherwise. With sched.lock. */
static bool stop_p(struct m *m, struct p *p)
{
    uint32_t status = atomic_load(&p->status);
    if (status == P_STOPPED || p == m->p)
        return true;
    if (status == P_IDLE)
        atomic_store(&p->status, P_STOPPED);
    else if (status == P_RUNNING ||
             !atomic_compare_exchange_strong(&p->status, &status, P_STOPPED)) {
        atomic_store(&p->preempt, true);
        return false;
    } else
        trail_proc_steal(&m->trail, &p->trail);
    return true;
}

static bool stop_ps(struct m *m)
{
    bool all = true;
    lock(&sched.lock);
    sched.idle_ps = NULL;
    atomic_store(&sched.idle_count, 0);
    for (unsigned i = 0; i < atomic_load(&sched.procs); i++)
        all &= stop_p(m, &sched.ps[i]);
    unlock(&sched.lock);
    return all;
}

static void stop(void)
{
    lock(&sched.lock);
    atomic_store(&sched.stopping, 1);
    unlock(&sched.lock);
    while (!stop_ps(m_self()))
        nap();
}

void world_stop(void)
{
    take_world();
    stop();
}

/* From here to world_start_traced the coroutine stays on its thread. */
void world_stop_traced(trail_stw_kind kind)
{
    take_world();
    trail_stw_begin(&m_self()->trail, kind, 1);
    stop();
}

void world_start(void)
{
    struct p *mine = m_self()->p;
    unsigned procs = atomic_load(&sched.procs);
    lock(&sched.lock);
    atomic_store(&sched.stopping, 0);
    for (unsigned i = procs; i-- > 0;)
        if (&sched.ps[i] != mine)
            p_put_idle(&sched.ps[i]);
    sched.world_taken = false;
    unlock(&sched.lock);
    syscall(SYS_futex, &sched.stopping, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
    for (unsigned i = 0; i < procs; i++)
        wake();
}

/* The end is reported while no other stop can begin. */
void world_start_traced(void)
{
    trail_stw_end(&m_self()->trail);
    world_start();
}

/* MARK: The number of Ps */

/* Coroutines queued at a removed P go to the global queue. */
static void drain(struct p *p)
{
    struct g *g;
    while ((g = gqueue_pop(&p->runnable)))
        gqueue_push(&sched.runnable, g);
}

/* The coroutine goes on, on P 0, within a stopped world. Reported as if it had yielded. */
static void move_to_first(struct m *m)
{
    struct p *p = m->p;
    struct g *g = m->g;
    note(g, "yield");
    trail_go_sched(&m->trail, 1);
    trail_proc_stop(&m->trail);
    atomic_store(&p->status, P_STOPPED);
    atomic_store(&sched.ps[0].status, P_RUNNING);
    p_take(m, &sched.ps[0]);
    note(g, "start");
    trail_go_start(&m->trail, &g->trail);
}

void procs_change(unsigned n)
{
    struct m *m;
    world_stop_traced(TRAIL_STW_GOMAXPROCS);
    m = m_self();
    if (m->p->trail.id >= (int32_t)n)
        move_to_first(m);
    lock(&sched.lock);
    for (unsigned i = n; i < MAX_PROCS; i++)
        drain(&sched.ps[i]);
    atomic_store(&sched.procs, n);
    unlock(&sched.lock);
    trail_procs_change(&m->trail, n, 1);
    world_start_traced();
}

/* MARK: What the tracer asks */

/* Nothing is freed while the lock is held, and nothing under it may wait for the tracer. */
static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    lock(&sched.all_lock);
    for (struct g *g = sched.all; g; g = g->all_next)
        visit(&g->trail, arg);
    unlock(&sched.all_lock);
}

static void stop_world(void *context)
{
    (void)context;
    world_stop();
}

static void start_world(void *context)
{
    (void)context;
    world_start();
}

const trail_host host = {
    .each_goroutine = each_goroutine,
    .stop_world = stop_world,
    .start_world = start_world,
};
