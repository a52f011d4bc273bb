/*
 * Walk: the batches of a trace in file order, without decoding their events.
 *
 * Memory is walked in place. In a v2 file, only the header of each batch and the first byte of its
 * data are read (§5.1, §6.1), and the data on request. Everything else passes through a window that
 * holds at least the batch delivered last: v1 has no sizes, so every record is lexed (§1.1).
 *
 * Invariant: `at` is at the data of the batch delivered last, all `size` bytes of which are
 * present, except in a v2 file; `offset` is the offset of `at` in the trace.
 */
#include <trail/read.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/varint.h"
#include "read/reader.h"
#include "read/source.h"
#include "read/v1/lex.h"
#include "read/v2/batch.h"

#define WINDOW_SIZE      ((size_t)256 << 10) /* initially; more than any batch of v2 */
#define HEADER_FIRST     'g'                 /* of "go 1.N trace" */
#define HEADER_READ_SIZE 64                  /* holds a header of v2 and the byte after it */

struct trail_walk {
    trail_source *source;
    int version;
    const uint8_t *at, *end;
    uint8_t *window; /* holds [at, end); NULL: in place */
    size_t window_size;
    bool headers_only; /* a v2 file: [at, end) has only headers */
    int64_t offset, taken;
    int64_t next_trace; /* offset of the trace after the batches; -1: none */
    uint64_t size;
    bool failed;
    struct v1_lex lex;
    /* v1: lexers that stop before the end of a run, [0] outside batches, [1] inside */
    struct v1_lex runs[2];
    trail_error error;
};

static int walk_fail(trail_walk *walk, const trail_batch *batch)
{
    walk->error.offset = batch->offset;
    if (batch->generation > 0)
        walk->error.generation = (int64_t)batch->generation;
    walk->failed = true;
    return -1;
}

static void walk_advance(trail_walk *walk, uint64_t size)
{
    walk->offset += (int64_t)size;
    if (walk->headers_only && size > (uint64_t)(walk->end - walk->at))
        walk->at = walk->end = walk->window;
    else
        walk->at += size;
}

/* MARK: The window */

/*
 * Reads up to `size` bytes at `offset` of a file, fewer only at its end. Returns false on an error.
 */
static bool window_read_at(trail_walk *walk, size_t size)
{
    uint64_t left = (uint64_t)(trail_source_size(walk->source) - walk->offset);
    if (size > left)
        size = (size_t)left;
    walk->at = walk->end = walk->window;
    if (source_again(walk->source, (uint64_t)walk->offset, walk->window, size, &walk->error) < 0) {
        walk->failed = true;
        return false;
    }
    walk->end += size;
    return true;
}

/* Makes room after the bytes left in the window. */
static bool window_room(trail_walk *walk, size_t size)
{
    size_t have = (size_t)(walk->end - walk->at);
    uint8_t *window = walk->window;
    if (size > walk->window_size || have == walk->window_size) {
        size_t wanted = 2 * walk->window_size;
        window = wanted > walk->window_size ? malloc(wanted) : NULL;
        if (!window) {
            walk->failed = true;
            return error_set(&walk->error, TRAIL_NO_MEMORY,
                             "no memory for a batch of over %zu bytes", have) == 0;
        }
        walk->window_size = wanted;
    }
    memmove(window, walk->at, have);
    if (window != walk->window)
        free(walk->window);
    walk->window = window;
    walk->at = window;
    walk->end = window + have;
    return true;
}

/* Appends bytes to [at, end). Returns 1, 0 at the end of the trace, -1 on an error. */
static int window_more(trail_walk *walk)
{
    size_t have = (size_t)(walk->end - walk->at);
    if (!walk->window)
        return 0;
    if (!window_room(walk, have + 1))
        return -1;
    ssize_t n =
        source_read(walk->source, walk->window + have, walk->window_size - have, &walk->error);
    walk->failed = n < 0;
    walk->end += n > 0 ? n : 0;
    return n < 0 ? -1 : n > 0;
}

/*
 * Makes at least `size` bytes of [at, end) available, fewer only at the end of the trace. Returns
 * false on an error.
 */
