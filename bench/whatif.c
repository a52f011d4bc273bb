/*
 * Programs for bench/whatif: each as it is, and with a change that trail whatif can predict.
 *
 * usage: trail-bench-whatif PAIR base|changed
 */

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 40, THREADS = 4 };

static int changed;
static pthread_mutex_t first_mu = PTHREAD_MUTEX_INITIALIZER, second_mu = PTHREAD_MUTEX_INITIALIZER;

/* MARK: Work */

/* CPU time, whatever else the machine does. */
static void burn(long us)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

/* A device or a peer that takes its time. */
static void idle(long us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static void run_threads(void *(*const start[])(void *), int count)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, start[i], NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* MARK: Locks */

static void *holds_long(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&first_mu);
        idle(changed ? 1500 : 3000);
        pthread_mutex_unlock(&first_mu);
        idle(2000);
    }
    return NULL;
}

/* --hold=first_mu=0.5x */
static void hold_halved(void)
{
    run_threads((void *(*const[])(void *)){holds_long, holds_long, holds_long, holds_long}, 4);
}

static void *uses_lock(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        if (!changed)
            pthread_mutex_lock(&first_mu);
        idle(3000);
        if (!changed)
            pthread_mutex_unlock(&first_mu);
        idle(1000);
    }
    return NULL;
}

/* --free=first_mu: each has a lock of its own */
static void lock_split(void)
{
    run_threads((void *(*const[])(void *)){uses_lock, uses_lock, uses_lock}, 3);
}

static void *uses_both(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&first_mu);
        idle(changed ? 400 : 4000);
        pthread_mutex_unlock(&first_mu);
        pthread_mutex_lock(&second_mu);
        idle(3000);
        pthread_mutex_unlock(&second_mu);
    }
    return NULL;
}

/* --hold=first_mu=0.1x: the second lock is the next bottleneck */
static void next_behind(void)
{
    run_threads((void *(*const[])(void *)){uses_both, uses_both, uses_both}, 3);
}

/* MARK: Functions */

static void *slow_side(void *arg)
{
    (void)arg;
    burn(changed ? 150000 : 300000);
    return NULL;
}

static void *quick_side(void *arg)
{
    (void)arg;
    burn(100000);
    return NULL;
}

/* --faster=slow_side=2x */
static void on_the_path(void)
{
    run_threads((void *(*const[])(void *)){slow_side, quick_side}, 2);
}

static void *short_side(void *arg)
{
    (void)arg;
    burn(changed ? 50000 : 100000);
    return NULL;
}

static void *long_side(void *arg)
{
    (void)arg;
    burn(300000);
    return NULL;
}

/* --faster=short_side=2x */
static void off_the_path(void)
{
    run_threads((void *(*const[])(void *)){long_side, short_side}, 2);
}

/* MARK: Queues */

static int items[2];

static void *produce(void *arg)
{
    char item = 1;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        burn(1000);
        if (write(items[1], &item, 1) != 1)
            break;
    }
    close(items[1]);
    return NULL;
}

static void *consume(void *arg)
{
    char item;
    (void)arg;
    while (read(items[0], &item, 1) == 1)
        burn(changed ? 2500 : 5000);
    return NULL;
}

/* --faster=consume=2x */
static void slow_consumer(void)
{
    if (pipe(items) == 0)
        run_threads((void *(*const[])(void *)){produce, consume}, 2);
}

/* MARK: Outside */

/* --io=read=0.2x: a child process answers each request after a time */
static void faster_disk(void)
{
    int ask[2], answer[2];
    char byte = 1;
    if (pipe(ask) || pipe(answer))
        return;
    if (fork() == 0) {
        close(ask[1]);
        while (read(ask[0], &byte, 1) == 1) {
            idle(changed ? 1000 : 5000);
            if (write(answer[1], &byte, 1) != 1)
                break;
        }
        _exit(0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        burn(1000);
        if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1)
            break;
    }
    close(ask[1]);
}

static const struct {
    const char *name;
    void (*run)(void);
} pairs[] = {
    {"hold-halved", hold_halved}, {"lock-split", lock_split},     {"next-behind", next_behind},
    {"on-the-path", on_the_path}, {"off-the-path", off_the_path}, {"slow-consumer", slow_consumer},
    {"faster-disk", faster_disk},
};

int main(int argc, char **argv)
{
    changed = argc > 2 && strcmp(argv[2], "changed") == 0;
    for (size_t i = 0; argc > 1 && i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(pairs[i].name, argv[1]) == 0) {
            pairs[i].run();
            return 0;
        }
    fputs("usage: trail-bench-whatif PAIR base|changed\n", stderr);
    return 2;
}
