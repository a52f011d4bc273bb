/*
 * Sleeping: a list of sleepers by the time to wake them, and a coroutine that does it, which the
 * tracer knows as the one that runs timers. A timerfd in the poller's set fires when the first is
 * due.
 */
#include "scheduler.h"

#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct {
    struct lock lock;
    struct g *first; /* by wake_ns, linked by `next` */
    struct g *waker;
    bool waker_waits;
} timers;

int timer_fd = -1;

int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A time that has passed fires at once. */
static void set_timer(int64_t at_ns)
{
    struct itimerspec at = {
        .it_value = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000}};
    timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void insert(struct g *g)
{
    struct g **at = &timers.first;
    while (*at && (*at)->wake_ns <= g->wake_ns)
        at = &(*at)->next;
    g->next = *at;
    *at = g;
    if (timers.first == g)
        set_timer(g->wake_ns);
}

void sleep_ns(int64_t ns)
{
    struct g *g = g_self();
    g->wake_ns = now_ns() + ns;
    lock(&timers.lock);
    insert(g);
    park(TRAIL_BLOCK_SLEEP, false, unlock_after, &timers.lock);
}

static struct g *take_due(void)
{
    struct g *g = timers.first;
    if (!g || g->wake_ns > now_ns())
        return NULL;
    timers.first = g->next;
    g->next = NULL;
    return g;
}

static void run_timers(void *argument)
{
    (void)argument;
    for (;;) {
        struct g *g;
        lock(&timers.lock);
        g = take_due();
        if (g) {
            unlock(&timers.lock);
            ready(g);
            continue;
        }
        if (timers.first)
            set_timer(timers.first->wake_ns);
        timers.waker_waits = true;
        park(TRAIL_BLOCK_SYSTEM, false, unlock_after, &timers.lock);
    }
}

void timer_fired(void)
{
    uint64_t times;
    bool waits;
    if (read(timer_fd, &times, sizeof(times)) < 0)
        return;
    lock(&timers.lock);
    waits = timers.waker_waits;
    timers.waker_waits = false;
    unlock(&timers.lock);
    if (waits)
        ready(timers.waker);
}

void timer_start(void)
{
    timers.waker = go(run_timers, NULL);
    trail_timer_goroutine(&timers.waker->trail);
}
