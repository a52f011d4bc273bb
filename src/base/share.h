/*
 * Shares of a whole, as parts of 1 and in percent. Of nothing they are 0.
 */
#ifndef TRAIL_BASE_SHARE_H
#define TRAIL_BASE_SHARE_H

#include <stdint.h>

static inline double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Not 100 times the above: that is rounded twice, and prints another digit now and then. */
static inline double percent_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

#endif
