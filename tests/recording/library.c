/* A library with locks, loaded and unloaded by survive.c. Its constructor and destructor lock as well. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "asleep.h"

int library_waits(void);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int value;
static pid_t waiter;

__attribute__((constructor)) static void begins(void)
{
    pthread_mutex_lock(&lock);
    value = 1;
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void ends(void)
{
    pthread_mutex_lock(&lock);
    value = 0;
    pthread_mutex_unlock(&lock);
}

/* Signals once the waiter has unlocked the mutex and sleeps. */
static void *library_changes(void *none)
{
    struct timespec moment = {0, 2000000};
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    until_asleep(&waiter);
    pthread_mutex_lock(&lock);
    value++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return none;
}

int library_waits(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    waiter = gettid();
    if (pthread_create(&thread, NULL, library_changes, NULL) != 0)
        return -1;
    while (value < 2)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return value;
}
