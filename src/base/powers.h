/* Powers: a histogram with a bar for each power of two, ready to be drawn. */
#pragma once

#include <trail/analyze.h>

/* `last` is less than `first` if the histogram is empty. */
struct powers {
    uint64_t counts[64];
    uint64_t most; /* the greatest count */
    int first, last;
};

static inline struct powers powers_of(const trail_histogram *histogram)
{
    struct powers powers = {.first = 63, .last = -1};
    uint64_t count;
    for (size_t at = 0, bucket; trail_histogram_next(histogram, &at, &bucket, &count);) {
        int64_t from, to;
        trail_histogram_bucket(bucket, &from, &to);
        int power = from > 0 ? 63 - __builtin_clzll((unsigned long long)from) : 0;
        powers.counts[power] += count;
        if (powers.counts[power] > powers.most)
            powers.most = powers.counts[power];
        powers.first = power < powers.first ? power : powers.first;
        powers.last = power;
    }
    return powers;
}

/* Returns the lower bound of a power: 0, 2, 4, ... */
static inline int64_t powers_begin(int power)
{
    return power > 0 && power < 63 ? INT64_C(1) << power : 0;
}
