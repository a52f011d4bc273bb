/*
 * What the parser wants of threads, for WebAssembly, where there is one: nobody else is ever in a
 * mutex.
 */
#ifndef TRAIL_WASM_PTHREAD_H
#define TRAIL_WASM_PTHREAD_H

#include <sys/types.h>

static inline int pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes)
{
    (void)mutex, (void)attributes;
    return 0;
}

static inline int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

static inline int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)mutex;
    return 0;
}

#endif
