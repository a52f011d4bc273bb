/* Converts what `trail stuck` finds out about a process's threads into the waits of a recording. */
#pragma once

#include "attach/attach.h"
#include "stuck/stuck.h"

/* Calls `found` with NULL, then once for each thread. */
void found_threads(const struct stuck_process *process, attach_found_fn *found, void *context);
