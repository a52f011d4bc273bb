/* A thread that stores the time in all areas about once a millisecond: see coarse_clock.h. */
#include "collect/coarse_clock.h"

#include <time.h>

#include "collect/collect.h"

static void *run(void *context)
{
    const struct timespec step = {0, AREA_TICK_NS};
    struct coarse_clock *clock = context;
    pthread_mutex_lock(&clock->lock);
    while (!clock->ending) {
        clock->tick(clock->context, clock->wanted);
        if (!clock->wanted) {
            pthread_cond_wait(&clock->changed, &clock->lock);
            continue;
        }
        pthread_mutex_unlock(&clock->lock);
        (void)nanosleep(&step, NULL);
        pthread_mutex_lock(&clock->lock);
    }
    pthread_mutex_unlock(&clock->lock);
    return NULL;
}

void coarse_clock_init(struct coarse_clock *clock, void (*tick)(void *context, bool going),
                       void *context)
{
    *clock = (struct coarse_clock){.tick = tick, .context = context};
    pthread_mutex_init(&clock->lock, NULL);
    pthread_cond_init(&clock->changed, NULL);
}

static void change(struct coarse_clock *clock, bool *what, bool value)
{
    pthread_mutex_lock(&clock->lock);
    *what = value;
    pthread_cond_signal(&clock->changed);
    pthread_mutex_unlock(&clock->lock);
}

void coarse_clock_want(struct coarse_clock *clock, bool wanted)
{
    if (wanted == clock->wanted)
        return;
    change(clock, &clock->wanted, wanted);
    if (!clock->running)
        clock->running = pthread_create(&clock->thread, NULL, run, clock) == 0;
}

void coarse_clock_stop(struct coarse_clock *clock)
{
    if (!clock->running)
        return;
    change(clock, &clock->ending, true);
    pthread_join(clock->thread, NULL);
    clock->running = false;
}
