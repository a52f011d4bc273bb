/*
 * Annotations for ThreadSanitizer in a host that is built with it, while this library is not: the
 * hand-over of a buffer by m->busy_, and the publication of table entries by compare-and-swap. TSan
 * intercepts memcpy and memcmp in every library, and would report false races in the host (§2.14).
 * It sees mutexes and condition variables by itself.
 */
#pragma once

#include <stddef.h>

/* In TSan's runtime, which defines the names; NULL without it. */
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
