/*
 * v2 resync: finds where batches continue after bytes that are not batches: text that the program
 * wrote into the trace, damage, another trace. Only used by readers that are not strict.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far after an error batches are searched for: several of maximum size. */
#define V2_RESYNC_REACH ((size_t)512 << 10)

/* The rules for a place where batches continue. */
struct v2_resync {
    int version;
    uint64_t generation; /* of the last good batch; 0: unknown */
    uint64_t reach;      /* by how much the next may be larger */
    uint64_t time_ticks; /* the earliest of any batch so far; 0: unknown */
    bool at_end;         /* the trace has no bytes after these */
    bool irregular;      /* any generation may follow */
};

/*
 * Returns the offset of the first batch whose header, and the next batch's, are plausible; `size`
 * if there is none.
 */
size_t v2_resync_find(const struct v2_resync *rules, const uint8_t *data, size_t size);

/* Whether the bytes are well-formed events up to their end. */
bool v2_resync_events(const uint8_t *at, const uint8_t *end);
