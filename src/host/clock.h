/*
 * The tracer's clock: the CPU's counter where it is one for all CPUs and does not change its rate, else
 * CLOCK_MONOTONIC.
 *
 * v1 writes the counter, divided, and its frequency at the end, measured over the whole trace (§1.2,
 * §2.9). v2 writes units of 64 ns of CLOCK_MONOTONIC: its frequency comes before the end, so that the
 * counter is scaled by one constant that is calibrated when the trace starts (Appendix B 3).
 */
#ifndef TRAIL_HOST_CLOCK_H
#define TRAIL_HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define CLOCK_UNIT_NS        64
#define CLOCK_UNITS_A_SECOND (1000000000 / CLOCK_UNIT_NS)

/* The divisor of v1's ticks (§2.1). */
#if defined(__x86_64__) || defined(__i386__)
#define CLOCK_V1_DIVISOR 64
#else
#define CLOCK_V1_DIVISOR 16
#endif

struct clock {
    bool counter;               /* the CPU's counter is used; else CLOCK_MONOTONIC */
    uint64_t (*injected)(void); /* tests: instead of both; ns. `counter` is false then */
    uint64_t zero;              /* v2: counter at `base` */
    uint64_t base;              /* v2: in units */
    uint64_t scale;             /* v2: units a tick, << 32 */
};

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * The CPU's counter. It may be read a little before what precedes it has happened: within a thread that does
 * not matter, and v2 orders events of different threads by sequence numbers. 16 ns; ordered, 33 ns.
 */
static inline uint64_t clock_counter(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
#else
    return clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Keeps the next reading behind what this thread has read from others. */
static inline void clock_order(void)
{
#if defined(__x86_64__)
    _mm_lfence();
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

/* v2: the time in units of 64 ns. What lies before the calibration (a CPU behind) is its moment. */
static inline uint64_t clock_units(const struct clock *clock)
{
    int64_t ticks = (int64_t)(clock_ticks(clock) - clock->zero);
    if (__builtin_expect(ticks < 0, 0))
        return clock->base;
    return clock->base + (uint64_t)(((unsigned __int128)(uint64_t)ticks * clock->scale) >> 32);
}

/* v1: the counter, divided. */
static inline uint64_t clock_v1_ticks(const struct clock *clock)
{
    return clock_ticks(clock) / CLOCK_V1_DIVISOR;
}

/* Whether the CPU's counter is one for all CPUs, of constant rate, also in deep sleep. */
bool clock_counter_is_invariant(void);

/* Chooses the counter and takes the first pair of readings; once a process. */
void clock_init(struct clock *clock);

/* Calibrates against CLOCK_MONOTONIC; needs at most 5 ms, once, if the process is younger than that. */
void clock_calibrate(struct clock *clock);

/* Reads counter and CLOCK_MONOTONIC as nearly at once as can be. */
void clock_pair(const struct clock *clock, uint64_t *ticks, uint64_t *ns);

#endif
