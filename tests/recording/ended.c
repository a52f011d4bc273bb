/*
 * Waits that end because a thread is cancelled or ends, each in its own function. ended.py has the
 * expected answers.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "waiting.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, robust, other_robust;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none, go_on;
static int ends[2];

/* MARK: Cancelled */

static void unlock(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

static void *cancelled_condition(void *unused)
{
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    waiter_tid = gettid();
    for (;;)
        pthread_cond_wait(&never, &mutex);
    pthread_cleanup_pop(1);
    return unused;
}

static void *cancelled_semaphore(void *unused)
{
    waiter_tid = gettid();
    for (;;)
        sem_wait(&none);
    return unused;
}

static void *cancelled_read(void *unused)
{
    char byte;
    waiter_tid = gettid();
    expect(read(ends[0], &byte, 1) == 1);
    return unused;
}

static void *cancelled_sleep(void *unused)
{
    waiter_tid = gettid();
    for (;;)
        pass(999);
    return unused;
}

/* Cancellation is disabled: the post ends the wait, not the earlier cancellation. */
static void *not_cancelled(void *unused)
{
    expect(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
    waiter_tid = gettid();
    while (sem_wait(&go_on) != 0)
        ;
    return unused;
}

static void *canceller(void *thread)
{
    keep_waiting();
    expect(pthread_cancel(*(pthread_t *)thread) == 0);
    return NULL;
}

static void cancel(void *(*waits)(void *))
{
    pthread_t waiter, by;
    void *result;
    waiter_tid = 0;
    expect(pthread_create(&waiter, NULL, waits, NULL) == 0);
    expect(pthread_create(&by, NULL, canceller, &waiter) == 0);
    pthread_join(by, NULL);
    if (waits == not_cancelled)
        sem_post(&go_on);
    pthread_join(waiter, &result);
    expect((result == PTHREAD_CANCELED) == (waits != not_cancelled));
}

/* MARK: Robust mutexes */

static void *dies_with_mutex(void *of)
{
    expect(pthread_mutex_lock(of) == 0);
    sem_post(&go_on);
    keep_waiting();
    return NULL;
}

static void take_over(pthread_mutex_t *of)
{
    expect(pthread_mutex_lock(of) == EOWNERDEAD);
    expect(pthread_mutex_consistent(of) == 0);
    expect(pthread_mutex_unlock(of) == 0);
}

__attribute__((noinline)) static void inherit(void)
{
    pthread_t holder;
    pthread_mutexattr_t attributes;
    waiter_tid = 0;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    expect(pthread_mutex_init(&robust, &attributes) == 0);
    expect(pthread_create(&holder, NULL, dies_with_mutex, &robust) == 0);
    while (sem_wait(&go_on) != 0)
        ;
    waiter_tid = gettid();
    take_over(&robust);
    pthread_join(holder, NULL);
}

static void *unlocks(void *of)
{
    expect(pthread_mutex_lock(of) == 0);
    sem_post(&go_on);
    keep_waiting();
    expect(pthread_mutex_unlock(of) == 0);
    return NULL;
}

/* A robust mutex whose owner lives behaves like any other mutex. */
__attribute__((noinline)) static void wait_for_living(void)
{
    pthread_t holder;
    pthread_mutexattr_t attributes;
    waiter_tid = 0;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    expect(pthread_mutex_init(&other_robust, &attributes) == 0);
    expect(pthread_create(&holder, NULL, unlocks, &other_robust) == 0);
    while (sem_wait(&go_on) != 0)
        ;
    waiter_tid = gettid();
    expect(pthread_mutex_lock(&other_robust) == 0);
    pthread_mutex_unlock(&other_robust);
    pthread_join(holder, NULL);
}

int main(void)
{
    expect(pipe(ends) == 0 && sem_init(&none, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
    cancel(cancelled_condition);
    cancel(cancelled_semaphore);
    cancel(cancelled_read);
    cancel(cancelled_sleep);
    cancel(not_cancelled);
    inherit();
    wait_for_living();
    return 0;
}
