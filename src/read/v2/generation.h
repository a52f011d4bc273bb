/*
 * v2 generation: everything in one generation of a trace, assembled from its batches (§6.2).
 *
 * The bytes of a generation are read into one buffer, directly from the source, and stay there
 * while its events are delivered; batches, strings and samples point into it. Bytes read beyond the
 * generation's end are moved to the front for the next one. Memory use therefore follows the
 * largest generation.
 *
 * Up to 1.25 the end of a generation is not marked: it ends where a batch of the next one begins
 * (that batch is "spilled"), and an error after it is kept until the generation has been delivered.
 * From 1.26 on it ends with a byte of its own; for a strict reader, a generation without it is
 * lost.
 *
 * A reader that is not strict skips bytes that are not batches (v2/resync.h).
 */
#pragma once

#include <trail/read.h>

#include "read/tables.h"

#define V2_NO_BATCH UINT32_MAX

/*
 * An event batch: `size` bytes at `at` in the buffer. The batches of a thread are linked in file
 * order, in a damaged generation by time.
 */
struct v2_batch {
    size_t at;
    uint32_t size;
    uint32_t next; /* index, V2_NO_BATCH at the end */
    uint32_t gaps; /* before it in the generation */
    uint64_t thread;
    uint64_t time;
};

/* Bytes of the generation that are not batches. The batch before them ends there at the latest. */
struct v2_gap {
    size_t at, end;
};

struct v2_sample {
    int64_t time_ns;
    int64_t thread, proc, goroutine;
    trail_stack_handle stack;
    size_t index; /* in the file: breaks ties of time */
};

/* Owned by the reader. Zero-initialized: ready to use. */
struct v2_generation {
    int version;
    trail_source *source;
    struct tables *tables; /* the reader's; filled by v2_generation_load */

    uint8_t *buffer;
    size_t capacity, filled;
    size_t used;    /* bytes of the buffer in the current generation */
    int64_t offset; /* offset in the trace of the buffer's first byte */
    bool at_end;    /* the source is at its end */
    bool salvage;   /* the reader is not strict */

    /* What such a reader has skipped. */
    struct v2_gap *gaps; /* of this generation, in order */
    size_t gap_count, gap_capacity;
    trail_error fault;               /* the first damage in this generation; TRAIL_OK: none */
    uint64_t time_ticks;             /* the earliest of any batch so far */
    uint64_t undamaged;              /* number of the previous generation; 0: none, or damaged */
    bool events_lost;                /* from this generation: states after it are unknown */
    bool behind_loss;                /* the next generation begins after lost bytes */
    bool irregular;                  /* numbers do not follow each other, as in traces of tests */
    bool looked_ahead;               /* bytes after it were read: see v2_generation_next_time */
    double usual_ns_per_tick;        /* of the previous generation; 0: unknown */
    uint64_t text_bytes, lost_bytes; /* of the trace so far */
    int64_t text_offset;             /* of the first text; -1: none */
    int64_t next_trace;              /* offset of another trace after this one; -1: none */
    bool frequency_assumed;
    bool unstopped; /* the trace ends in a generation that has only begun */

    uint64_t number;
    uint64_t min_time; /* ticks */
    double ns_per_tick;
    bool has_snapshot;
    trail_clock_snapshot snapshot;
    struct v2_batch *batches; /* event batches in file order */
    size_t batch_count, batch_capacity;
    struct v2_sample *samples; /* sorted by time */
    size_t sample_count, sample_capacity;
    trail_experiment_batch *experiments;
    size_t experiment_count, experiment_capacity;
};

enum v2_load {
    V2_LOADED,
    V2_NO_MORE,
    V2_LOAD_FAILED /* *err has the reason; there is no generation */
};

/*
 * Loads the next generation, replacing the current one. `behind` must be clear; it receives an
 * error after the generation, at its end or in the next one, even if the generation itself is
 * damaged. Do not call again after V2_NO_MORE or a failure.
 */
enum v2_load v2_generation_load(struct v2_generation *generation, trail_error *err,
                                trail_error *behind);

/*
 * Skips generations that other threads have loaded: the source is left where loading them would
 * leave it, and the next generation is the one at `offset`. Returns -1 with *err on an error.
 */
int v2_generation_pass(struct v2_generation *generation, int64_t offset, trail_error *err);

/* Whether the error is damage in the trace's bytes, so that other bytes may be readable. */
bool v2_is_damage(const trail_error *err);

/*
 * Returns the time, in ticks, of the thread's first batch in the next generation; 0 if not known.
 * Searched for only in generations that were loaded with damage.
 */
uint64_t v2_generation_next_time(const struct v2_generation *generation, uint64_t thread);

/*
 * Skips bytes after the current generation up to a place where batches continue. Returns false if
 * there is none, with *err if it could not be read. For readers that are not strict, after an
 * error.
 */
bool v2_generation_resume(struct v2_generation *generation, trail_error *err);

void v2_generation_free(struct v2_generation *generation);