static bool window_fill(trail_walk *walk, size_t size)
{
    int more = 1;
    if (walk->headers_only)
        return (size_t)(walk->end - walk->at) >= size || window_read_at(walk, HEADER_READ_SIZE);
    while (more > 0 && (size_t)(walk->end - walk->at) < size)
        more = window_more(walk);
    return more >= 0;
}

/*
 * Whether another trace begins `from` bytes after `at`, where no record or batch can begin with the
 * first byte of a header. If so, notes it.
 */
static bool at_trace(trail_walk *walk, size_t from)
{
    if (!window_fill(walk, from + WIRE_HEADER_SIZE) ||
        (size_t)(walk->end - walk->at) < from + WIRE_HEADER_SIZE ||
        wire_header_parse(walk->at + from) == 0)
        return false;
    walk->next_trace = walk->offset + (int64_t)from;
    return true;
}

/* MARK: v2 */

/* Advances to the data of the batch, which must be complete. */
static bool v2_data(trail_walk *walk, const trail_batch *batch)
{
    walk_advance(walk, batch->header_size);
    /* In a v2 file, only the first byte of the data (the kind) is needed; it may come after the
     * bytes read for the header. */
    if (!window_fill(walk, walk->headers_only ? batch->size > 0 : batch->size))
        return false;
    uint64_t have = walk->headers_only ? (uint64_t)(trail_source_size(walk->source) - walk->offset)
                                       : (uint64_t)(walk->end - walk->at);
    if (have >= batch->size)
        return true;
    error_set(&walk->error, TRAIL_TRUNCATED,
              "failed to read full batch: read %" PRIu64 " but wanted %" PRIu64, have, batch->size);
    return false;
}

static int v2_next(trail_walk *walk, trail_batch *batch)
{
    struct v2_batch_header header = {0};
    size_t length;
    /* Reads no more bytes than the header needs: later ones may be slow to arrive. */
    for (size_t want = 1;;) {
        if (!window_fill(walk, want))
            return -1;
        size_t have = (size_t)(walk->end - walk->at);
        if (have == 0)
            return 0;
        enum v2_header_result result = V2_HEADER_SHORT;
        if (have >= want)
            result = v2_batch_header(walk->at, have, walk->version, &header, &length, &walk->error);
        batch->generation = header.generation;
        if (result == V2_HEADER_OK)
            break;
        if (result == V2_HEADER_BAD && at_trace(walk, 0)) {
            error_clear(&walk->error);
            return 0;
        }
        if (have < want || result == V2_HEADER_BAD)
            return walk_fail(walk, batch);
        want = have + 1;
    }
    batch->header_size = length;
    batch->size = header.size;
    if (!header.end_of_generation && header.generation == 0) {
        error_set(&walk->error, TRAIL_CORRUPT, "invalid generation number 0");
        return walk_fail(walk, batch);
    }
    if (!header.end_of_generation) {
        batch->thread = (int64_t)header.thread;
        batch->time_ticks = header.time;
        batch->experiment = header.experiment;
    }
    if (!v2_data(walk, batch))
        return walk_fail(walk, batch);
    batch->kind = v2_batch_kind(&header, batch->size > 0 ? *walk->at : 0, walk->version);
    return 1;
}

/* MARK: v1 */

/* Decodes the Batch record that ends at `next`. */
static int v1_header(trail_walk *walk, const uint8_t *next, trail_batch *batch)
{
    const uint8_t *at = walk->at + 1;
    uint64_t proc;
    if (*walk->at >> V1_COUNT_SHIFT != 1) {
        error_set(&walk->error, TRAIL_CORRUPT,
                  "EvBatch has wrong number of arguments: got %u, want 2",
                  (*walk->at >> V1_COUNT_SHIFT) + 1u);
        return walk_fail(walk, batch);
    }
    at = uvarint_get(at, next, &proc);
    if (at && walk->version < 7) /* the sequence number */
        at = uvarint_get(at, next, &batch->time_ticks);
    if (at)
        at = uvarint_get(at, next, &batch->time_ticks);
    if (!at) {
        error_set(&walk->error, TRAIL_CORRUPT, "bad value in the batch at offset 0x%" PRIx64,
                  batch->offset);
        return walk_fail(walk, batch);
    }
    if (proc != V1_NO_PROC && proc > V1_MAX_PROC) {
        error_set(&walk->error, TRAIL_CORRUPT,
                  "processor ID %" PRIu64 " is larger than maximum of %d", proc, V1_MAX_PROC);
        return walk_fail(walk, batch);
    }
    batch->proc = proc == V1_NO_PROC ? -1 : (int64_t)proc;
    batch->header_size = (uint64_t)(next - walk->at);
    return 1;
}

