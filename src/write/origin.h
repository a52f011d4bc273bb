/*
 * A source of events, with the IDs that its strings and stacks have in the written trace. A handle
 * of the reader gets its ID when an event first needs it; the ID is valid while two tables live:
 * the reader's (trail_reader_epoch) and the written generation's.
 */
#pragma once

#include <trail/read.h>

/* The ID of a handle, valid during one life of the tables. */
struct known_id {
    uint64_t life, id;
};

struct known_ids {
    struct known_id *ids;
    size_t capacity;
};

/* Set `reader`, `label` and `pc_mask`; zero-initialise the rest. Freed by origin_fini. */
struct origin {
    trail_reader *reader;
    struct origin *next; /* NULL: last */
    uint64_t epoch, generation,
        life; /* `life` is incremented when either of the first two changes */
    struct known_ids strings, stacks, reasons;
    trail_string label; /* a prefix for the names of start functions; at most ORIGIN_LABEL bytes */
    uint64_t pc_mask, pc_bits; /* the bits of an address that are kept, and those that are set */
};

#define ORIGIN_LABEL 256

/* A bit for the address of a start function with a label: for readers, one address is one frame. */
#define ORIGIN_ROOT_PC (UINT64_C(1) << 56)

/* Called before an event: checks whether the reader's or the written tables have changed. */
static inline void origin_refresh(struct origin *origin, uint64_t generation)
{
    uint64_t epoch = trail_reader_epoch(origin->reader);
    if (epoch == origin->epoch && generation == origin->generation)
        return;
    origin->epoch = epoch;
    origin->generation = generation;
    origin->life++;
}

/* Frees the IDs. */
void origin_fini(struct origin *origin);
