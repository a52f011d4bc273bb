/*
 * v2 generation: everything that one generation of a trace holds, assembled from its batches
 * (§6.2).
 *
 * The bytes of a generation are read into one buffer, straight from the source, and stay there
 * while its events are delivered; batches, strings and samples point into it. What was read beyond
 * the generation's end is moved to the front for the next one. So memory follows the largest
 * generation.
 *
 * Up to 1.25 nothing marks the end of a generation: it ends where a batch of the next one begins
 * (that batch was "spilled"), and an error behind it is kept until it has been delivered. From 1.26
 * on it ends with a byte of its own, and a generation that lacks it is lost.
 */
#ifndef TRAIL_READ_V2_GENERATION_H
#define TRAIL_READ_V2_GENERATION_H

#include <trail/read.h>

#include "read/tables.h"

#define V2_NO_BATCH UINT32_MAX

/* An event batch: `size` bytes at `at` of the buffer. Batches of one thread are linked in file
 * order. */
struct v2_batch {
    size_t at;
    uint32_t size;
    uint32_t next; /* index, V2_NO_BATCH at the end */
    uint64_t thread;
    uint64_t time;
};

struct v2_sample {
    int64_t time_ns;
    int64_t thread, proc, goroutine;
    trail_stack_handle stack;
    size_t index; /* in the file: breaks ties of time */
};

/* Owned by the reader. Zero-initialised is ready. */
struct v2_generation {
    int version;
    trail_source *source;
    struct tables *tables; /* the reader's; filled by v2_generation_load */

    uint8_t *buffer;
    size_t capacity, filled;
    size_t used;    /* bytes of the buffer that belong to the current generation */
    int64_t offset; /* in the trace, of the buffer's first byte */
    bool at_end;    /* the source has no more */

    uint64_t number;
    uint64_t min_time; /* ticks */
    double ns_per_tick;
    bool has_snapshot;
    trail_clock_snapshot snapshot;
    struct v2_batch *batches; /* event batches in file order */
    size_t batch_count, batch_capacity;
    struct v2_sample *samples; /* in order of time */
    size_t sample_count, sample_capacity;
    trail_experiment_batch *experiments;
    size_t experiment_count, experiment_capacity;
};

enum v2_load {
    V2_LOADED,
    V2_NO_MORE,
    V2_LOAD_FAILED /* *err says why; there is no generation */
};

/*
 * Loads the next generation in place of the current one. `behind` must be clear; an error that
 * stands behind the generation, in the bytes that should be its end or the next one, is put there,
 * also when the generation itself is wrong. After that, V2_NO_MORE or a failure: no more calls.
 */
enum v2_load v2_generation_load(struct v2_generation *generation, trail_error *err,
                                trail_error *behind);

void v2_generation_free(struct v2_generation *generation);

#endif