/*
 * Whether the type never occurs inside a batch of this version (§1.5): it is part of the trace's
 * footer, which belongs to no batch even though no Batch record precedes it.
 */
static bool v1_is_footer(unsigned type, int version)
{
    if (type == V1_Stack)
        return version < 11;
    return (type == V1_Frequency || type == V1_TimerGoroutine) && version < 21;
}

static void v1_init(trail_walk *walk)
{
    struct v1_lex *inside = &walk->runs[1], *outside = &walk->runs[0];
    v1_lex_init(&walk->lex, walk->version);
    *inside = *outside = walk->lex;
    for (unsigned first = 0; first < 256; first++) {
        unsigned type = first & V1_TYPE_MASK;
        if (type == V1_Batch || first == HEADER_FIRST)
            outside->class[first] = inside->class[first] = V1_LEX_STOP;
        if (v1_is_footer(type, walk->version))
            inside->class[first] = V1_LEX_STOP;
    }
}

/*
 * Reads more bytes for the incomplete record at `done` after `at`. Returns false with the error if
 * the record is damaged, or if there are no more bytes.
 */
static bool v1_more(trail_walk *walk, size_t done)
{
    int64_t offset = walk->offset + (int64_t)done;
    v1_lex_error(&walk->lex, walk->at + done, walk->end, offset, &walk->error);
    int more = walk->error.code == TRAIL_TRUNCATED ? window_more(walk) : 0;
    if (more > 0)
        error_clear(&walk->error);
    else
        walk->failed = true;
    return more > 0;
}

/*
 * Returns the size of the record at `done` after `at`; 0 with walk->error if it is damaged.
 */
static size_t v1_record_size(trail_walk *walk, size_t done)
{
    const uint8_t *next;
    while (!(next = v1_lex_skip(&walk->lex, walk->at + done, walk->end)))
        if (!v1_more(walk, done))
            return 0;
    return (size_t)(next - walk->at) - done;
}

/* Counts a record that begins like a header but is not one. Returns as v1_records. */
static bool v1_no_header(trail_walk *walk, size_t *size, uint64_t *count)
{
    size_t record = walk->failed ? 0 : v1_record_size(walk, *size);
    *size += record;
    *count += record > 0;
    return record > 0;
}

/*
 * Counts the records from `at` on, and their bytes. Returns false with walk->error if one is
 * damaged.
 */
static bool v1_records(trail_walk *walk, bool inside, size_t *size, uint64_t *count)
{
    const struct v1_lex *run = &walk->runs[inside];
    for (;;) {
        const uint8_t *end = v1_lex_run(run, walk->at + *size, walk->end, count);
        *size = (size_t)(end - walk->at);
        if (end < walk->end && run->class[*end] == V1_LEX_STOP) {
            if (*end != HEADER_FIRST || at_trace(walk, *size))
                return true;
            if (!v1_no_header(walk, size, count))
                return false;
            continue;
        }
        if (end < walk->end) {
            if (!v1_more(walk, *size))
                return false;
            continue;
        }
        int more = window_more(walk);
        if (more <= 0)
            return more == 0;
    }
}

static int v1_next(trail_walk *walk, trail_batch *batch)
{
    if (!window_fill(walk, 1))
        return -1;
    if (walk->at == walk->end)
        return 0;
    batch->kind = TRAIL_BATCH_EVENTS;
    bool inside = (*walk->at & V1_TYPE_MASK) == V1_Batch;
    if (inside) {
        size_t record = v1_record_size(walk, 0);
        if (record == 0 || v1_header(walk, walk->at + record, batch) < 0)
            return -1;
    }
    walk_advance(walk, batch->header_size);
    size_t size = 0;
    if (!v1_records(walk, inside, &size, &batch->records))
        return -1;
    batch->size = size;
    return inside || size > 0;
}

