/*
 * The waits of a process's threads in the form of a recording, from the findings of `trail stuck`.
 */
#ifndef TRAIL_ATTACH_FOUND_H
#define TRAIL_ATTACH_FOUND_H

#include "attach/attach.h"
#include "stuck/stuck.h"

/* Calls `found` with NULL, then once for each thread. */
void found_threads(const struct stuck_process *process, attach_found_fn *found, void *context);

#endif
