/*
 * Which thread of a process can be made to call a function of the loader: one that waits in a system call, and is in the
 * middle of nothing that the function needs, as the allocator or the loader itself, also not below a signal handler.
 */
#ifndef TRAIL_ATTACH_SAFE_H
#define TRAIL_ATTACH_SAFE_H

#include "stuck/stuck.h"

/* Returns the best thread; NULL: there is none now. */
const struct stuck_thread *safe_thread(const struct stuck_process *process);

/* Whether a thread waits in a system call at all: cheap, for a look before a closer one. */
bool safe_is_likely(pid_t pid);

#endif
