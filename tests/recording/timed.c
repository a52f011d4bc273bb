/*
 * A thread that waits for a condition variable with a time limit, for the second time: the stack
 * left by the first wait contains the addresses of the condition and the mutex more than once.
 * Prints both addresses, neither of which has a symbol. The main thread sleeps.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "check.h"

static pthread_cond_t *condition;
static pthread_mutex_t *mutex;

static void *wait_twice(void *unused)
{
    struct timespec past = {1, 0}, far;
    CHECK(clock_gettime(CLOCK_REALTIME, &far) == 0);
    far.tv_sec += 100000;
    CHECK(pthread_mutex_lock(mutex) == 0);
    pthread_cond_timedwait(condition, mutex, &past);
    pthread_cond_timedwait(condition, mutex, &far);
    return unused;
}

/* Its caller is found by its frame pointer only, which the sleep does not save. */
__attribute__((noinline)) static int sleep_with_room(void)
{
    volatile char *room = __builtin_alloca((size_t)rand() % 64 + 1);
    room[0] = 0;
    while (nanosleep(&(struct timespec){100000, 0}, NULL) == 0)
        ;
    return room[0];
}

int main(void)
{
    pthread_t thread;
    condition = calloc(1, 200);
    mutex = calloc(1, 200);
    CHECK(condition && mutex);
    printf("%p %p\n", (void *)condition, (void *)mutex);
    fflush(stdout);
    CHECK(pthread_create(&thread, NULL, wait_twice, NULL) == 0);
    CHECK(sleep_with_room() == 0);
    return pthread_join(thread, NULL);
}
