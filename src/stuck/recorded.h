/* What a recording that runs knows of a process (shm/shm.h): the readers of its locks. */
#ifndef TRAIL_STUCK_RECORDED_H
#define TRAIL_STUCK_RECORDED_H

#include <stddef.h>
#include <stdint.h>

#include "stuck/held.h"

/*
 * Writes the TIDs, in the process's own PID namespace, of threads that have the reader-writer lock
 * to read, and returns how many; at most `max`. The process has written them, perhaps by mistake.
 */
size_t recorded_readers(const struct held *held, uint64_t lock, uint32_t *tids, size_t max);

#endif
