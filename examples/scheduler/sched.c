/*
 * The threads that run coroutines, and the choice of the next one.
 *
 * A thread looks for work on its own stack (run_thread), switches to a coroutine's, and is back
 * when that one ends, yields or waits.
 *
 * Either a thread that goes idle sees new work, or a thread is woken for it: one side puts the
 * work, then reads idle_count; the other raises idle_count, then reads the queues; both
 * sequentially consistent.
 */
#include "scheduler.h"

#include <sched.h>
#include <stdlib.h>

struct scheduler sched;

static _Thread_local struct m *self;

/* Never inlined: a function that continues on another thread must read it again. */
__attribute__((noinline)) struct m *m_self(void)
{
    __asm__ volatile("" ::: "memory");
    return self;
}

struct g *g_self(void)
{
    return m_self()->g;
}

/* MARK: Queues */

/* Puts it into the queue of the current P. */
void put_local(struct g *g)
{
    struct p *p = m_self()->p;
    lock(&p->lock);
    gqueue_push(&p->runnable, g);
    unlock(&p->lock);
    wake();
}

void put_runnable_locked(void *g)
{
    gqueue_push(&sched.runnable, g);
    unlock(&sched.lock);
    wake();
}

void put_runnable(void *g)
{
    lock(&sched.lock);
    put_runnable_locked(g);
}

/* MARK: Ps */

struct p *p_get_idle(void)
{
    struct p *p = atomic_load(&sched.stopping) ? NULL : sched.idle_ps;
    if (!p)
        return NULL;
    sched.idle_ps = p->next;
    atomic_fetch_sub(&sched.idle_count, 1);
    atomic_store(&p->status, P_RUNNING);
    return p;
}

void p_put_idle(struct p *p)
{
    if (p->trail.id >= (int32_t)atomic_load(&sched.procs)) {
        atomic_store(&p->status, P_STOPPED);
        return;
    }
    atomic_store(&p->status, P_IDLE);
    p->next = sched.idle_ps;
    sched.idle_ps = p;
    atomic_fetch_add(&sched.idle_count, 1);
}

void p_take(struct m *m, struct p *p)
{
    trail_proc_start(&m->trail, &p->trail);
    m->p = p;
    atomic_fetch_add(&p->tick, 1);
}

static bool work_anywhere(void)
{
    if (atomic_load(&sched.runnable.length))
        return true;
    for (unsigned i = 0; i < atomic_load(&sched.procs); i++)
        if (atomic_load(&sched.ps[i].runnable.length))
            return true;
    return false;
}

/* MARK: Finding work */

static struct g *pop_local(struct p *p)
{
    struct g *g;
    if (!atomic_load(&p->runnable.length))
        return NULL;
    lock(&p->lock);
    g = gqueue_pop(&p->runnable);
    unlock(&p->lock);
    return g;
}

static struct g *pop_shared(void)
{
    struct g *g;
    if (!atomic_load(&sched.runnable.length))
        return NULL;
    lock(&sched.lock);
    g = gqueue_pop(&sched.runnable);
    unlock(&sched.lock);
    return g;
}

/* Steals half of the work of `from`: returns the first, puts the rest into p's queue. */
static struct g *steal_from(struct p *p, struct p *from)
{
    struct queue loot = {0};
    struct g *g;
    unsigned n;
    if (from == p || !atomic_load(&from->runnable.length))
        return NULL;
    lock(&from->lock);
    n = (atomic_load(&from->runnable.length) + 1) / 2;
    while (n-- && (g = gqueue_pop(&from->runnable)))
        gqueue_push(&loot, g);
    unlock(&from->lock);
    g = gqueue_pop(&loot);
    lock(&p->lock);
    for (struct g *more; (more = gqueue_pop(&loot));)
        gqueue_push(&p->runnable, more);
    unlock(&p->lock);
    return g;
}

static struct g *steal(struct p *p)
{
    unsigned procs = atomic_load(&sched.procs);
    struct g *g = NULL;
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    for (unsigned i = 0; i < procs && !g; i++)
        g = steal_from(p, &sched.ps[((p->random >> 33) + i) % procs]);
    return g;
}

static struct g *find_work(struct p *p)
{
    struct g *g = atomic_load(&p->tick) % 61 == 0 ? pop_shared() : NULL;
    if (!g)
        g = pop_local(p);
    if (!g)
        g = pop_shared();
    if (!g)
        g = steal(p);
    if (g && work_anywhere())
        wake();
    return g;
}

/* MARK: Threads */

/* Waits until the thread gets a P; false: the scheduler stops. sched.lock is held. */
static bool wait_for_p(struct m *m)
{
    m->next_idle = sched.idle_ms;
    sched.idle_ms = m;
    unlock(&sched.lock);
    while (sem_wait(&m->wake) != 0)
        ;
    if (atomic_load(&sched.quit))
        return false;
    p_take(m, m->p);
    return true;
}

