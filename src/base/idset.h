/* A set of 64-bit IDs that only grows, to count distinct goroutines, threads and Ps. */
#ifndef TRAIL_BASE_IDSET_H
#define TRAIL_BASE_IDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Zero-initialized is empty and ready to use. Open addressing, at most half full; 0 is stored
 * apart.
 */
struct idset {
    uint64_t *slots; /* 0: free */
    size_t size;     /* a power of two */
    size_t count;
    bool has_zero;
};

/* Returns false if out of memory. */
bool idset_add(struct idset *set, uint64_t id);
void idset_free(struct idset *set);

#endif
