/* Clocks: readings in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Returns the monotonic clock, for differences. */
static inline int64_t now_ns(void)
{
    return (int64_t)clock_ns(CLOCK_MONOTONIC);
}
