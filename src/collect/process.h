/*
 * A recorded process as the kernel knows it. The PID and TIDs that the process has written are only
 * used after the kernel has confirmed them, so that memory and descriptors read by such a number
 * are the program's own.
 *
 * A process writes numbers of its own PID namespace (pid_namespaces(7)); if that is below ours, the
 * kernel's list NSpid (proc(5)) translates them.
 */
#ifndef TRAIL_COLLECT_PROCESS_H
#define TRAIL_COLLECT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/idmap.h"
#include "collect/area.h"

struct process {
    pid_t pid;    /* in our namespace; 0: ended or not confirmed, and not read */
    bool nested;  /* its own PID namespace is below ours */
    pid_t parent; /* when the process was found, in our namespace; 0: not known */
};

enum process_claim {
    PROCESS_CONFIRMED,
    PROCESS_GONE,     /* no process has that number any more */
    PROCESS_UNKNOWN,  /* a process has it, but the kernel does not let us read its mappings */
    PROCESS_NOT_OURS, /* a process has it that has not mapped the area */
};

/*
 * PIDs of processes known to be in our own namespace. They are forgotten after a second, before the
 * kernel could reuse the numbers.
 */
struct process_ours {
    struct idmap pids;
    int64_t since_ns; /* CLOCK_MONOTONIC */
};

/* Finds the process that has claimed an area under its PID in its own namespace. */
enum process_claim process_find(pid_t claimed, struct area_inode inode, struct process_ours *ours,
                                struct process *process);

/* Whether the process `pid` of our namespace has the PID `claimed` in its own. */
bool process_calls_itself(pid_t pid, pid_t claimed);

/* Processes in our namespace, and their descendants. */
struct process_family {
    bool (*has)(const void *context, pid_t pid);
    const void *context;
};

/* Whether a process descends from one in the family. */
bool process_descends(pid_t pid, const struct process_family *family);

/*
 * Returns the only descendant of the family that has the PID `claimed` in a namespace below ours,
 * whatever it has mapped, because it may have executed another program since. 0: none, or several.
 */
pid_t process_find_nested(pid_t claimed, struct process_ours *ours,
                          const struct process_family *family);

/*
 * Copies the process's current title as shown by ps(1): its command line, which a server may have
 * changed. Leaves `text` unchanged if it has none (any more).
 */
void process_title(pid_t pid, char *text, size_t size);

/* Returns the process's PID in its own namespace; 0: it has ended. */
uint32_t process_own_pid(const struct process *process);

/*
 * Copies a short name with the PID, "sh (812)": the file name in the process's first argument,
 * "postgres", or what a server has written there, "postgres: checkpointer". Leaves `text` unchanged
 * if it has none any more.
 */
void process_label(pid_t pid, char *text, size_t size);

/* Returns the TID in our namespace of a process's thread, given its own; 0: no such thread. */
uint32_t process_thread(const struct process *process, uint32_t tid);

/* Whether TID `tid` in our namespace is a thread of the process. */
bool process_has_thread(const struct process *process, uint32_t tid);

#endif
