/*
 * Two threads that need a CPU until stdin ends, but may use only one: limits CPU [NICE]; if CPU is
 * "-" they may use all. The first byte on stdin lets the first thread use all CPUs. Prints their
 * TIDs. With NICE, both have the policy SCHED_BATCH and that nice value.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

static int nice_value;
static bool is_over;
static pthread_barrier_t ready;

static void *spin(void *set)
{
    const struct sched_param none = {0};
    CHECK(!set || pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), set) == 0);
    if (nice_value) {
        CHECK(pthread_setschedparam(pthread_self(), SCHED_BATCH, &none) == 0);
        CHECK(setpriority(PRIO_PROCESS, (id_t)gettid(), nice_value) == 0);
    }
    printf("%d\n", (int)gettid());
    fflush(stdout);
    pthread_barrier_wait(&ready);
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        continue;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    cpu_set_t all, one;
    char byte;
    CHECK(argc >= 2 && sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    if (*argv[1] != '-')
        CPU_SET((size_t)atoi(argv[1]), &one);
    nice_value = argc > 2 ? atoi(argv[2]) : 0;
    CHECK(pthread_barrier_init(&ready, NULL, 3) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, spin, *argv[1] == '-' ? NULL : &one) == 0);
    pthread_barrier_wait(&ready);
    if (read(STDIN_FILENO, &byte, 1) == 1) {
        CHECK(pthread_setaffinity_np(threads[0], sizeof all, &all) == 0);
        CHECK(read(STDIN_FILENO, &byte, 1) == 0);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
