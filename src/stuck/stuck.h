/*
 * Which thread waits for which in running processes: stacks with names, what each waits for, which
 * thread has that, and cycles of such waits. held.h copies what is needed while the threads are
 * stopped; everything else happens after they continue.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <trail/error.h>

#include "base/idmap.h"
#include "stuck/thread.h"

struct stuck_process {
    struct held held;
    struct stuck_thread *threads; /* as in held */
    bool is_related;              /* added by stuck_follow */
    bool can_go;                  /* one of its threads can continue without any other */
    bool hangs;                   /* none can: each waits for another one of them, without a time
                                   * limit */
};

struct stuck {
    struct stuck_process *processes;
    size_t count, capacity;
    struct ends ends;
    struct idmap by_tid;          /* TID to struct stuck_thread, after stuck_connect */
    struct stuck_thread **cycles; /* one thread of each; cycle 1 is the first */
    size_t cycle_count, cycle_capacity;
    int64_t limit_ns; /* for threads to stop, for example HELD_LIMIT_NS */
};

/* Adds a process as it is now. False with *err set. stuck_free releases everything. */
bool stuck_add(struct stuck *stuck, pid_t pid, trail_error *err);

/* Returns the process, or NULL if it was not added. */
struct stuck_process *stuck_process_of(const struct stuck *stuck, pid_t pid);

/*
 * Adds processes that the added ones wait for: those that hold a lock in shared memory, or have the
 * other end of a pipe or a connection, and wait as well. Called once, after stuck_add.
 */
void stuck_follow(struct stuck *stuck);

/*
 * Finds holders among all threads, cycles, and processes that hang. Threads that were not seen at
 * one instant count only if a second look finds all of them asleep at the same time and waiting for
 * the same. Called once, after all processes were added. False with *err set: out of memory.
 */
bool stuck_connect(struct stuck *stuck, trail_error *err);

void stuck_free(struct stuck *stuck);
