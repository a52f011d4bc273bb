/* Whether another thread of the process waits only for a processor. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns true if the kernel says that the thread runs or is ready to run (proc_pid_stat(5)); false
 * if it waits for anything else, or if that cannot be read.
 */
bool thread_is_runnable(pid_t thread);
