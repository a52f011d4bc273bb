/*
 * Waits that `trail locks` classifies. Two threads take a mutex, a semaphore with one permit and a
 * futex alternately, each while the other waits for it. At the same time one thread hands work to
 * others through a semaphore.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "asleep.h"
#include "check.h"

enum { WORKERS = 3, ROUNDS = 10, JOBS = 5 };

static sem_t permits_sem, work_sem;
static pthread_mutex_t short_mu = PTHREAD_MUTEX_INITIALIZER;
static uint32_t lock_word; /* 0: free; 1: taken; 2: taken, and threads may wait */

static void lock_futex(void)
{
    uint32_t free = 0;
    if (__atomic_compare_exchange_n(&lock_word, &free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void unlock_futex(void)
{
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void lock_permit(void)
{
    CHECK(sem_wait(&permits_sem) == 0);
}

static void unlock_permit(void)
{
    CHECK(sem_post(&permits_sem) == 0);
}

static void lock_mutex(void)
{
    CHECK(pthread_mutex_lock(&short_mu) == 0);
}

static void unlock_mutex(void)
{
    CHECK(pthread_mutex_unlock(&short_mu) == 0);
}

static const struct kind {
    void (*lock)(void);
    void (*unlock)(void);
    unsigned hold_us;
} kinds[] = {{lock_mutex, unlock_mutex, 2000},
             {lock_permit, unlock_permit, 5000},
             {lock_futex, unlock_futex, 3000}};

static pid_t tids[2];
static unsigned taken; /* number of times the lock was taken; even: by the first thread */

/* Takes the lock after the other thread has, and releases it once the other thread waits for it.
 * Nothing else makes a thread sleep. */
static void take_turns(const struct kind *kind, unsigned own)
{
    for (unsigned i = own; i < ROUNDS; i += 2) {
        while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < i)
            sched_yield();
        kind->lock();
        __atomic_store_n(&taken, i + 1, __ATOMIC_RELEASE);
        if (i + 1 < ROUNDS)
            until_asleep(&tids[!own]);
        usleep(kind->hold_us);
        kind->unlock();
    }
}

static pthread_barrier_t both;

static void *contend(void *argument)
{
    unsigned own = argument != NULL;
    __atomic_store_n(&tids[own], gettid(), __ATOMIC_RELEASE);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        pthread_barrier_wait(&both);
        if (own == 0)
            __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
        pthread_barrier_wait(&both);
        take_turns(&kinds[i], own);
    }
    return NULL;
}

static void *work(void *unused)
{
    for (int i = 0; i < JOBS; i++)
        CHECK(sem_wait(&work_sem) == 0);
    return unused;
}

int main(void)
{
    pthread_t contenders[2], workers[WORKERS];
    CHECK(sem_init(&permits_sem, 0, 1) == 0 && sem_init(&work_sem, 0, 0) == 0);
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_create(&workers[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&contenders[i], NULL, contend, i ? contenders : NULL) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(contenders[i], NULL) == 0);
    for (int i = 0; i < WORKERS * JOBS; i++) {
        usleep(1000);
        CHECK(sem_post(&work_sem) == 0);
    }
    for (int i = 0; i < WORKERS; i++)
        CHECK(pthread_join(workers[i], NULL) == 0);
    return 0;
}
