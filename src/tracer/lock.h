/*
 * The locks that calls of the host's threads take. Time spent waiting for them is counted
 * (trail_stats.lock_waits); an uncontended lock costs nothing extra.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

/* Adds a wait from `began_ns` (CLOCK_MONOTONIC) until now to three fields of trail_stats. */
void count_wait(uint64_t began_ns, uint64_t *waits, uint64_t *wait_ns, uint64_t *longest_ns);

void lock_mutex(pthread_mutex_t *mutex);

/* A lock that is rarely contended and held for less time than a context switch takes. */
void lock_word(uint32_t *word);
void unlock_word(uint32_t *word);
