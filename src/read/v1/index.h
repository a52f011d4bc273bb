/*
 * v1, index: the result of one sweep over the file as it arrives, before any event is decoded: 16
 * bytes per batch, the strings and stacks (in the reader's tables), and the CPU samples, the only
 * events that a file does not store in time order (§3.2). Ordinary events are skipped.
 *
 * Invariant: every record before `end` and outside holes is well-formed, so that later decoding
 * cannot fail on it.
 *
 * Holes: after bytes that are not a record, the sweep continues at the next Batch that fits the
 * others, and takes strings and stacks before it. The events of the damaged batch after the start
 * of the hole are lost, because their times are relative to those before them.
 *
 * Text: what the program prints into the file lies between two batches, each of which Go writes in
 * one piece. Many letters are records: the sweep notices the text at one that is not, or that Go
 * would encode in another way, and searches for its start among the records before.
 */
#pragma once

#include "base/idmap.h"
#include "read/tables.h"
#include "read/v1/input.h"

#define V1_NO_BATCH UINT32_MAX

/* More Ps than any machine has; bounds the memory for a file of nothing but Batch records. */
#define V1_MAX_LANES (1u << 17)

/* A batch ends where its hole or the next batch in the file begins. */
struct v1_batch {
    uint64_t offset; /* of its Batch record, or of its first record if it has none */
    uint32_t next;   /* the P's next batch; V1_NO_BATCH: none */
    uint32_t hole;   /* number of the first hole in it, from 1; 0: none */
};

/* The batches of one P, in file order. */
struct v1_chain {
    int64_t proc;
    uint32_t first, last;
    int64_t ticks; /* time at which the last one begins */
};

/* [begin, end) holds no records of events. */
struct v1_hole {
    uint64_t begin, end;
    int64_t latest_ticks; /* later events of its batch are chance bytes */
    bool exact;           /* the trace was cut here: all records before it are sound */
    bool text;            /* the program printed it: no records are lost */
};

struct v1_sample {
    int64_t ticks;
    uint64_t offset;
    uint64_t g;
    uint64_t stack;
    int64_t proc;
};

struct v1_index {
    const struct v1_format *format;
    struct v1_input input;
    size_t end; /* offset: all records before it are well-formed */
    struct v1_batch *batches;
    size_t batch_count, batch_capacity;
    struct v1_chain *chains; /* in the order of their first batch */
    size_t chain_count, chain_capacity;
    struct idmap chain_ids;    /* P -> index + 1 */
    struct v1_sample *samples; /* by time, then offset */
    size_t sample_count, sample_capacity;
    struct idmap timer_gs; /* goroutines that run timers (TimerGoroutine) */
    bool has_frequency;
    int64_t frequency;                 /* as in the file; may be 0 or negative */
    uint64_t timed;                    /* timed records, including CPU samples */
    uint64_t futile;                   /* FutileWakeup records */
    int64_t first_ticks, newest_ticks; /* of the first batch, and the highest of any */
    int64_t longest_ticks;             /* between two batches of one P */
    struct v1_hole *holes;
    size_t hole_count, hole_capacity;
    size_t text_holes;   /* how many of them are text */
    uint64_t text_bytes; /* that the program printed into the trace */
    int64_t text_offset; /* of the first of them; -1: none */
    bool cut;            /* set by the reader: the last events of the Ps are lost */
    int64_t next_trace;  /* offset of another trace after this one, -1: none */
    bool padded;         /* only zero bytes follow `end`, as in a file whose space was reserved */
};

/*
 * Sweeps over `source`, which must be at its start; strings and stacks are added to `tables`, which
 * must be ready and empty. On an error, *err has the reason and the index is valid up to it. With
 * `salvage` the index is also valid after damage: index->holes has the damage, and *err its first
 * reason. The index must be zero-initialized, `err` not NULL; call v1_index_fini in any case.
 */
int v1_index_build(struct v1_index *index, const struct v1_format *format, trail_source *source,
                   struct tables *tables, bool salvage, trail_error *err);
void v1_index_fini(struct v1_index *index);

static inline bool v1_index_is_damaged(const struct v1_index *index)
{
    return index->hole_count > index->text_holes;
}

/* Returns the end of batch number `i`. */
static inline size_t v1_index_batch_end(const struct v1_index *index, size_t i)
{
    if (index->batches[i].hole > 0)
        return index->holes[index->batches[i].hole - 1].begin;
    return i + 1 < index->batch_count ? index->batches[i + 1].offset : index->end;
}

/*
 * Returns the end of the events of a damaged batch that can be trusted: those not later than the
 * hole's latest_ticks, except the last few before damage, which may be chance bytes. `at` is after
 * the Batch record, whose time is `ticks`; the batch ends at `end`.
 */
const uint8_t *v1_hole_trusted(const struct v1_hole *hole, const struct v1_format *format,
                               const struct v1_bytes *bytes, const uint8_t *at, const uint8_t *end,
                               int64_t ticks);

/* Returns the number of the batch that contains `offset`, -1 if none does. */
int64_t v1_index_batch_at(const struct v1_index *index, uint64_t offset);
