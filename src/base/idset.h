/*
 * A set of 64-bit IDs that only grows: how many different goroutines, threads and Ps a trace has.
 */
#ifndef TRAIL_BASE_IDSET_H
#define TRAIL_BASE_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialised is empty and ready. Open addressing, at most half full; 0 is kept apart. */
struct idset {
    uint64_t *slots; /* 0: free */
    size_t size;     /* a power of two */
    size_t count;
    bool has_zero;
};

/* False when memory is out. */
bool idset_add(struct idset *set, uint64_t id);
void idset_free(struct idset *set);

#endif
