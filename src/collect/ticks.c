/* Converts readings of the program's clock: see ticks.h. */
#include "collect/ticks.h"

#include <string.h>

/* The shortest time between the first two pairs, and between the others. */
#define FIRST_NS 500000
#define APART_NS 50000000

static void add(struct ticks *ticks, uint64_t at, uint64_t ns)
{
    if (ticks->count == TICKS_ANCHORS) {
        memmove(ticks->anchors, ticks->anchors + 1, (TICKS_ANCHORS - 1) * sizeof ticks->anchors[0]);
        ticks->count--;
    }
    if (ticks->count) {
        struct ticks_anchor *last = &ticks->anchors[ticks->count - 1];
        last->ns_per_tick = (double)(ns - last->ns) / (double)(at - last->ticks);
    }
    ticks->anchors[ticks->count] = (struct ticks_anchor){
        at, ns, ticks->count ? ticks->anchors[ticks->count - 1].ns_per_tick : 1.0};
    ticks->count++;
}

static void take_pair(struct ticks *ticks, uint64_t apart_ns)
{
    const struct ticks_anchor *last = &ticks->anchors[ticks->count - 1];
    uint64_t at, ns;
    if (!ticks->clock.counter)
        return;
    clock_pair(&ticks->clock, &at, &ns);
    if (ns >= last->ns + apart_ns && at > last->ticks)
        add(ticks, at, ns);
}

void ticks_init(struct ticks *ticks)
{
    uint64_t at, ns;
    memset(ticks, 0, sizeof *ticks);
    clock_init(&ticks->clock);
    clock_pair(&ticks->clock, &at, &ns);
    add(ticks, at, ns);
}

void ticks_settle(struct ticks *ticks)
{
    uint64_t passed = clock_ns(CLOCK_MONOTONIC) - ticks->anchors[0].ns;
    if (ticks->clock.counter && passed < FIRST_NS)
        nanosleep(&(struct timespec){0, (long)(FIRST_NS - passed)}, NULL);
    take_pair(ticks, 0);
}

void ticks_step(struct ticks *ticks)
{
    take_pair(ticks, APART_NS);
}

void ticks_end(struct ticks *ticks)
{
    take_pair(ticks, FIRST_NS);
}

/* Clamps the result to 64 bits: the number to convert may be anything. */
static int64_t rounded(double value)
{
    const double most = 4e18;
    return (int64_t)(value > most ? most : value < -most ? -most : value);
}

uint64_t ticks_now(const struct ticks *ticks)
{
    return clock_ticks(&ticks->clock);
}

int64_t ticks_to_ns(const struct ticks *ticks, uint64_t at)
{
    size_t i = ticks->count - 1;
    while (i > 0 && at < ticks->anchors[i].ticks)
        i--;
    double beyond = (double)(int64_t)(at - ticks->anchors[i].ticks) * ticks->anchors[i].ns_per_tick;
    return (int64_t)(ticks->anchors[i].ns + (uint64_t)rounded(beyond));
}

uint64_t ticks_from_ns(const struct ticks *ticks, int64_t ns)
{
    size_t i = ticks->count - 1;
    while (i > 0 && ns < (int64_t)ticks->anchors[i].ns)
        i--;
    double beyond =
        (double)(int64_t)((uint64_t)ns - ticks->anchors[i].ns) / ticks->anchors[i].ns_per_tick;
    return ticks->anchors[i].ticks + (uint64_t)rounded(beyond);
}

int64_t ticks_to_span(const struct ticks *ticks, uint64_t span)
{
    return rounded((double)span * ticks->anchors[0].ns_per_tick);
}

uint64_t ticks_of_ns(const struct ticks *ticks, uint64_t ns)
{
    uint64_t span = (uint64_t)rounded((double)ns / ticks->anchors[0].ns_per_tick);
    return span ? span : 1;
}
