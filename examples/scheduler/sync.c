/*
 * Semaphore, mutex, condition variable, group. All the same way: under the lock of the thing, take
 * it or get in line; park() releases that lock when the coroutine is off its stack. A waker takes a
 * coroutine out of the line under the lock, so that none is woken twice.
 */
#include "scheduler.h"

void sema_wait(struct sema *s, trail_block_reason reason)
{
    lock(&s->lock);
    if (s->count > 0) {
        s->count--;
        unlock(&s->lock);
        return;
    }
    gqueue_push(&s->waiting, g_self());
    park(reason, false, unlock_after, &s->lock);
}

void sema_post(struct sema *s)
{
    struct g *g;
    lock(&s->lock);
    g = gqueue_pop(&s->waiting);
    if (!g)
        s->count++;
    unlock(&s->lock);
    if (g)
        ready(g);
}

/* All leave the line at once: a coroutine that waits again afterwards is not woken too. */
unsigned wake_all(struct lock *l, struct queue *waiting)
{
    struct queue all = {0};
    unsigned n = 0;
    struct g *g;
    lock(l);
    while ((g = gqueue_pop(waiting)))
        gqueue_push(&all, g);
    unlock(l);
    for (; (g = gqueue_pop(&all)); n++)
        ready(g);
    return n;
}

void mutex_lock(struct mutex *m)
{
    for (bool woken = false;; woken = true) {
        lock(&m->lock);
        if (!m->held)
            break;
        if (woken)
            atomic_fetch_add(&m->in_vain, 1);
        gqueue_push(&m->waiting, g_self());
        park(TRAIL_BLOCK_SYNC, woken, unlock_after, &m->lock);
    }
    m->held = true;
    unlock(&m->lock);
}

void mutex_unlock(struct mutex *m)
{
    struct g *g;
    lock(&m->lock);
    m->held = false;
    g = gqueue_pop(&m->waiting);
    unlock(&m->lock);
    if (g)
        ready(g);
}

void cond_wait(struct cond *c, struct mutex *m)
{
    lock(&c->lock);
    mutex_unlock(m);
    gqueue_push(&c->waiting, g_self());
    park(TRAIL_BLOCK_COND, false, unlock_after, &c->lock);
    mutex_lock(m);
}

void cond_signal(struct cond *c)
{
    struct g *g;
    lock(&c->lock);
    g = gqueue_pop(&c->waiting);
    unlock(&c->lock);
    if (g)
        ready(g);
}

void cond_broadcast(struct cond *c)
{
    wake_all(&c->lock, &c->waiting);
}

void group_add(struct group *g, unsigned n)
{
    mutex_lock(&g->mutex);
    g->count += n;
    mutex_unlock(&g->mutex);
}

/* The lock is held to the end: the waiter may free the group as soon as it has the lock. */
void group_done(struct group *g)
{
    mutex_lock(&g->mutex);
    if (--g->count == 0)
        cond_broadcast(&g->cond);
    mutex_unlock(&g->mutex);
}

void group_wait(struct group *g)
{
    mutex_lock(&g->mutex);
    while (g->count > 0)
        cond_wait(&g->cond, &g->mutex);
    mutex_unlock(&g->mutex);
}
