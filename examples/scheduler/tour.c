/*
 * A tour of everything that this scheduler reports to the tracer, one step per feature. No step
 * depends on how fast things go: each repeats until what it is about has happened.
 */
#include "scheduler.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

/* MARK: Under way when the trace starts */

static struct {
    int pipe[2]; /* one byte for each coroutine in a system call */
    struct sema go_on;
    struct group running;
    struct object *list;
} before;

static void read_byte(int fd)
{
    char byte;
    if (read(fd, &byte, 1) != 1)
        abort();
}

/* In a system call, whose P the monitor steals. */
static void call(void *argument)
{
    (void)argument;
    syscall_enter();
    read_byte(before.pipe[0]);
    syscall_exit();
    group_done(&before.running);
}

static void blocking_call(void *argument)
{
    (void)argument;
    syscall_block();
    read_byte(before.pipe[0]);
    syscall_exit();
    group_done(&before.running);
}

static void wait(void *argument)
{
    (void)argument;
    sema_wait(&before.go_on, TRAIL_BLOCK_UNSPECIFIED);
    group_done(&before.running);
}

void tour_before(void)
{
    if (pipe(before.pipe) != 0)
        abort();
    heap_root_add(&before.list);
    for (uint64_t i = 0; i < 10; i++)
        heap_new(&before.list, i);
    group_add(&before.running, 3);
    go(call, NULL);
    go(blocking_call, NULL);
    go(wait, NULL);
}

static void end_what_was_before(void)
{
    if (write(before.pipe[1], "xx", 2) != 2)
        abort();
    sema_post(&before.go_on);
    group_wait(&before.running);
    heap_root_remove(&before.list);
    close(before.pipe[0]);
    close(before.pipe[1]);
}

/* MARK: Steps */

static void system_calls(void)
{
    syscall_enter();
    getppid();
    syscall_exit();
    syscall_enter();
    while (!syscall_lost_p())
        nap();
    syscall_exit();
    syscall_block();
    getppid();
    syscall_exit();
}

static void preemption(void)
{
    while (!safe_point())
        ;
    yield();
}

struct contest {
    struct mutex mutex;
    struct group running;
};

static void contend(void *argument)
{
    struct contest *c = argument;
    while (atomic_load(&c->mutex.in_vain) < 3) {
        mutex_lock(&c->mutex);
        yield(); /* the others get in line */
        mutex_unlock(&c->mutex);
    }
    group_done(&c->running);
}

/* One leaves and takes the mutex again before the one that it woke is there. */
static void wake_ups_in_vain(void)
{
    struct contest c = {0};
    group_add(&c.running, 3);
    for (int i = 0; i < 3; i++)
        go(contend, &c);
    group_wait(&c.running);
}

static void send_twice(void *argument)
{
    chan_send(argument, 1);
    chan_send(argument, 2);
}

static void selection(void)
{
    struct channel *a = chan_new(0), *b = chan_new(0);
    uintptr_t sum = 0;
    go(send_twice, a);
    go(send_twice, b);
    for (int i = 0; i < 4; i++) {
        struct chan_case cases[] = {{.channel = a}, {.channel = b}};
        sum += cases[chan_select(cases, 2)].value;
    }
    if (sum != 6)
        abort();
    chan_free(a);
    chan_free(b);
}

static void select_waits(void *argument)
{
    struct channel **channels = argument;
    struct chan_case cases[] = {{.channel = channels[0]}, {.channel = channels[1]}};
    uintptr_t sum = cases[chan_select(cases, 2)].value;
    chan_send(channels[2], sum);
}

/*
 * The one that waits in a select is there before the sender comes; then the receiver before a
 * sender.
 */
static void selection_in_wait(void)
{
    struct channel *channels[] = {chan_new(0), chan_new(0), chan_new(0)};
    uintptr_t value;
    go(select_waits, channels);
    while (chan_waiting(channels[1]) == 0)
        yield();
    chan_send(channels[1], 7);
    while (chan_waiting(channels[2]) == 0)
        yield(); /* it waits in a send */
    chan_receive(channels[2], &value);
    if (value != 7 || chan_waiting(channels[0]) != 0)
        abort();
    for (int i = 0; i < 3; i++)
        chan_free(channels[i]);
}

static void receive_one(void *argument)
{
    struct channel **channels = argument;
    uintptr_t value;
    chan_receive(channels[0], &value);
    chan_send(channels[1], value);
}

static void reception_in_wait(void)
{
    struct channel *channels[] = {chan_new(0), chan_new(1)};
    uintptr_t value;
    go(receive_one, channels);
    while (chan_waiting(channels[0]) == 0)
        yield();
    chan_send(channels[0], 9);
    chan_receive(channels[1], &value);
    if (value != 9)
        abort();
    chan_free(channels[0]);
    chan_free(channels[1]);
}

