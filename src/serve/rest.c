/* Pauses the reading of a trace while a page opens. */
#include "serve/rest.h"

#include <time.h>

#include "base/clock.h"

/* The least time between two pauses, so that a client that requests pages constantly does not stop
 * the reading. */
#define AGAIN_NS INT64_C(10000000000)

/* How often the end of the pause is checked. */
#define LOOK_NS 2000000

void rest_begin(struct rest *rest, int ms)
{
    int64_t now = now_ns(), began = __atomic_load_n(&rest->began, __ATOMIC_RELAXED);
    if (began && now - began < AGAIN_NS)
        return;
    __atomic_store_n(&rest->began, now, __ATOMIC_RELAXED);
    __atomic_store_n(&rest->until, now + ms * INT64_C(1000000), __ATOMIC_RELAXED);
}

void rest_end(struct rest *rest)
{
    __atomic_store_n(&rest->until, 0, __ATOMIC_RELAXED);
}

static bool is_resting(const struct rest *rest)
{
    int64_t until = __atomic_load_n(&rest->until, __ATOMIC_RELAXED);
    return until != 0 && now_ns() < until;
}

/* Traces of v1 can be drawn only once everything has been read. */
static bool draws(struct model *model)
{
    struct model_status status;
    model_get_status(model, &status);
    return !status.waits && status.lane_counts[TRAIL_LANE_GOROUTINE] > 0;
}

void rest_before_reading(const struct rest *rest, struct model *model)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    if (!is_resting(rest) || !draws(model))
        return;
    while (is_resting(rest))
        (void)nanosleep(&look, NULL);
}
