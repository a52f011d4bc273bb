/*
 * A recorded process as the kernel sees it. What the process says of itself, its PID and its threads' numbers, is only
 * used after the kernel has confirmed it: memory and descriptors that are read by such a number are then the
 * program's own.
 *
 * Numbers are those of a process's own PID namespace (pid_namespaces(7)); where that is below ours, the kernel's list
 * NSpid (proc(5)) translates.
 */
#ifndef TRAIL_COLLECT_PROCESS_H
#define TRAIL_COLLECT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/area.h"

struct process {
    pid_t pid;   /* ours; 0: it is gone, or cannot be confirmed: nothing is read of it */
    bool nested; /* its threads have other numbers for itself than for us */
};

enum process_claim {
    PROCESS_CONFIRMED,
    PROCESS_GONE,     /* there is none with that number any more */
    PROCESS_UNKNOWN,  /* there is one, of which the kernel does not let us see what it has mapped */
    PROCESS_NOT_OURS, /* there is one, and it has not mapped the area */
};

/* Which process has claimed an area under the number that it has for itself. */
enum process_claim process_find(pid_t claimed, struct area_inode inode, struct process *process);

/* Whether the process `pid`, by our number, has the number `claimed` for itself. */
bool process_calls_itself(pid_t pid, pid_t claimed);

/* Whether a process descends from one of those that `is_one` knows. */
bool process_descends(pid_t pid, bool (*is_one)(const void *context, pid_t pid),
                      const void *context);

/* Our number of a process's thread, by its own; 0: it has no such thread. */
uint32_t process_thread(const struct process *process, uint32_t tid);

/* Whether our number `tid` is that of a thread of the process. */
bool process_has_thread(const struct process *process, uint32_t tid);

#endif
