/*
 * Threads and Ps: how long goroutines ran and were in system calls on each. A goroutine is placed
 * on the thread and P of the event that sets it running; one that is found running is placed by the
 * first event of its own. Running time is kept in slices.
 *
 * Memory grows with the goroutines running or in system calls, and with the rows.
 */
#pragma once

#include <trail/analyze.h>

#include "analyze/slices.h"
#include "base/objects.h"

struct placed;
struct trail_analysis;

struct thread_rows {
    trail_thread *items;
    size_t count, capacity;
};

struct proc_rows {
    trail_proc *items;
    size_t count, capacity;
};

/* State of a P besides its row, at the same index. */
struct proc_state {
    int64_t since_ns;
    struct placed *syscalling; /* the goroutine in a system call on it */
    uint8_t state;             /* trail_proc_state */
};

struct threads {
    struct trail_analysis *analysis;
    struct thread_rows thread_rows;
    struct proc_rows proc_rows;
    struct proc_state *procs;
    size_t proc_capacity;
    struct idmap thread_places, proc_places; /* ID -> index of the row, + 1 */
    struct objects going;                    /* of goroutines: struct placed */
    size_t unplaced; /* those in `going` that were found and are not placed yet */
    struct slices thread_slices, proc_slices; /* running time, by index of the row */
    size_t slice_count;
    int64_t sync_ns;
    int64_t counted_from_ns;
};
