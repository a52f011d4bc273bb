/*
 * For tests under load, with a library that calls the test at the points of src/tracer/pause.h:
 * threads often yield or sleep there, so that other threads run between any two steps.
 */
#include "tracer/pause.h"

#include <sched.h>
#include <stdint.h>
#include <time.h>

#include "tracer/tracer.h"
#include "world.h"

/* Returns one in how many calls pauses. While a trace is on there are many sections, all in the
 * same generation. */
static unsigned rarity(enum pause at)
{
    switch (at) {
    case PAUSE_HELD:
    case PAUSE_LISTED:
    case PAUSE_SWITCHES:
    case PAUSE_SWITCHED:
        return 1;
    case PAUSE_WAITS:
        return 2;
    default:
        return trace_is_on() ? 64 : 3;
    }
}

void tracer_pause(enum pause at)
{
    static __thread uint64_t random;
    if (!random)
        random = (uint64_t)(uintptr_t)&random * UINT64_C(0x9e3779b97f4a7c15) | 1;
    if (random_below(&random, rarity(at)))
        return;
    if (random_below(&random, 3))
        sched_yield();
    else
        (void)nanosleep(&(struct timespec){0, (long)random_below(&random, 200000)}, NULL);
}
