/*
 * The locks that calls of the host's threads take. What a thread waits for one is counted
 * (trail_stats.lock_waits), which costs nothing while it is free.
 */
#ifndef TRAIL_TRACER_LOCK_H
#define TRAIL_TRACER_LOCK_H

#include <pthread.h>
#include <stdint.h>

void lock_mutex(pthread_mutex_t *mutex);

/* One that two threads want at once only by chance, and hold for less than a switch takes. */
void lock_word(uint32_t *word);
void unlock_word(uint32_t *word);

#endif
