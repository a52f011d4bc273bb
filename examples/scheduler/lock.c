/*
 * Used everywhere here: a lock that belongs to no thread, so that a coroutine may take it and its
 * thread release it from another stack; and queues of coroutines.
 */
#include "scheduler.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0: free; 1: taken; 2: taken, and a thread waits. */
void lock(struct lock *l)
{
    uint32_t free = 0;
    if (atomic_compare_exchange_strong(&l->word, &free, 1))
        return;
    while (atomic_exchange(&l->word, 2) != 0)
        syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void unlock(struct lock *l)
{
    if (atomic_exchange(&l->word, 0) == 2)
        syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void gqueue_push(struct queue *q, struct g *g)
{
    g->next = NULL;
    if (q->tail)
        q->tail->next = g;
    else
        q->head = g;
    q->tail = g;
    atomic_fetch_add(&q->length, 1);
}

struct g *gqueue_pop(struct queue *q)
{
    struct g *g = q->head;
    if (!g)
        return NULL;
    q->head = g->next;
    if (!q->head)
        q->tail = NULL;
    g->next = NULL;
    atomic_fetch_sub(&q->length, 1);
    return g;
}
