/*
 * v1, index: what one sweep over the file finds while it arrives, before any event is looked at. It keeps little: 16
 * bytes a batch, the strings and stacks (in the reader's tables), and the CPU samples, which are
 * the only events that a file does not hold in the order of their time (§3.2). Ordinary events are
 * stepped over.
 *
 * Invariant: every record before `end` is well-formed, so whoever decodes later meets no surprise.
 */
#ifndef TRAIL_READ_V1_INDEX_H
#define TRAIL_READ_V1_INDEX_H

#include "base/idmap.h"
#include "read/tables.h"
#include "read/v1/input.h"

#define V1_NO_BATCH UINT32_MAX

/* More Ps than any machine has; bounds the memory that a file of nothing but Batch records takes.
 */
#define V1_MAX_LANES (1u << 17)

/* A batch ends where the next one in the file begins. */
struct v1_batch {
    uint64_t offset; /* of its Batch record, or of its first record if it has none */
    uint32_t next;   /* of the same P; V1_NO_BATCH at the last */
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
    size_t end; /* offset: all records before it are good */
    struct v1_batch *batches;
    size_t batch_count, batch_capacity;
    struct v1_chain *chains; /* in the order of first appearance in the file */
    size_t chain_count, chain_capacity;
    struct idmap chain_ids;    /* P -> index + 1 */
    struct v1_sample *samples; /* by time, then offset */
    size_t sample_count, sample_capacity;
    struct idmap timer_gs; /* goroutines that run timers (TimerGoroutine) */
    bool has_frequency;
    int64_t frequency; /* as in the file: may be 0 or negative */
    uint64_t timed;    /* timed records, CPU samples among them */
    uint64_t futile;   /* FutileWakeup records */
};

/*
 * Sweeps over `source` (at its start); strings and stacks go to `tables`, which are ready and empty. On
 * an error *err says what is wrong and the index holds what was good before it. Zero-initialise before;
 * `err` is not NULL; v1_index_fini always.
 */
int v1_index_build(struct v1_index *index, const struct v1_format *format, trail_source *source,
                   struct tables *tables, trail_error *err);
void v1_index_fini(struct v1_index *index);

/* Where batch number `i` ends. */
static inline size_t v1_index_batch_end(const struct v1_index *index, size_t i)
{
    return i + 1 < index->batch_count ? index->batches[i + 1].offset : index->end;
}

/* The number of the batch that holds `offset`, -1 if none does. */
int64_t v1_index_batch_at(const struct v1_index *index, uint64_t offset);

#endif
