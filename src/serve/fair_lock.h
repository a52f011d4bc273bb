/*
 * A fair lock: a waiting thread gets it before the thread that has just released it, which a mutex
 * does not guarantee. At most one thread waits for `lock`; the others wait for `next`.
 */
#pragma once

#include <pthread.h>

struct fair_lock {
    pthread_mutex_t next, lock;
};

static inline void fair_lock_init(struct fair_lock *lock)
{
    (void)pthread_mutex_init(&lock->next, NULL);
    (void)pthread_mutex_init(&lock->lock, NULL);
}

static inline void fair_lock_fini(struct fair_lock *lock)
{
    (void)pthread_mutex_destroy(&lock->lock);
    (void)pthread_mutex_destroy(&lock->next);
}

static inline void fair_lock_take(struct fair_lock *lock)
{
    (void)pthread_mutex_lock(&lock->next);
    (void)pthread_mutex_lock(&lock->lock);
    (void)pthread_mutex_unlock(&lock->next);
}

static inline void fair_lock_give(struct fair_lock *lock)
{
    (void)pthread_mutex_unlock(&lock->lock);
}
