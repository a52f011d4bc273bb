/* Selects and calibrates the clock: see clock.h. */
#include "host/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Minimum time between the two readings of a calibration, and so the longest wait in the first. */
#define CALIBRATE_NS 5000000

static uint64_t first_ticks, first_ns;

bool clock_counter_is_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#elif defined(__aarch64__)
    return true;
#else
    return false;
#endif
}

void clock_pair(const struct clock *clock, uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    /* Of several pairs, the one whose readings are closest together was not interrupted. */
    for (int i = 0; i < 8; i++) {
        uint64_t before = clock_ticks(clock), now = clock_ns(CLOCK_MONOTONIC);
        uint64_t width = clock_ticks(clock) - before;
        if (width < best) {
            best = width;
            *ticks = before + width / 2;
            *ns = now;
        }
    }
}

void clock_init(struct clock *clock)
{
    clock->counter = clock_counter_is_invariant();
    clock_pair(clock, &first_ticks, &first_ns);
}

void clock_calibrate(struct clock *clock)
{
    uint64_t ticks, ns;
    if (clock->injected || !clock->counter) {
        clock->zero = 0;
        clock->base = 0;
        clock->scale = ((uint64_t)1 << 32) / CLOCK_UNIT_NS;
        return;
    }
    clock_pair(clock, &ticks, &ns);
    if (ns - first_ns < CALIBRATE_NS) {
        struct timespec rest = {0, (long)(CALIBRATE_NS - (ns - first_ns))};
        nanosleep(&rest, NULL);
        clock_pair(clock, &ticks, &ns);
    }
    if (ticks <= first_ticks) {
        /* The counter stands still or runs backwards. */
        clock->counter = false;
        clock_calibrate(clock);
        return;
    }
    clock->zero = ticks;
    clock->base = ns / CLOCK_UNIT_NS;
    clock->scale = (uint64_t)(((unsigned __int128)(ns - first_ns) << 32) /
                              ((unsigned __int128)(ticks - first_ticks) * CLOCK_UNIT_NS));
}
