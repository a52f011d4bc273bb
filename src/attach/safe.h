/*
 * Selects a thread that can call a function of the loader: it waits in a system call, and is not
 * inside the allocator, the loader or anything else that the function needs, not even below a
 * signal handler.
 */
#pragma once

#include "stuck/stuck.h"

/* Returns the best thread; NULL: none at present. */
const struct stuck_thread *safe_thread(const struct stuck_process *process);

/* Whether any thread waits in a system call: a cheap check before the thorough one. */
bool safe_is_likely(pid_t pid);
