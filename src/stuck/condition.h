/*
 * The condition variable that a thread waits for, and the mutex that it takes again afterwards,
 * which are only recorded in its stack. glibc (2.25 and later) keeps there, for a cancellation, in
 * this order:
 *
 *     uint64_t sequence; pthread_cond_t *condition; pthread_mutex_t *mutex; int shared;
 *
 * The words are recognised by the first pointer, because the futex lies in the object that it
 * points to, and by the sequence, which is below the condition's own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stuck/held.h"

struct condition {
    uint64_t at, mutex;
};

/* Finds them for a thread that waits at a futex in pthread_cond_wait or the like; false: not
 * found. */
bool condition_find(const struct held_thread *thread, struct condition *found);
