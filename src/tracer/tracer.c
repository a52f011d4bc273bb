/* The single instance of the tracer: initialization, fork and exit. */
#include "tracer/tracer.h"

#include "host/annotations.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/barrier.h"
#include "tracer/read.h"
#include "tracer/regions.h"
#include "tracer/sample.h"
#include "tracer/slow.h"

struct tracer tracer;
uint32_t trail_tracing_;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_locks(void)
{
    pthread_mutex_t *mutexes[] = {&tracer.control, &tracer.ps_lock,   &tracer.no_proc,
                                  &tracer.gc,      &tracer.switching, &tracer.lock};
    pthread_mutexattr_t recursive;
    pthread_condattr_t attr;
    for (size_t i = 0; i < sizeof mutexes / sizeof mutexes[0]; i++)
        pthread_mutex_init(mutexes[i], NULL);
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&tracer.walk, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&tracer.room, &attr);
    pthread_cond_init(&tracer.changed, &attr);
    pthread_condattr_destroy(&attr);
}

/* While no trace is on, annotations may go to a recorder that `trail record` has loaded. */
uint32_t tracing_bits(bool on)
{
    return (on || annotations ? 1u : 0u) | (tracer.fence ? 2u : 0u) | (tracer.held ? 4u : 0u);
}

static void before_fork(void)
{
    pthread_mutex_lock(&tracer.walk);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&tracer.walk);
}

/*
 * The child has one thread and none of the parent's consumers. It starts as if nothing had been
 * recorded; locks and buffers held by the parent's threads are abandoned.
 */
static void after_fork(void)
{
    trail_tracing_ = 0;
    tracer.generation = 0;
    tracer.held = false;
    tracer.active = tracer.failed = tracer.urgent = false;
    init_locks();
    tracer.fence = !barrier_init();
    trail_tracing_ = tracing_bits(false);
    memset(tracer.free, 0, sizeof tracer.free);
    tracer.reserve = NULL;
    tracer.queued = tracer.free_bytes = tracer.slab_left = tracer.pendings = 0;
    tracer.reserved = tracer.to_reserve = 0;
    memset(&tracer.no_proc_writer, 0, sizeof tracer.no_proc_writer);
    sample_after_fork();
    read_after_fork();
    regions_after_fork();
    slow_after_fork();
    threads_after_fork();
}

/*
 * Keeps the library, or the plugin that contains it, loaded after dlclose: thread destructors, fork
 * and signal handlers, and the library's own thread have code in it. The shared library is also
 * linked with -z nodelete; this is for the archive.
 */
static void stay_loaded(void)
{
    struct link_map *map = NULL;
    Dl_info info;
    if (dladdr1(&tracer, &info, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name &&
        *map->l_name)
        (void)dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void init(void)
{
    stay_loaded();
    init_locks();
    tracer.fence = !barrier_init();
    trail_tracing_ = tracing_bits(false);
    clock_init(&tracer.clock);
    pthread_key_create(&tracer.thread_exits, thread_exited);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork);
}

void tracer_init(void)
{
    pthread_once(&once, init);
}

void trail_host_set(const trail_host *host)
{
    tracer_init();
    pthread_mutex_lock(&tracer.control);
    tracer.host = host ? *host : (trail_host){0};
    pthread_mutex_unlock(&tracer.control);
}

const trail_host *live_host(void)
{
    static const trail_host none;
    return is_exiting() ? &none : &tracer.host;
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

/*
 * MARK: Exit
 *
 * exit() destroys the host's objects (in C++, those with static storage) in an unknown order, while
 * the library's thread may still end generations. A trace therefore ends in two steps: a handler of
 * atexit, which runs before the destructors of what existed when it was registered, ends all calls
 * of the host's callbacks; the library's destructor, after the program's own, completes the trace
 * from what the library owns.
 */

/* Set if a callback did not return in time: exit() may have been called in it. */
static bool stuck_at_exit;

/*
 * Waits for up to a second, which pthread_mutex_timedlock would not if the system's clock is set.
 */
static bool lock_control(void)
{
    const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + 1000000000;
    while (pthread_mutex_trylock(&tracer.control) != 0) {
        if (clock_ns(CLOCK_MONOTONIC) >= until_ns)
            return false;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return true;
}

static void exit_begins(void)
{
    if (__atomic_exchange_n(&tracer.exiting, true, __ATOMIC_ACQ_REL))
        return;
    /* Callbacks are called under control. */
    stuck_at_exit = !lock_control();
    if (!stuck_at_exit)
        pthread_mutex_unlock(&tracer.control);
    read_end_sink();
}

/* A registration takes 32 bytes for the rest of the process. */
#define MAX_WATCHES 10000

void tracer_watch_exit(void)
{
    static unsigned watches; /* guarded by control */
    if (watches < MAX_WATCHES)
        watches += atexit(exit_begins) == 0;
}

__attribute__((destructor)) static void at_exit(void)
{
    __atomic_store_n(&tracer.exiting, true, __ATOMIC_RELEASE);
    if (!stuck_at_exit)
        consumers_at_exit();
}
