/*
 * A loop of libuv in a trace: a timer that queues work for the pool of threads, and another thread
 * that wakes the loop through an async handle.
 *
 *     cc -rdynamic libuv.c trail_uv.c $(pkg-config --cflags --libs trail-record libuv) -pthread
 *     ./a.out uv.trace && trail print uv.trace && trail why -g 3 uv.trace
 */
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "trail_uv.h"

/* Not static: the dynamic loader gives their names to the trace. */
void tick(uv_timer_t *handle);
void ring(uv_async_t *handle);
void compute(uv_work_t *request);
void ring_bell(void *arg);

enum { TICKS = 3, RINGS = 3 };

static trail_uv_timer timer;
static trail_uv_async bell;
static struct job {
    trail_uv_work work;
    int input, output;
} jobs[TICKS];

static int ticks, rings, sum;
static atomic_int handled = -1; /* rings before the loop polled; the bell waits since */

/* In a thread of the pool. */
void compute(uv_work_t *request)
{
    struct job *job = (struct job *)request;
    job->output = job->input * job->input;
}

/* In the thread of the loop, again. */
static void computed(uv_work_t *request, int status)
{
    sum += status == 0 ? ((struct job *)request)->output : 0;
}

void tick(uv_timer_t *handle)
{
    struct job *job = &jobs[ticks++];
    job->input = ticks;
    trail_uv_queue_work(handle->loop, &job->work, compute, computed);
    if (ticks == TICKS)
        trail_uv_timer_close(&timer, NULL);
}

void ring(uv_async_t *handle)
{
    (void)handle;
    if (++rings == RINGS)
        trail_uv_async_close(&bell, NULL);
}

static void before_poll(uv_prepare_t *handle)
{
    handled = rings;
    if (rings == RINGS)
        uv_close((uv_handle_t *)handle, NULL);
}

/* Another thread. It rings when the bell waits again. */
void ring_bell(void *arg)
{
    trail_uv_thread thread;
    (void)arg;
    trail_uv_thread_begin(&thread, ring_bell);
    for (int i = 0; i < RINGS; i++) {
        while (handled != i)
            sched_yield();
        trail_uv_async_send(&bell);
    }
    trail_uv_thread_end(&thread);
}

static void run_loop(uv_loop_t *loop)
{
    trail_uv_loop traced;
    uv_prepare_t prepare;
    uv_thread_t thread;
    trail_uv_loop_begin(&traced, loop);
    uv_prepare_init(loop, &prepare);
    uv_prepare_start(&prepare, before_poll);
    trail_uv_timer_init(loop, &timer, tick);
    trail_uv_async_init(loop, &bell, ring);
    trail_uv_timer_start(&timer, 1, 1);
    uv_thread_create(&thread, ring_bell, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_thread_join(&thread);
    trail_uv_loop_end(&traced);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "uv.trace";
    trail_options options = {.format = argc > 2 ? atoi(argv[2]) : 0};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    trail_error err;
    trail_stats stats;
    trail_uv_set_host();
    if (fd < 0) {
        perror(path);
        return 1;
    }
    if (!trail_start_fd(&options, fd, &err)) {
        fprintf(stderr, "%s: %s\n", path, err.message);
        return 1;
    }
    run_loop(uv_default_loop());
    uv_loop_close(uv_default_loop());
    if (!trail_stop(&err))
        fprintf(stderr, "%s: %s\n", path, err.message);
    trail_stats_get(&stats);
    if (stats.misuse)
        fprintf(stderr, "%llu calls in a wrong order\n", (unsigned long long)stats.misuse);
    printf("%d\n", sum);
    return stats.misuse != 0;
}
