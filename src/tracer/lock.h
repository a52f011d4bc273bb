/*
 * The locks that calls of the host's threads take. What a thread waits for one is counted
 * (trail_stats.lock_waits), which costs nothing while it is free.
 */
#ifndef TRAIL_TRACER_LOCK_H
#define TRAIL_TRACER_LOCK_H

#include <pthread.h>
#include <stdint.h>

/* Counts a wait that began at CLOCK_MONOTONIC `began_ns` and ends now, in three fields of trail_stats. */
void count_wait(uint64_t began_ns, uint64_t *waits, uint64_t *wait_ns, uint64_t *longest_ns);

void lock_mutex(pthread_mutex_t *mutex);

/* One that two threads want at once only by chance, and hold for less than a switch takes. */
void lock_word(uint32_t *word);
void unlock_word(uint32_t *word);

#endif
