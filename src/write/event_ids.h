/*
 * A trace that events come from, with the IDs that its strings and stacks have in the trace that is
 * written. A handle of the reader gets its ID when an event first needs it, and keeps it as long as two
 * tables live: that of the reader (trail_reader_epoch) and that of the generation that is written.
 */
#ifndef TRAIL_WRITE_EVENT_IDS_H
#define TRAIL_WRITE_EVENT_IDS_H

#include <trail/read.h>

/* The ID of a handle, valid in one life of the tables. */
struct known_id {
    uint64_t life, id;
};

struct known_ids {
    struct known_id *ids;
    size_t count, capacity;
};

/* Zero-initialised but for `reader`, `label` and `pc_mask`, which the owner sets; see origin_fini. */
struct origin {
    trail_reader *reader;
    struct origin *next;              /* NULL: the last */
    uint64_t epoch, generation, life; /* `life` goes up when one of the first two changes */
    struct known_ids strings, stacks, reasons;
    trail_string label; /* a prefix for the names of start functions; at most ORIGIN_LABEL bytes */
    uint64_t pc_mask, pc_bits; /* which bits of an address stay, and which are set */
};

#define ORIGIN_LABEL 256

/* A bit for the address of a start function with a label: for readers, one address is one frame. */
#define ORIGIN_ROOT_PC (UINT64_C(1) << 56)

/* Before an event: the reader's tables, or those that are written, may be new since the last one. */
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

#endif
