/*
 * Measures a tracepoint of LTTng-UST. Built and run by bench/record, not by the build, because few have
 * LTTng. Whether the tracepoint is on is decided by the session daemon.
 *
 *     lttng THREADS EVENTS        prints WALL_NS CPU_NS, of an event, of the thread that took longest
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "point.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t barrier;
static long events;

struct worker {
    pthread_t thread;
    uint64_t wall_ns, cpu_ns;
};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void emit(long n)
{
    for (long i = 0; i < n; i++)
        lttng_ust_tracepoint(trail_bench, pair, (int)i, 7);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    emit(events / 20);
    pthread_barrier_wait(&barrier);
    w->wall_ns = now_ns(CLOCK_MONOTONIC);
    w->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    emit(events);
    w->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - w->cpu_ns;
    w->wall_ns = now_ns(CLOCK_MONOTONIC) - w->wall_ns;
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[64];
    uint64_t wall = 0, cpu = 0;
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > 64 || (events = atol(argv[2])) < 1) {
        fputs("usage: lttng THREADS EVENTS\n", stderr);
        return 2;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++)
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        wall = workers[i].wall_ns > wall ? workers[i].wall_ns : wall;
        cpu = workers[i].cpu_ns > cpu ? workers[i].cpu_ns : cpu;
    }
    printf("%.3f %.3f\n", (double)wall / (double)events, (double)cpu / (double)events);
    return 0;
}
