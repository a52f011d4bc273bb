/* Orders for qsort(3): negative, 0 or positive if x comes before y, is equal to it or comes
 * after. */
#pragma once

#include <stdint.h>

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

/* For int64_t, ascending. */
static inline int order_numbers(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return ORDER(*x, *y);
}
