/*
 * Holders: which locks each goroutine holds, in recordings of C programs.
 *
 * A log "holds" names a lock that its goroutine has (docs/recording-programs.md). It counts during
 * the wait after it, in which the goroutine can release nothing, or from the goroutine's end on.
 */
#pragma once

#include <trail/analyze.h>

#include "base/objects.h"
#include "wire/waits.h"

struct trail_analysis;

struct holders {
    struct trail_analysis *analysis;
    struct objects holds; /* of goroutines: struct holds */
};

/* A goroutine that holds a lock. */
struct holder {
    int64_t goroutine; /* TRAIL_NONE: not known */
    trail_name name;   /* its start function */
    bool inferred;     /* by the variables in its stack */
    bool by_owner;     /* known from the lock itself; the start of the hold is not recorded */
    bool ended;        /* without a release */
};

/*
 * Returns the holder of the lock with this name: of several, the one with the lowest ID; one that
 * has ended only if there is no other.
 */
struct holder holders_find(const struct holders *holders, enum wire_wait kind, trail_name object);

/* Returns where the condition that a goroutine waits for was signalled in vain before; 0: not
 * known. */
trail_name holders_signalled(const struct holders *holders, int64_t goroutine);
