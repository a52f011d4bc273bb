/*
 * Whole numbers of real ones. C leaves open what a conversion gives that does not fit (C11 6.3.1.4),
 * and a damaged trace makes shares that are no numbers and lengths beyond all: they come through
 * here.
 */
#ifndef TRAIL_BASE_WHOLE_H
#define TRAIL_BASE_WHOLE_H

#include <stdint.h>

/* Towards zero; the nearest that there is of what is beyond; 0 of what is no number. */
static inline int64_t whole_of(double value)
{
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value < -0x1p63)
        return INT64_MIN;
    return value == value ? (int64_t)value : 0;
}

/* The same between `least` and `most`. */
static inline int64_t whole_within(double value, int64_t least, int64_t most)
{
    int64_t whole = whole_of(value);
    return whole < least ? least : whole > most ? most : whole;
}

#endif
