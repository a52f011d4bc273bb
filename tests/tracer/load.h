/*
 * A host that puts the tracer under load: announced threads that create, run, block, wake, switch
 * and end goroutines as fast as they can, and unannounced threads that annotate. Unlike in world.h,
 * where threads take turns, the order is not known, only the counts.
 */
#pragma once

#include <stdint.h>

/* What the threads have done since load_begin. */
struct load_counts {
    uint64_t steps;
    uint64_t tasks; /* calls of trail_task_begin that returned an ID: something was recorded */
    uint64_t logs;  /* calls of trail_log, recorded or not */
};

/* Starts threads of both kinds; they are the tracer's host until load_end. Nothing is recorded when
 * either is called. */
void load_begin(unsigned announced, unsigned unannounced);
void load_end(void);

struct load_counts load_counts(void);

/* Returns when every thread has made `steps` more steps. */
void load_wait(uint64_t steps);

/* While paused, no thread is in a call or begins one. */
void load_pause(void);
void load_resume(void);
