/* Adds up what spans of OTLP waited for: see otlp_waits.h. */
#include "export/otlp_waits.h"

#include <stdlib.h>

#include "base/order.h"

static struct otlp_wait *shortest(struct otlp_times *times)
{
    struct otlp_wait *found = &times->waits[0];
    for (size_t i = 1; i < times->count; i++)
        if (times->waits[i].ns < found->ns)
            found = &times->waits[i];
    return found;
}

void otlp_times_keep(struct otlp_times *times, const struct otlp_wait *wait)
{
    if (times->count < OTLP_WAITS) {
        times->waits[times->count++] = *wait;
        return;
    }
    struct otlp_wait *least = shortest(times);
    times->dropped++;
    if (wait->ns > least->ns)
        *least = *wait;
}

static int by_begin(const void *a, const void *b)
{
    const struct otlp_wait *x = a, *y = b;
    return ORDER(x->begin_ns, y->begin_ns);
}

void otlp_times_sort(struct otlp_times *times)
{
    if (times->count > 1)
        qsort(times->waits, times->count, sizeof *times->waits, by_begin);
}