/* MARK: The public side */

/* Begins the walk: in place if possible, otherwise with a window. */
static int walk_begin(trail_walk *walk, trail_error *err)
{
    size_t size = 0;
    walk->version = reader_peek_version(walk->source, err);
    if (walk->version < 0)
        return -1;
    bool v2 = trail_version_is_v2(walk->version);
    if (!v2)
        v1_init(walk);
    if (!source_in_place(walk->source, &walk->at, &size)) {
        walk->headers_only = v2 && source_is_file(walk->source);
        walk->window_size = WINDOW_SIZE;
        walk->at = walk->window = malloc(walk->window_size);
        if (!walk->window)
            return error_no_memory(err);
    }
    walk->end = walk->at + size;
    if (!window_fill(walk, WIRE_HEADER_SIZE)) {
        if (err)
            *err = walk->error;
        return -1;
    }
    walk_advance(walk, WIRE_HEADER_SIZE);
    return 0;
}

trail_walk *trail_walk_open(trail_source *source, trail_error *err)
{
    trail_walk *walk = calloc(1, sizeof *walk);
    if (!walk) {
        error_no_memory(err);
        return NULL;
    }
    error_clear(&walk->error);
    walk->next_trace = -1;
    walk->source = source;
    if (walk_begin(walk, err) == 0)
        return walk;
    trail_walk_close(walk);
    return NULL;
}

int trail_walk_version(const trail_walk *walk)
{
    return walk->version;
}

/* Consumes from the source what was walked, for trail_source_position. */
static void walk_show(trail_walk *walk)
{
    (void)source_skip(walk->source, (uint64_t)(walk->offset - walk->taken), NULL);
    walk->taken = walk->offset;
}

int trail_walk_next(trail_walk *walk, trail_batch *batch)
{
    if (walk->failed)
        return -1;
    walk_advance(walk, walk->size);
    walk->size = 0;
    *batch = (trail_batch){.thread = -1, .proc = -1, .offset = walk->offset};
    if (walk->headers_only)
        walk_show(walk);
    int result = trail_version_is_v2(walk->version) ? v2_next(walk, batch) : v1_next(walk, batch);
    if (result > 0)
        walk->size = batch->size;
    return result;
}

int64_t trail_walk_next_trace(const trail_walk *walk)
{
    return walk->next_trace;
}

/* After v1 in the same file, v2 is also read in full: the source is ahead of the walk. */
static void walk_change(trail_walk *walk, int version)
{
    const bool v2 = trail_version_is_v2(version);
    if (walk->headers_only && !v2) {
        walk_show(walk);
        walk->at = walk->end = walk->window;
    }
    walk->headers_only &= v2;
    walk->version = version;
    if (!v2)
        v1_init(walk);
}

int trail_walk_go_on(trail_walk *walk)
{
    if (walk->failed || walk->next_trace < 0 || walk->offset != walk->next_trace)
        return error_set(&walk->error, TRAIL_USAGE, "the walk is not before another trace");
    int version = reader_version(walk->at, &walk->error);
    if (version < 0)
        walk->error.offset = walk->offset;
    walk->failed = version < 0;
    walk->next_trace = -1;
    if (walk->failed)
        return -1;
    walk_change(walk, version);
    if (!window_fill(walk, WIRE_HEADER_SIZE))
        return -1;
    walk_advance(walk, WIRE_HEADER_SIZE);
    return 0;
}

const uint8_t *trail_walk_data(trail_walk *walk)
{
    if (walk->failed || (walk->headers_only && (uint64_t)(walk->end - walk->at) < walk->size &&
                         !window_read_at(walk, walk->size)))
        return NULL;
    return walk->at;
}

const trail_error *trail_walk_error(const trail_walk *walk)
{
    return &walk->error;
}

void trail_walk_close(trail_walk *walk)
{
    if (!walk)
        return;
    free(walk->window);
    free(walk);
}
