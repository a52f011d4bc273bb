/*
 * Threads and Ps: how long goroutines ran on each, and were in system calls there. A goroutine is
 * placed where the event that sets it going happens; one that the trace finds going is placed by the
 * first event that it does itself. When they ran is kept in slices of the time.
 *
 * Memory follows the goroutines that are going, and the rows.
 */
#ifndef TRAIL_ANALYZE_THREADS_H
#define TRAIL_ANALYZE_THREADS_H

#include <trail/analyze.h>

#include "analyze/slices.h"
#include "base/idmap.h"
#include "base/slab.h"

struct analysis_part;
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

/* What is known of a P beside its row: at the same place. */
struct proc_state {
    int64_t since_ns;
    struct placed *syscalling; /* who is in a system call on it */
    uint8_t state;             /* trail_proc_state */
};

struct threads {
    struct trail_analysis *analysis;
    struct thread_rows thread_rows;
    struct proc_rows proc_rows;
    struct proc_state *procs;
    size_t proc_capacity;
    struct idmap thread_places, proc_places; /* ID -> place in the rows, + 1 */
    struct idmap going;                      /* goroutine -> struct placed */
    size_t unplaced;                         /* of those, found and not placed yet */
    struct slab slab;
    struct slices thread_slices, proc_slices; /* running, at the same place as the rows */
    size_t slice_count;
    int64_t sync_ns;
    int64_t counted_from_ns;
};

extern const struct analysis_part threads_part;

#endif
