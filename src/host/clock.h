/*
 * The tracer's clock: the CPU's counter if it is synchronized across CPUs and has a constant rate,
 * else CLOCK_MONOTONIC.
 *
 * v1 writes the counter, divided, and at the end its frequency, measured over the whole trace
 * (§1.2, §2.9). v2 writes units of 64 ns of CLOCK_MONOTONIC: its frequency is written at the
 * beginning, so the counter is scaled by a constant that is calibrated when the trace starts
 * (Appendix B 3).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define CLOCK_UNIT_NS        64
#define CLOCK_UNITS_A_SECOND (1000000000 / CLOCK_UNIT_NS)

/* The divisor of v1's ticks (§2.1). */
#if defined(__x86_64__) || defined(__i386__)
#define CLOCK_V1_DIVISOR 64
#else
#define CLOCK_V1_DIVISOR 16
#endif

struct clock {
    bool counter;               /* the CPU's counter is used, otherwise CLOCK_MONOTONIC */
    uint64_t (*injected)(void); /* tests: a clock in ns to use instead; `counter` is then false */
    uint64_t zero;              /* v2: counter at `base` */
    uint64_t base;              /* v2: in units */
    uint64_t scale;             /* v2: units per tick, << 32 */
};

/*
 * Reads the CPU's counter. It may be read slightly before earlier instructions complete: this is
 * harmless within a thread, and v2 orders events of different threads by sequence numbers. 16 ns;
 * 33 ns if ordered.
 */
static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
#else
    return clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Orders the next reading after all earlier loads of this thread. */
static inline void clock_order(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static inline uint64_t clock_ticks(const struct clock *clock)
{
    if (__builtin_expect(clock->counter, 1))
        return clock_counter();
    return clock->injected ? clock->injected() : clock_ns(CLOCK_MONOTONIC);
}

/*
 * v2: returns the time in units of 64 ns. A time before the calibration, from a CPU that lags,
 * becomes the calibration's.
 */
static inline uint64_t clock_units(const struct clock *clock)
{
    int64_t ticks = (int64_t)(clock_ticks(clock) - clock->zero);
    if (__builtin_expect(ticks < 0, 0))
        return clock->base;
    return clock->base + (uint64_t)(((unsigned __int128)(uint64_t)ticks * clock->scale) >> 32);
}

/* v1: returns the counter, divided. */
static inline uint64_t clock_v1_ticks(const struct clock *clock)
{
    return clock_ticks(clock) / CLOCK_V1_DIVISOR;
}

/* Whether the CPU's counter is the same on all CPUs and has a constant rate, even in deep sleep. */
bool clock_counter_is_invariant(void);

/* Selects the counter and takes the first pair of readings; once per process. */
void clock_init(struct clock *clock);

/* Calibrates against CLOCK_MONOTONIC. Waits up to 5 ms if the process is younger than that. */
void clock_calibrate(struct clock *clock);

/* Reads the counter and CLOCK_MONOTONIC, as close together as possible. */
void clock_pair(const struct clock *clock, uint64_t *ticks, uint64_t *ns);
