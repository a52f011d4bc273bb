/* What a running recording knows about a process (shm/shm.h): the readers of its locks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stuck/held.h"

/*
 * Writes the TIDs, in the process's own PID namespace, of threads that hold the reader-writer lock
 * for reading, at most `max`, and returns their number. They come from the process's memory and may
 * be wrong.
 */
size_t recorded_readers(const struct held *held, uint64_t lock, uint32_t *tids, size_t max);
