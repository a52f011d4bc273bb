/*
 * A recorded process as the kernel knows it. The PID and TIDs that the process has written are only
 * used after the kernel has confirmed them, so that memory and descriptors read by such a number
 * are the program's own.
 *
 * A process writes numbers of its own PID namespace (pid_namespaces(7)); if that is below ours, the
 * kernel's list NSpid (proc(5)) translates them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/area.h"

struct process {
    pid_t pid;    /* in our namespace; 0: ended or not confirmed, and not read */
    bool nested;  /* its own PID namespace is below ours */
    pid_t parent; /* when the process was found, in our namespace; 0: not known */
    bool zombie;  /* ... it had ended, and its parent did not know yet */
};

enum process_claim {
    PROCESS_CONFIRMED,
    PROCESS_GONE,     /* no process has that number any more, or a zombie */
    PROCESS_UNKNOWN,  /* a process has it, but the kernel does not let us read its mappings */
    PROCESS_NOT_OURS, /* a process has it that has not mapped the area */
};

/* Looks whether the process with a PID in our namespace has mapped the area. *process: it, if it
 * has, or if it is a zombie, which has nothing mapped. */
enum process_claim process_look_at(pid_t claimed, struct area_inode inode, struct process *process);

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
 * Finds the process that has the PID `claimed` in a namespace below ours and has mapped the area.
 * `namespace` is its inode; 0: not known. False: none. Then *descendant is the only descendant of
 * the family with that PID there, whatever it has mapped, because it may have executed another
 * program since; 0: none, or several. For a namespace other than ours, this reads the namespaces
 * of all processes in /proc.
 */
bool process_find(pid_t claimed, uint64_t namespace, struct area_inode inode,
                  const struct process_family *family, struct process *process, pid_t *descendant);

/* Returns the process's PID in its own namespace; 0: it has ended. */
uint32_t process_own_pid(const struct process *process);

/* What a process is called. */
struct process_name {
    char title[80]; /* as shown by ps(1): its command line, which a server may have changed */
    /* A short name with the PID, "sh (812)": the file name in the process's first argument,
     * "postgres", or what a server has written there, "postgres: checkpointer". */
    char label[80];
};

/*
 * Reads the process's present name; false: it has none (any more), or the first argument is empty.
 */
bool process_name(pid_t pid, struct process_name *name);

/* Returns the TID in our namespace of a process's thread, given its own; 0: no such thread. */
uint32_t process_thread(const struct process *process, uint32_t tid);

/* Whether TID `tid` in our namespace is a thread of the process. */
bool process_has_thread(const struct process *process, uint32_t tid);

/*
 * Returns the number after a word in /proc/PID/status, "
 * Tgid:"; -1: missing. *several (may be NULL): others follow it.
 */
long process_status_number(pid_t pid, const char *word, bool *several);

/* Whether the process handles or ignores the signal. */
bool process_withstands(pid_t pid, int number);

/* Whether the process handles signals that do not come from another process, and that end calls. */
bool process_catches_alarm(pid_t pid);