static void sleeps(void)
{
    sleep_ns(1000000);
    sleep_ns(0);
}

/* An iterator: produces a value, and switches back to its caller. */
struct iterator {
    struct g *producer, *consumer;
    unsigned value;
    bool over;
};

static void produce(void *argument)
{
    struct iterator *it = argument;
    for (it->value = 1; it->value <= 3; it->value++)
        switch_to(it->consumer);
    it->over = true;
    switch_to_and_end(it->consumer);
}

static void iteration(void)
{
    struct iterator it = {.consumer = g_self()};
    unsigned sum = 0;
    it.producer = go_blocked(produce, &it);
    for (switch_to(it.producer); !it.over; switch_to(it.producer))
        sum += it.value;
    if (sum != 6)
        abort();
}

static void post(void *argument)
{
    sema_post(argument);
}

static void created_blocked(void)
{
    struct sema ran = {0};
    struct g *g = go_blocked(post, &ran);
    yield();
    ready(g);
    sema_wait(&ran, TRAIL_BLOCK_SYNC);
}

static void wait_for_ever(void *argument)
{
    sema_post(argument);
    park(TRAIL_BLOCK_FOREVER, false, NULL, NULL);
}

static void blocked_for_ever(void)
{
    static struct sema there;
    go(wait_for_ever, &there);
    sema_wait(&there, TRAIL_BLOCK_SYNC);
}

static void change_of_procs(void)
{
    unsigned procs = atomic_load(&sched.procs);
    procs_change(procs < MAX_PROCS ? procs + 1 : procs - 1);
    for (int i = 0; i < 20; i++)
        yield(); /* perhaps onto the new one */
    procs_change(1);
    procs_change(procs);
}

/* MARK: The collector, with generations that end within its phases */

enum { MUTATORS = 4 };

static void mutate(void *argument)
{
    struct group *running = argument;
    struct object *list = NULL;
    heap_root_add(&list);
    for (unsigned i = 0; i < 400; i++) {
        heap_new(&list, i);
        if (i % 100 == 99)
            heap_drop(&list);
        safe_point();
    }
    heap_root_remove(&list);
    group_done(running);
}

static void collection(void)
{
    struct heap_counts seen = {0}, at_start = heap_counts();
    for (unsigned round = 0; round < 1000; round++) {
        struct group running = {0};
        collect_slowly(round == 0);
        group_add(&running, MUTATORS);
        for (int i = 0; i < MUTATORS; i++)
            go(mutate, &running);
        collect();
        group_wait(&running);
        seen = heap_counts();
        if (seen.assists > at_start.assists && seen.assist_waits > at_start.assist_waits)
            break;
    }
    collect_slowly(false);
}

/* MARK: Annotations */

static __attribute__((noinline)) void sample(void)
{
    uintptr_t pcs[] = {(uintptr_t)__builtin_return_address(0)};
    trail_cpu_sample(pcs, 1);
}

static void annotations(void)
{
    uint64_t outer = trail_task_begin(0, "tour"), inner = trail_task_begin(outer, "step");
    TRAIL_REGION("annotations");
    trail_region_begin(inner, "inner");
    trail_logf(inner, "tour", "step %d", 1);
    trail_log(0, "tour", "no task");
    trail_region_end(inner, "inner");
    trail_go_label(&m_self()->trail, "on tour");
    sample();
    trail_task_end(inner);
    trail_task_end(outer);
}

/* MARK: Threads from outside */

/* Calls in twice: once the P stays behind for the monitor, once it is given up. */
static void *foreign_thread(void *argument)
{
    struct m m;
    foreign_begin(&m);
    for (int i = 0; i < 3; i++) {
        foreign_enter(&m);
        trail_log(0, "foreign", "called in");
        sema_post(argument);
        foreign_leave(&m, i % 2 == 0);
    }
    foreign_end(&m);
    return NULL;
}

/* Never heard of any scheduler. */
static void *stranger(void *argument)
{
    (void)argument;
    TRAIL_REGION("stranger");
    trail_log(0, "stranger", "from a thread of its own");
    return NULL;
}

static void join(pthread_t thread)
{
    syscall_block();
    pthread_join(thread, NULL);
    syscall_exit();
}

static void foreign_threads(void)
{
    struct sema called = {0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, foreign_thread, &called) != 0)
        abort();
    for (int i = 0; i < 3; i++)
        sema_wait(&called, TRAIL_BLOCK_SYNC);
    join(thread);
    if (pthread_create(&thread, NULL, stranger, NULL) != 0)
        abort();
    join(thread);
}

void tour(void)
{
    static void (*const steps[])(void) = {
        end_what_was_before, system_calls,      preemption,      wake_ups_in_vain, selection,
        selection_in_wait,   reception_in_wait, sleeps,          iteration,        created_blocked,
        blocked_for_ever,    annotations,       foreign_threads, change_of_procs,  collection,
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        steps[i]();
}
