/*
 * Stores the coarse clock of areas (shm/shm.h) from a thread of its own, so that it is on time. It
 * runs only while the clock is wanted: a thread that wakes a thousand times a second takes some
 * percent of a CPU from the program.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct coarse_clock {
    /* Held during `tick`, and by other threads while they change what `tick` reads. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool running; /* the thread has been started */
    bool wanted, ending;
    void (*tick)(void *context,
                 bool going); /* stores the clock; with `going` false, turns it off */
    void *context;
};

void coarse_clock_init(struct coarse_clock *clock, void (*tick)(void *context, bool going),
                       void *context);
/* Without threads there is no coarse clock. */
void coarse_clock_want(struct coarse_clock *clock, bool wanted);
void coarse_clock_stop(struct coarse_clock *clock);
