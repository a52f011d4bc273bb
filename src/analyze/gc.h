/*
 * GC: mark phases and what happened during them, and stop-the-world pauses. One row per cycle and
 * per pause; at most one assist per goroutine and one sweep per P are open.
 */
#pragma once

#include <trail/analyze.h>

#include "base/objects.h"

struct trail_analysis;

/* A function whose allocations made its goroutine assist, or that stopped the world. */
struct gc_helper {
    trail_name function;
    uint64_t count;
    int64_t ns;
};

struct gc {
    struct trail_analysis *analysis;
    trail_gc_cycle *cycles; /* the last may be in progress */
    size_t cycle_count, cycle_capacity;
    trail_gc_pause *pauses;
    size_t pause_count, pause_capacity;
    struct objects assists, sweeps, stops; /* of goroutines and Ps: struct gc_open */
    struct objects by_function;            /* of assists: struct gc_helper */
    struct objects stopped_by; /* of pauses that are not for the collection; 0: the others */
    bool marking;
    uint64_t heap, goal;
};
