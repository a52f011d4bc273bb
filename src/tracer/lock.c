/* Locks that count the time threads wait for them: see lock.h. */
#include "tracer/lock.h"

#include <sched.h>

#include "tracer/tracer.h"

void count_wait(uint64_t began_ns, uint64_t *waits, uint64_t *wait_ns, uint64_t *longest_ns)
{
    uint64_t ns = clock_ns(CLOCK_MONOTONIC) - began_ns;
    uint64_t longest = __atomic_load_n(longest_ns, __ATOMIC_RELAXED);
    count(waits);
    __atomic_fetch_add(wait_ns, ns, __ATOMIC_RELAXED);
    while (ns > longest && !__atomic_compare_exchange_n(longest_ns, &longest, ns, true,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void count_lock_wait(uint64_t began_ns)
{
    count_wait(began_ns, &tracer.stats.lock_waits, &tracer.stats.lock_wait_ns,
               &tracer.stats.longest_lock_wait_ns);
}

void lock_mutex(pthread_mutex_t *mutex)
{
    uint64_t began_ns;
    if (pthread_mutex_trylock(mutex) == 0)
        return;
    began_ns = clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(mutex);
    count_lock_wait(began_ns);
}

static bool take(uint32_t *word)
{
    return __atomic_exchange_n(word, 1, __ATOMIC_ACQUIRE) == 0;
}

void lock_word(uint32_t *word)
{
    uint64_t began_ns;
    if (take(word))
        return;
    began_ns = clock_ns(CLOCK_MONOTONIC);
    while (!take(word))
        sched_yield();
    count_lock_wait(began_ns);
}

void unlock_word(uint32_t *word)
{
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}
