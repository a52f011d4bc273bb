/* A tracer host with one thread and one P; the test owns the goroutines. */
#pragma once

#include "stress.h"

static trail_m m;
static trail_p p;

/* Defined by the test. */
static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg);

/* The only thread starts and stops the world. */
static inline void nothing(void *context)
{
    (void)context;
}

/* Starts the P; there is no goroutine yet. */
static inline void thread_begin(void)
{
    static const trail_host host = {
        .each_goroutine = each_goroutine, .stop_world = nothing, .start_world = nothing};
    alone(true);
    trail_host_set(&host);
    trail_m_start(&m);
    trail_p_init(&p, 0);
    trail_proc_start(&m, &p);
}

/* Ends the running goroutine, and the thread. */
static inline void program_end(void)
{
    trail_go_end(&m);
    trail_proc_stop(&m);
    trail_p_fini(&p);
    trail_m_exit(&m);
    trail_host_set(NULL);
    alone(false);
}
