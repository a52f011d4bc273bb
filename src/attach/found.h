/* What the threads of a process wait for, as the recording needs it, from what trail stuck finds out. */
#ifndef TRAIL_ATTACH_FOUND_H
#define TRAIL_ATTACH_FOUND_H

#include "attach/attach.h"
#include "stuck/stuck.h"

/* Calls `found` with NULL, and then for each thread. */
void found_threads(const struct stuck_process *process, attach_found_fn *found, void *context);

#endif
