/*
 * Converts floating-point numbers to integers. C leaves the conversion of out-of-range values
 * undefined (C11 6.3.1.4), and damaged traces yield NaN and such values: all conversions use this.
 */
#pragma once

#include <stdint.h>

/* Rounds towards zero; out-of-range values give the nearest integer, NaN gives 0. */
static inline int64_t whole_of(double value)
{
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value < -0x1p63)
        return INT64_MIN;
    return value == value ? (int64_t)value : 0;
}

/* The same, limited to [least, most]. */
static inline int64_t whole_within(double value, int64_t least, int64_t most)
{
    int64_t whole = whole_of(value);
    return whole < least ? least : whole > most ? most : whole;
}
