/*
 * A thread that sleeps for 100 x 2 ms while others use its CPU, which all threads are bound to.
 * Prints its time on the run queue by the kernel's count, in ns (/proc/TID/schedstat): late
 * nanosleep|usleep|clock|thrd
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static bool is_over;

static void *burn(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        continue;
    return unused;
}

static void sleep_once(const char *how)
{
    const struct timespec time = {0, 2000000};
    if (strcmp(how, "usleep") == 0)
        CHECK(usleep(2000) == 0);
    else if (strcmp(how, "clock") == 0)
        CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == 0);
    else if (strcmp(how, "thrd") == 0)
        CHECK(thrd_sleep(&time, NULL) == 0);
    else
        CHECK(nanosleep(&time, NULL) == 0);
}

static void *sleeper(void *how)
{
    unsigned long long ran, delay;
    char path[64];
    FILE *file;
    CHECK(pthread_setname_np(pthread_self(), "sleeper") == 0);
    for (int i = 0; i < 100; i++)
        sleep_once(how);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)gettid());
    file = fopen(path, "r");
    CHECK(file && fscanf(file, "%llu %llu", &ran, &delay) == 2 && fclose(file) == 0);
    printf("%llu\n", delay);
    return NULL;
}

/* A time that cannot be read is the kernel's to refuse. */
static void sleep_wrongly(void)
{
    CHECK(nanosleep(NULL, NULL) == -1 && errno == EFAULT);
}

int main(int argc, char **argv)
{
    pthread_t burners[2], thread;
    cpu_set_t set, one;
    size_t cpu = 0;
    CHECK(argc == 2 && sched_getaffinity(0, sizeof set, &set) == 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    if (strcmp(argv[1], "nanosleep") == 0)
        sleep_wrongly();
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&burners[i], NULL, burn, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, sleeper, argv[1]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(burners[i], NULL) == 0);
    return 0;
}
