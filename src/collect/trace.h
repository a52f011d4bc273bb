/*
 * A trace that is being recorded: what the collectors of several programs share. Each program has
 * an area and a collector of its own; a process that executes another program continues with
 * another collector. The trace is written up to the time up to which all of them are known.
 *
 *     collector - ops of its threads \
 *     collector - ops of its threads  > model, in order of time - v2_writer
 *     collector - ops of its threads /
 *
 * Ps belong to the trace: a P is a slot of concurrency of all its processes together. Goroutines
 * are numbered in a block for each process (wire/merged_ids.h), as in a merged trace.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/idmap.h"
#include "collect/collect.h"
#include "collect/deadline.h"
#include "collect/model.h"
#include "collect/releases.h"
#include "collect/states.h"
#include "write/thread_writer.h"

/* Owned by trace.c, except for its parts. */
struct trace {
    struct trace_options options;
    struct thread_writer out;
    trail_error error;
    bool failed;              /* out of memory: `error` is set */
    bool ending;              /* no further step follows */
    struct collect *programs; /* whose collectors are open */
    uint32_t processes;       /* number of processes so far */
    uint32_t numbers;         /* ... of programs */
    struct idmap threads;     /* by the goroutine's ID */
    struct idmap objects;     /* names of shared objects; the texts are in the arena */
    struct idmap holds;       /* of shared locks: when the hold that named the lock began */
    struct arena arena;
    uint64_t next_frame;        /* see CODE_FIRST_NUMBER */
    uint64_t watermark;         /* the model may write all ops before it */
    uint64_t limit;             /* programs that have not been added yet begin later; 0: not
                                 * known */
    uint64_t stop_ticks;        /* it ends then, although programs continue; 0: with them */
    uint64_t end_ticks;         /* when it ended */
    uint64_t alive, most_alive; /* threads */
    size_t waiting_samples;     /* not written yet, of all programs */
    bool has_heap;              /* an allocation was recorded */
    int64_t heap;               /* of all programs, up to what is written */
    struct deadline deadline;
    struct releases releases;
    struct model model;
    struct idmap ms;    /* an M's ID to the thread that lives on it */
    struct idmap forks; /* a fork's number to the PID of the process that made it */
    struct slow slow;
};

/* Adds a program to the trace and numbers it; one executed by a process in the trace gets that
 * process's block. */
void trace_add(struct trace *t, struct collect *c, const struct collect *former);
void trace_remove(struct trace *t, struct collect *c);

/* Notes that the process `pid` made the fork with a number. */
void trace_forked(struct trace *t, uint64_t number, pid_t pid);

/* Returns the PID of the process that forked the program's; 0: not known. */
pid_t trace_parent(const struct trace *t, const struct collect *c);
