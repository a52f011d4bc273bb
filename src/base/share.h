/* Shares of a whole, as fractions of 1 and in percent; 0 if the whole is 0. */
#pragma once

#include <stdint.h>

/* Less would be shown as "0.0 %". */
#define SHARE_SHOWN 0.0005

static inline double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Not 100 * share_of: that would round twice, and sometimes print another digit. */
static inline double percent_of(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}
