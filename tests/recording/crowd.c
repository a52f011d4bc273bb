/*
 * Many threads that wait for a signal. The first and the last thread have each locked a mutex and
 * wait for the other's: the deadlock is between the first and the last thread of the process.
 *
 * usage: crowd N
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

static pthread_mutex_t first_mu = PTHREAD_MUTEX_INITIALIZER, last_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *first(void *unused)
{
    pthread_mutex_lock(&first_mu);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&last_mu);
    return unused;
}

static void *last(void *unused)
{
    pthread_mutex_lock(&last_mu);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&first_mu);
    return unused;
}

static void *wait_for_signal(void *unused)
{
    pause();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_attr_t small;
    pthread_t thread;
    CHECK(argc == 2 && pthread_barrier_init(&both, NULL, 2) == 0);
    CHECK(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 64 << 10) == 0);
    CHECK(pthread_create(&thread, NULL, first, NULL) == 0);
    for (int i = atoi(argv[1]); i > 0; i--)
        CHECK(pthread_create(&thread, &small, wait_for_signal, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, last, NULL) == 0);
    pause();
    return 0;
}
