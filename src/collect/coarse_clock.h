/*
 * Keeps the coarse clock of areas (shm/shm.h) going, by a thread of its own, whatever is done otherwise. Only while
 * it is wanted: a thread that wakes a thousand times a second takes some percent of a CPU from the program.
 */
#ifndef TRAIL_COLLECT_COARSE_CLOCK_H
#define TRAIL_COLLECT_COARSE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>

struct coarse_clock {
    pthread_mutex_t lock; /* held in `tick`: whoever changes what that looks at takes it */
    pthread_cond_t changed;
    pthread_t thread;
    bool running; /* there is the thread, since it was first wanted */
    bool wanted, ending;
    void (*tick)(void *context, bool going); /* stores the clock; not going: that there is none */
    void *context;
};

void coarse_clock_init(struct coarse_clock *clock, void (*tick)(void *context, bool going),
                       void *context);
/* Without threads nothing ticks. */
void coarse_clock_want(struct coarse_clock *clock, bool wanted);
void coarse_clock_stop(struct coarse_clock *clock);

#endif
