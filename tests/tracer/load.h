/*
 * A host of the tracer under load: announced threads that create, run, block, wake, switch and end
 * goroutines as fast as they can, and threads that were not announced, which annotate. Unlike world.h, where
 * threads take turns, nothing here is in a known order: what is known are counts.
 */
#ifndef TESTS_RECORD_LOAD_H
#define TESTS_RECORD_LOAD_H

#include <stdint.h>

/* What the threads have done since load_begin. */
struct load_counts {
    uint64_t steps;
    uint64_t tasks; /* trail_task_begin that gave an ID: something was recorded */
    uint64_t logs;  /* calls of trail_log, recorded or not */
};

/* Starts threads of both sorts; they are the tracer's host until load_end. Nothing is recorded at either. */
void load_begin(unsigned announced, unsigned unannounced);
void load_end(void);

struct load_counts load_counts(void);

/* Returns when every thread has gone `steps` further. */
void load_wait(uint64_t steps);

/* While held, no thread is in a call, nor begins one. */
void load_pause(void);
void load_resume(void);

#endif
