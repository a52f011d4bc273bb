/*
 * Which locks each thread holds: written as logs before waits that may last to the end of the
 * trace, so that a deadlock can be recognised in it (category "holds", text "mutex stats_mu").
 *
 * A lock that was taken before the recording began, or by an unwrapped call, has no hold in the
 * area. glibc stores the owner of a mutex, and the writer of a reader-writer lock, in the lock: it
 * is read while a thread waits for it. Conversely, a hold in the area may be over, because another
 * thread has released a lock held for reading, or another process a shared mutex.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct area_hold;
struct collect;
struct thread;

/* Owned by holds.c. Zero-initialised: empty. */
struct holds {
    struct area_hold *list; /* in all threads; room for SHM_OBJECTS and BOARD_HOLDS */
    size_t count;
    bool known; /* read in this step */
};

/* Called when a step begins: the locks are read again when needed. */
void holds_forget(struct collect *c);

/*
 * Names a lock that processes share after the place where it was taken, which a waiting process
 * does not know. Does nothing if the lock has a name, or if no process has held it since before
 * `time`, when the wait for it began.
 */
void holds_name_shared(struct collect *c, uint64_t object, uint64_t time);

/* Logs the locks that a running thread holds. */
void holds_log(struct collect *c, struct thread *thread, int64_t ns);

/* Logs the locks of a thread that runs or is ready when it is killed or the trace ends; a ready
 * thread that holds some runs for a moment to log them. */
void holds_log_last(struct collect *c, struct thread *thread, int64_t ns);

/* Logs the locks with which a running thread ends, while others continue. */
void holds_log_ended(struct collect *c, struct thread *thread, int64_t ns);

void holds_dispose(struct collect *c);
