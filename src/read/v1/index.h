/*
 * v1, index: the result of one sweep over the file as it arrives, before any event is decoded: 16
 * bytes per batch, the strings and stacks (in the reader's tables), and the CPU samples, the only
 * events that a file does not hold in time order (§3.2). Ordinary events are skipped.
 *
 * Invariant: every record before `end` is well-formed, so that later decoding cannot fail on it.
 */
#ifndef TRAIL_READ_V1_INDEX_H
#define TRAIL_READ_V1_INDEX_H

#include "base/idmap.h"
#include "read/tables.h"
#include "read/v1/input.h"

#define V1_NO_BATCH UINT32_MAX

/* More Ps than any machine has; bounds the memory for a file that consists of Batch records. */
#define V1_MAX_LANES (1u << 17)

/* A batch ends where the next one in the file begins. */
struct v1_batch {
    uint64_t offset; /* of its Batch record, or of its first record if it has none */
    uint32_t next;   /* the P's next batch; V1_NO_BATCH: none */
};

/* The batches of one P, in file order. */
struct v1_chain {
    int64_t proc;
    uint32_t first, last;
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
    int64_t frequency; /* as in the file; may be 0 or negative */
    uint64_t timed;    /* timed records, including CPU samples */
    uint64_t futile;   /* FutileWakeup records */
};

/*
 * Sweeps over `source`, which must be at its start; strings and stacks are added to `tables`, which
 * must be ready and empty. On an error *err has the reason, and the index is valid up to it. The
 * index must be zero-initialized, `err` not NULL; call v1_index_fini in any case.
 */
int v1_index_build(struct v1_index *index, const struct v1_format *format, trail_source *source,
                   struct tables *tables, trail_error *err);
void v1_index_fini(struct v1_index *index);

/* Returns the end of batch number `i`. */
static inline size_t v1_index_batch_end(const struct v1_index *index, size_t i)
{
    return i + 1 < index->batch_count ? index->batches[i + 1].offset : index->end;
}

/* Returns the number of the batch that contains `offset`, -1 if none does. */
int64_t v1_index_batch_at(const struct v1_index *index, uint64_t offset);

#endif
