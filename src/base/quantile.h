/*
 * Quantiles of sorted values, by one rule for all output: the least value that at least the share q
 * of all values do not exceed (nearest rank; quantile_disc in SQL). The median of an even number is
 * the smaller of the two in the middle.
 */
#pragma once

#include <stdint.h>

/* Returns the index of the quantile `q` (0 to 1) among `count` sorted values; 0 of none. */
static inline uint64_t quantile_index(double q, uint64_t count)
{
    /* 0.07 * 100 is more than 7 in floating point, but the seventh of a hundred is meant. */
    double values = q * (double)count * (1 - 1e-12);
    if (!(values > 0) || count == 0)
        return 0;
    uint64_t index = values < (double)count ? (uint64_t)values : count - 1;
    return index < count ? index : count - 1;
}
