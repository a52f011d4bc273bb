/*
 * Stuck: who waits for a lock when the trace, or the window, ends, and who holds it; and which of these wait for each
 * other in a circle.
 *
 * A log "holds" names a lock that its goroutine has (docs/recording-programs.md). It counts while the goroutine is in
 * the wait behind it, in which it can give nothing up, or to its end if the trace ends before.
 */
#ifndef TRAIL_ANALYZE_STUCK_H
#define TRAIL_ANALYZE_STUCK_H

#include <trail/analyze.h>

#include "base/idmap.h"
#include "base/slab.h"

enum { STUCK_HOLDS = 16 };

/* What a goroutine has. */
struct stuck_holds {
    uint64_t locks[STUCK_HOLDS]; /* kind << 32 | name */
    size_t count;
    trail_name name; /* of the goroutine */
};

/* One that waits for a lock at the end. */
struct stuck_wait {
    int64_t goroutine, begin_ns, ns;
    trail_name name;   /* its start function */
    trail_name kind;   /* of the lock: "mutex" */
    trail_name object; /* "stats_mu" */
    int64_t holder;    /* TRAIL_NONE: not known */
    trail_name holder_name;
    size_t next;   /* the wait of the holder; SIZE_MAX: it waits for no lock */
    size_t circle; /* 0: in none; else the number of that which it is in */
};

struct stuck {
    struct trail_analysis *analysis;
    struct idmap holds; /* goroutine -> struct stuck_holds */
    struct slab slab;
    struct stuck_wait *waits; /* made at the end, by goroutine */
    size_t count, capacity;
    size_t circles;
};

extern const struct analysis_part stuck_part;

#endif
