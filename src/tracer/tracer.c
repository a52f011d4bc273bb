/* The one instance of the tracer: its initialization, fork and exit. */
#include "tracer/tracer.h"

#include "host/annotations.h"

#include <string.h>

#include "tracer/barrier.h"
#include "tracer/control.h"
#include "tracer/read.h"
#include "tracer/sample.h"

struct tracer tracer;
uint32_t trail_tracing_;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_locks(void)
{
    pthread_mutex_t *mutexes[] = {&tracer.control, &tracer.threads,   &tracer.no_proc,
                                  &tracer.gc,      &tracer.switching, &tracer.lock};
    pthread_condattr_t attr;
    for (size_t i = 0; i < sizeof mutexes / sizeof mutexes[0]; i++)
        pthread_mutex_init(mutexes[i], NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&tracer.room, &attr);
    pthread_cond_init(&tracer.changed, &attr);
    pthread_condattr_destroy(&attr);
}

/* While no trace is on, annotations may go to a recorder that `trail record` has loaded. */
uint32_t tracing_bits(bool on)
{
    return (on || annotations ? 1u : 0u) | (tracer.fence ? 2u : 0u);
}

/*
 * The child has one thread and none of the parent's consumers: it starts as if nothing had been
 * recorded. Locks and buffers that the parent's threads held are abandoned.
 */
static void after_fork(void)
{
    trail_tracing_ = 0;
    tracer.generation = 0;
    tracer.active = tracer.failed = tracer.urgent = false;
    init_locks();
    tracer.fence = !barrier_init();
    trail_tracing_ = tracing_bits(false);
    tracer.free = tracer.reserve = NULL;
    tracer.buffers = tracer.reserved = tracer.pendings = 0;
    memset(&tracer.no_proc_writer, 0, sizeof tracer.no_proc_writer);
    sample_after_fork();
    read_after_fork();
    threads_after_fork();
}

static void init(void)
{
    init_locks();
    tracer.fence = !barrier_init();
    trail_tracing_ = tracing_bits(false);
    clock_init(&tracer.clock);
    pthread_key_create(&tracer.thread_exits, thread_exited);
    pthread_atfork(NULL, NULL, after_fork);
}

void tracer_init(void)
{
    pthread_once(&once, init);
}

void trail_host_set(const trail_host *host)
{
    tracer_init();
    pthread_mutex_lock(&tracer.control);
    tracer.host = host;
    pthread_mutex_unlock(&tracer.control);
}

void trail_stats_get(trail_stats *stats)
{
    const uint64_t *from = (const uint64_t *)&tracer.stats;
    uint64_t *to = (uint64_t *)stats;
    pthread_mutex_lock(&tracer.lock);
    /* Some counters are incremented without the lock. */
    for (size_t i = 0; i < sizeof *stats / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    pthread_mutex_unlock(&tracer.lock);
}

/* At exit() a trace to a descriptor or sink is completed. */
__attribute__((destructor)) static void at_exit(void)
{
    read_at_exit();
}
