/*
 * What recording costs single calls: run with and without `trail record`. Prints "NAME NS" a line: the fastest of
 * many short runs, because the slower ones are other programs' doing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double fastest(void (*run)(int n), int n)
{
    double best = 1e18;
    for (int i = 0; i < 200; i++) {
        double begin = now_ns(), took;
        run(n);
        took = (now_ns() - begin) / n;
        best = took < best ? took : best;
    }
    return best;
}

/* MARK: Calls that do not block */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int source, null;

static void lock_pairs(int n)
{
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void reads(int n)
{
    char byte;
    for (int i = 0; i < n; i++) {
        if (read(source, &byte, 1) != 1)
            abort();
    }
}

static void writes(int n)
{
    for (int i = 0; i < n; i++) {
        if (write(null, "", 1) != 1)
            abort();
    }
}

/* A byte each of a file that is in the page cache. */
static void file_reads(int n)
{
    if (lseek(source, 0, SEEK_SET) != 0)
        abort();
    reads(n);
}

static int own_program(void)
{
    return open("/proc/self/exe", O_RDONLY);
}

/* The compiler must not see that the memory is unused. */
static void *volatile memory;

static void allocations(int n)
{
    for (int i = 0; i < n; i++) {
        memory = malloc(64);
        free(memory);
    }
}

/* MARK: Two threads in turn, on one CPU or on two */

static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

static void play(int mine, int n)
{
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&mutex);
        while (turn != mine)
            pthread_cond_wait(&turned, &mutex);
        turn = !mine;
        pthread_cond_signal(&turned);
        pthread_mutex_unlock(&mutex);
    }
}

static int hops;

static void stay_on(size_t cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void *other(void *cpu)
{
    stay_on(*(size_t *)cpu);
    play(1, hops);
    return NULL;
}

static double ping_pong(int n, size_t other_cpu)
{
    pthread_t thread;
    double begin;
    stay_on(0);
    hops = n;
    turn = 0;
    begin = now_ns();
    pthread_create(&thread, NULL, other, &other_cpu);
    play(0, n);
    pthread_join(thread, NULL);
    return (now_ns() - begin) / (2.0 * n);
}

/* MARK: Threads that live shortly */

static void *nothing(void *arg)
{
    double until = now_ns() + 100000;
    while (now_ns() < until)
        ;
    return arg;
}

static double short_threads(int n)
{
    double begin = now_ns();
    for (int i = 0; i < n; i += 2) {
        pthread_t threads[2];
        pthread_create(&threads[0], NULL, nothing, NULL);
        pthread_create(&threads[1], NULL, nothing, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
    return (now_ns() - begin) / n;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "calls";
    source = open("/dev/zero", O_RDONLY);
    null = open("/dev/null", O_WRONLY);
    if (strcmp(what, "calls") == 0) {
        /* With a second thread once, as any program has that is worth recording. */
        (void)short_threads(2);
        printf("lock+unlock %.2f\nread:/dev/zero %.1f\nwrite:/dev/null %.1f\n",
               fastest(lock_pairs, 20000), fastest(reads, 2000), fastest(writes, 2000));
        source = own_program();
        printf("read:file %.1f\n", fastest(file_reads, 2000));
    } else if (strcmp(what, "heap") == 0) {
        (void)short_threads(2);
        printf("malloc+free %.2f\n", fastest(allocations, 20000));
    } else if (strcmp(what, "hops") == 0) {
        printf("hop %.0f\n", ping_pong(argc > 2 ? atoi(argv[2]) : 20000, 0));
    } else if (strcmp(what, "far-hops") == 0) {
        printf("hop %.0f\n", ping_pong(20000, 1));
    } else {
        printf("thread %.0f\n", short_threads(10000));
    }
    return 0;
}