static bool get_p(struct m *m)
{
    struct p *p;
    lock(&sched.lock);
    p = work_anywhere() ? p_get_idle() : NULL;
    if (!p)
        return wait_for_p(m);
    unlock(&sched.lock);
    p_take(m, p);
    return true;
}

/* Releases the P: there is nothing to do, or the world stops. */
void give_up_p(struct m *m)
{
    struct p *p = m->p;
    trail_proc_stop(&m->trail);
    m->p = NULL;
    lock(&sched.lock);
    if (atomic_load(&sched.stopping))
        atomic_store(&p->status, P_STOPPED);
    else
        p_put_idle(p);
    unlock(&sched.lock);
}

static void run(struct m *m, struct g *g)
{
    void (*after)(void *);
    atomic_fetch_add(&m->p->tick, 1);
    atomic_store(&m->p->preempt, false);
    note(g, "start");
    trail_go_start_labelled(&m->trail, &g->trail, g->label);
    m->g = g;
    context_switch(&m->context, &g->context);
    after = m->after;
    m->after = NULL;
    if (after)
        after(m->after_argument);
    bury_ended();
}

static void run_thread(struct m *m)
{
    while (m->p || get_p(m)) {
        struct g *g = atomic_load(&sched.stopping) ? NULL : find_work(m->p);
        if (g)
            run(m, g);
        else
            give_up_p(m);
    }
}

void m_begin(struct m *m)
{
    trail_m_start(&m->trail);
    context_of_thread(&m->context);
    self = m;
}

void m_end(struct m *m)
{
    trail_m_exit(&m->trail);
    self = NULL;
}

static void *thread_main(void *argument)
{
    struct m *m = argument;
    m_begin(m);
    lock(&sched.lock);
    sched.starting = false;
    m->next = sched.ms;
    sched.ms = m;
    m->number = ++sched.next_number;
    unlock(&sched.lock);
    run_thread(m);
    m_end(m);
    return NULL;
}

/* Releases sched.lock. A new thread gets its P only when it runs, so that no P waits for it. */
static void start_thread(void)
{
    struct m *m = calloc(1, sizeof(*m));
    sched.starting = true;
    unlock(&sched.lock);
    if (!m || sem_init(&m->wake, 0, 0) != 0 ||
        pthread_create(&m->thread, NULL, thread_main, m) != 0)
        abort();
}

void wake(void)
{
    struct m *m;
    if (!atomic_load(&sched.idle_count))
        return;
    lock(&sched.lock);
    if (!sched.idle_ps || atomic_load(&sched.stopping) || (!sched.idle_ms && sched.starting)) {
        unlock(&sched.lock);
        return;
    }
    m = sched.idle_ms;
    if (!m) {
        start_thread();
        return;
    }
    sched.idle_ms = m->next_idle;
    m->p = p_get_idle();
    unlock(&sched.lock);
    sem_post(&m->wake);
}

/* MARK: Start, stop */

void sched_start(unsigned procs, uint64_t seed)
{
    sched.seed = seed;
    m_begin(&sched.main);
    lock(&sched.lock);
    atomic_store(&sched.procs, procs);
    for (int32_t i = 0; i < MAX_PROCS; i++) {
        sched.ps[i].random = seed + (uint64_t)i;
        trail_p_init(&sched.ps[i].trail, i);
        p_put_idle(&sched.ps[i]);
    }
    unlock(&sched.lock);
    trail_host_set(&host);
    trail_procs_change(&sched.main.trail, procs, 0);
    poll_start();
    if (pthread_create(&sched.monitor.thread, NULL, monitor_main, &sched.monitor) != 0)
        abort();
}

/* Creating a coroutine needs a P: the main thread gets one for this moment. */
void sched_run(void (*function)(void *), void *argument)
{
    struct m *m = &sched.main;
    struct p *p;
    lock(&sched.lock);
    p = p_get_idle();
    unlock(&sched.lock);
    p_take(m, p);
    go(function, argument);
    give_up_p(m);
    wake();
}

static void stop_threads(void)
{
    struct m *m, *next;
    bool starting = true;
    while (starting) {
        lock(&sched.lock);
        starting = sched.starting;
        unlock(&sched.lock);
        sched_yield();
    }
    for (m = sched.ms; m; m = next) {
        next = m->next;
        sem_post(&m->wake);
        pthread_join(m->thread, NULL);
        sem_destroy(&m->wake);
        free(m);
    }
}

void sched_stop(void)
{
    atomic_store(&sched.quit, true);
    pthread_join(sched.monitor.thread, NULL);
    poll_stop();
    stop_threads();
    coroutines_free();
    for (int i = 0; i < MAX_PROCS; i++)
        trail_p_fini(&sched.ps[i].trail);
    m_end(&sched.main);
}
