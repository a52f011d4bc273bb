/*
 * Which thread waits for which in processes that run: stacks with names, what each waits for, which
 * thread has that, and cycles of such waits. held.h copies what is needed while the threads are
 * stopped; everything else happens after they go on.
 */
#ifndef TRAIL_STUCK_STUCK_H
#define TRAIL_STUCK_STUCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <trail/error.h>

#include "stuck/thread.h"

struct stuck_process {
    struct held held;
    struct stuck_thread *threads; /* as in held */
};

struct stuck {
    struct stuck_process *processes;
    size_t count, capacity;
    unsigned cycles;
    int64_t limit_ns; /* for the threads of a process to stop: HELD_LIMIT_NS, say */
};

/* Adds a process as it is now. False with *err set. stuck_free releases all. */
bool stuck_add(struct stuck *stuck, pid_t pid, trail_error *err);

/* Finds holders among all threads, and cycles. Called once, after all processes were added. */
void stuck_connect(struct stuck *stuck);

/* Whether no thread of a process can go on: each waits for another one of it, without a time limit. */
bool stuck_hangs(const struct stuck_process *process);

void stuck_free(struct stuck *stuck);

#endif
