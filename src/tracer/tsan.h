/*
 * What ThreadSanitizer cannot see of this library when it is not built with it and its host is: the hand-over
 * of a buffer by m->busy_ and the publication in a table by compare-and-swap. TSan watches the memcpy and
 * memcmp of every library, so that without this a host would be shown races that are none (§2.14). Mutexes
 * and condition variables it sees by itself.
 */
#ifndef TRAIL_TRACER_TSAN_H
#define TRAIL_TRACER_TSAN_H

#include <stddef.h>

/* Of TSan's runtime, which names them so; NULL where there is none. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier) */

static inline void tsan_acquire(void *address)
{
    if (__builtin_expect(__tsan_acquire != NULL, 0))
        __tsan_acquire(address);
}

static inline void tsan_release(void *address)
{
    if (__builtin_expect(__tsan_release != NULL, 0))
        __tsan_release(address);
}

#endif
