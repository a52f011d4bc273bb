/*
 * A fair lock: a waiting thread gets it before the thread that has just released it, which a mutex
 * does not guarantee. At most one thread waits for `lock`; the others wait for `next`.
 */
#ifndef TRAIL_SERVE_TURNS_H
#define TRAIL_SERVE_TURNS_H

#include <pthread.h>

struct turns {
    pthread_mutex_t next, lock;
};

static inline void turns_init(struct turns *turns)
{
    (void)pthread_mutex_init(&turns->next, NULL);
    (void)pthread_mutex_init(&turns->lock, NULL);
}

static inline void turns_fini(struct turns *turns)
{
    (void)pthread_mutex_destroy(&turns->lock);
    (void)pthread_mutex_destroy(&turns->next);
}

static inline void turns_take(struct turns *turns)
{
    (void)pthread_mutex_lock(&turns->next);
    (void)pthread_mutex_lock(&turns->lock);
    (void)pthread_mutex_unlock(&turns->next);
}

static inline void turns_give(struct turns *turns)
{
    (void)pthread_mutex_unlock(&turns->lock);
}

#endif
