/*
 * A trace that is being recorded: what the collectors of several programs share. Each program has
 * an area and a collector of its own; a process that executes another program goes on as another
 * collector. The trace is written up to the time up to which all of them are known.
 *
 *     collector - ops of its threads \
 *     collector - ops of its threads  > model, in order of time - v2_writer
 *     collector - ops of its threads /
 *
 * Ps are of the trace: a P is a slot of concurrency of all its processes together. Goroutines are
 * numbered in a block for each process (write/merged_ids.h), as in a merged trace.
 */
#ifndef TRAIL_COLLECT_TRACE_H
#define TRAIL_COLLECT_TRACE_H

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

/* Owned by trace.c, but for its parts. */
struct trace {
    struct trace_options options;
    struct thread_writer out;
    trail_error error;
    bool failed;              /* memory ran out: `error` is set */
    bool ending;              /* no step follows */
    struct collect *programs; /* whose collectors are open */
    uint32_t processes;       /* that it has, or had */
    uint32_t numbers;         /* ... programs */
    struct idmap threads;     /* by the goroutine's ID */
    struct idmap objects;     /* names of what processes share; the texts are in the arena */
    struct idmap
        holds; /* of locks that processes share: when that hold began which named the lock */
    struct arena arena;
    uint64_t next_frame;        /* see CODE_FIRST_NUMBER */
    uint64_t watermark;         /* the model may write all ops before it */
    uint64_t limit;             /* programs that were added since begin later; 0: not known */
    uint64_t end_ticks;         /* when it ended */
    uint64_t alive, most_alive; /* threads */
    size_t waiting_samples;     /* that are not written, of all programs */
    bool has_heap;              /* an allocation was recorded */
    int64_t heap;               /* of all programs, as far as it is written */
    struct deadline deadline;
    struct releases releases;
    struct model model;
    struct idmap ms;    /* an M's ID to the thread that lives on it */
    struct idmap forks; /* a fork's number to the PID of the process that has made it */
};

/* Adds a program to the trace, with a number, and with the block of the process if that has
 * executed it. */
void trace_add(struct trace *t, struct collect *c, const struct collect *former);
void trace_remove(struct trace *t, struct collect *c);

/* The process `pid` has made the fork with a number. */
void trace_forked(struct trace *t, uint64_t number, pid_t pid);

/* Returns the PID of the process that made the program's; 0: not known. */
pid_t trace_parent(const struct trace *t, const struct collect *c);

#endif
