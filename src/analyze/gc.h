/*
 * GC: mark phases with what belonged to them, and when the world was stopped. Rows are as many as
 * cycles and pauses; open are at most one assist a goroutine and one sweep a P.
 */
#ifndef TRAIL_ANALYZE_GC_H
#define TRAIL_ANALYZE_GC_H

#include <trail/analyze.h>

#include "base/idmap.h"
#include "base/slab.h"

struct gc_open;
struct trail_analysis;

/* Set the object size of the slab and leave the rest zero. */
struct gc {
    trail_gc_cycle *cycles; /* the last may be under way */
    size_t cycle_count, cycle_capacity;
    trail_gc_pause *pauses;
    size_t pause_count, pause_capacity;
    struct idmap assists, sweeps, stops; /* goroutine or P -> struct gc_open */
    struct slab slab;
    bool marking;
    uint64_t heap, goal;
};

#define GC_OPEN_SIZE (3 * sizeof(int64_t))

/* Ranges and metrics. False when memory is out. */
bool gc_event(struct trail_analysis *analysis, const trail_event *event);

/* The window begins: only what is on then stays. */
void gc_count_from(struct gc *gc, int64_t ns);

/* What is on ends here. False when memory is out. */
bool gc_finish(struct trail_analysis *analysis, int64_t ns);
void gc_free(struct gc *gc);

#endif
