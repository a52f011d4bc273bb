/* v1, index: one sweep that finds batches, strings, stacks and samples. */
#include "read/v1/index.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

/* State of the sweep. */
struct sweep {
    struct v1_index *index;
    struct tables *tables;
    trail_error *err;
    uint64_t *frames; /* of the stack being read: 4 numbers each */
    size_t frames_capacity;
};

static int no_memory(struct sweep *sweep)
{
    return error_set(sweep->err, TRAIL_NO_MEMORY, "out of memory while indexing the trace");
}

static struct v1_chain *chain_of(struct sweep *sweep, int64_t proc)
{
    struct v1_index *index = sweep->index;
    size_t known = (size_t)(uintptr_t)idmap_find(&index->chain_ids, (uint64_t)proc);
    if (known)
        return &index->chains[known - 1];
    if (index->chain_count >= V1_MAX_LANES) {
        error_set(sweep->err, TRAIL_CORRUPT, "more than %u Ps", V1_MAX_LANES);
        return NULL;
    }
    if (!GROW(index->chains, index->chain_capacity, index->chain_count + 1))
        return no_memory(sweep), NULL;
    if (!idmap_put(&index->chain_ids, (uint64_t)proc, (void *)(uintptr_t)(index->chain_count + 1)))
        return no_memory(sweep), NULL;
    struct v1_chain *chain = &index->chains[index->chain_count++];
    *chain = (struct v1_chain){.proc = proc, .first = V1_NO_BATCH};
    return chain;
}

static int add_batch(struct sweep *sweep, int64_t proc, uint64_t offset)
{
    struct v1_index *index = sweep->index;
    struct v1_chain *chain = chain_of(sweep, proc);
    if (!chain)
        return -1;
    if (index->batch_count >= V1_NO_BATCH ||
        !GROW(index->batches, index->batch_capacity, index->batch_count + 1))
        return no_memory(sweep);
    uint32_t i = (uint32_t)index->batch_count++;
    index->batches[i] = (struct v1_batch){.offset = offset, .next = V1_NO_BATCH};
    if (chain->first == V1_NO_BATCH)
        chain->first = i;
    else
        index->batches[chain->last].next = i;
    chain->last = i;
    return 0;
}

static int on_batch(struct sweep *sweep, const struct v1_record *record, uint64_t offset)
{
    uint64_t proc = record->number[0];
    if (sweep->index->format->newer_rules && proc != V1_NO_PROC && proc > V1_MAX_PROC)
        return error_set(sweep->err, TRAIL_CORRUPT,
                         "processor ID %llu is larger than maximum of %d", (unsigned long long)proc,
                         V1_MAX_PROC);
    return add_batch(sweep, (int64_t)proc, offset);
}

static int on_frequency(struct sweep *sweep, const struct v1_record *record)
{
    sweep->index->has_frequency = true;
    sweep->index->frequency = (int64_t)record->number[0];
    return 0;
}

static int on_timer_goroutine(struct sweep *sweep, const struct v1_record *record)
{
    void *set = sweep->index;
    return idmap_put(&sweep->index->timer_gs, record->number[0], set) ? 0 : no_memory(sweep);
}

static int on_string(struct sweep *sweep, const struct v1_record *record, uint64_t offset)
{
    trail_string text = record->text;
    if (!sweep->index->input.in_place &&
        !(text.data = arena_copy(&sweep->tables->extra, text.data, text.size)))
        return no_memory(sweep);
    switch (tables_add_string(sweep->tables, record->number[0], text)) {
    case TABLE_OK:
        return 0;
    case TABLE_DUPLICATE:
        return error_set(sweep->err, TRAIL_CORRUPT, "string at offset 0x%llx has duplicate id %llu",
                         (unsigned long long)offset, (unsigned long long)record->number[0]);
    case TABLE_FULL:
        return error_set(sweep->err, TRAIL_CORRUPT, "trace contains too many strings");
    default:
        return no_memory(sweep);
    }
}

/* Ignores stacks with ID 0 or without frames. Of several with one ID the last counts, as in Go. */
static int on_stack(struct sweep *sweep, const struct v1_record *record)
{
    size_t count = (size_t)record->number[1];
    if (record->number[0] == 0 || count == 0)
        return 0;
    if (!GROW(sweep->frames, sweep->frames_capacity, count * 4) || !sweep->frames)
        return no_memory(sweep);
    unsigned fields = sweep->index->format->version < 7 ? 1 : 4;
    const uint8_t *at = record->frames;
    for (size_t i = 0; i < count; i++) {
        uint64_t *frame = sweep->frames + 4 * i;
        memset(frame, 0, 4 * sizeof *frame);
        for (unsigned k = 0; k < fields; k++) {
            at = uvarint_get(at, record->end, &frame[k]);
            if (!at)
                return error_set(sweep->err, TRAIL_IO, "the trace changed while it was being read");
        }
    }
    switch (tables_replace_stack(sweep->tables, record->number[0], sweep->frames, count)) {
    case TABLE_OK:
        return 0;
    case TABLE_FULL:
        return error_set(sweep->err, TRAIL_CORRUPT, "trace contains too many stacks");
    default:
        return no_memory(sweep);
    }
}

static int on_sample(struct sweep *sweep, const struct v1_record *record, uint64_t offset)
{
    struct v1_index *index = sweep->index;
    if (!GROW(index->samples, index->sample_capacity, index->sample_count + 1))
        return no_memory(sweep);
    index->samples[index->sample_count++] = (struct v1_sample){
        .ticks = (int64_t)record->number[1],
        .proc = (int64_t)record->number[2],
        .g = record->number[3],
        .stack = record->number[4],
        .offset = offset,
    };
    return 0;
}

/* A timed record before any Batch: Go <= 1.21 assigns it to P 0, from tick 0 on. */
static int before_any_batch(struct sweep *sweep, unsigned type, uint64_t offset)
{
    if (sweep->index->format->newer_rules)
        return error_set(sweep->err, TRAIL_CORRUPT,
                         "read event %u with current P of 0, but P has no batches yet", type);
    return type == V1_CPUSample ? 0 : add_batch(sweep, 0, offset);
}

static int take_record(struct sweep *sweep, const struct v1_record *record, uint64_t offset)
{
    struct v1_index *index = sweep->index;
    unsigned type = record->type;
    bool timed = v1_time_fields(type, index->format->version) > 0;
    if (index->batch_count == 0 && type != V1_Batch && type != V1_String &&
        (timed || index->format->newer_rules) && before_any_batch(sweep, type, offset) < 0)
        return -1;
    index->timed += timed;
    switch (type) {
    case V1_Batch:
        return on_batch(sweep, record, offset);
    case V1_Frequency:
        return on_frequency(sweep, record);
    case V1_TimerGoroutine:
        return on_timer_goroutine(sweep, record);
    case V1_String:
        return on_string(sweep, record, offset);
    case V1_Stack:
        return on_stack(sweep, record);
    case V1_CPUSample:
        return on_sample(sweep, record, offset);
    case V1_FutileWakeup:
        index->futile++;
        return 0;
    default:
        return 0;
    }
}

/*
 * Takes the record at *at, and skips ordinary ones after it. Returns 1, 0 at the end, -1 on an
 * error.
 */
static int sweep_some(struct sweep *sweep, const uint8_t **at)
{
    struct v1_index *index = sweep->index;
    const struct v1_bytes *bytes = &index->input.bytes;
    struct v1_record record;
    trail_error err;
    error_clear(&err);
    while (*at == bytes->data + bytes->size ||
           v1_record_read(index->format, bytes, *at, &record, &err) < 0) {
        /* The record may only be incomplete in the window. */
        bool cut = err.code == TRAIL_OK || err.code == TRAIL_TRUNCATED;
        trail_error reason = err;
        int more = cut ? v1_input_more(&index->input, at, &err) : 0;
        if (more > 0) {
            error_clear(&err);
            continue;
        }
        if (more == 0 && reason.code == TRAIL_OK)
            return 0;
        *sweep->err = more < 0 ? err : reason;
        return -1;
    }
    uint64_t offset = v1_offset(bytes, *at);
    if (take_record(sweep, &record, offset) < 0) {
        sweep->err->offset = (int64_t)offset;
        return -1;
    }
    *at = record.end;
    if (index->batch_count > 0)
        *at = v1_records_skip(index->format, *at, bytes->data + bytes->size, &index->timed);
    index->end = (size_t)v1_offset(bytes, *at);
    return 1;
}

/* Skips the header, which was checked before. */
static int sweep_header(struct sweep *sweep, const uint8_t **at)
{
    struct v1_index *index = sweep->index;
    const struct v1_bytes *bytes = &index->input.bytes;
    *at = bytes->data;
    while (bytes->size < WIRE_HEADER_SIZE) {
        int more = v1_input_more(&index->input, at, sweep->err);
        if (more <= 0)
            return more;
    }
    *at = bytes->data + WIRE_HEADER_SIZE;
    index->end = WIRE_HEADER_SIZE;
    return 1;
}

static int sweep_all(struct sweep *sweep)
{
    const uint8_t *at;
    int result = sweep_header(sweep, &at);
    while (result > 0)
        result = sweep_some(sweep, &at);
    return result;
}

static int compare_samples(const void *a, const void *b)
{
    const struct v1_sample *x = a, *y = b;
    int order = ORDER(x->ticks, y->ticks);
    return order ? order : ORDER(x->offset, y->offset);
}

int v1_index_build(struct v1_index *index, const struct v1_format *format, trail_source *source,
                   struct tables *tables, trail_error *err)
{
    error_clear(err);
    index->format = format;
    if (v1_input_open(&index->input, source, format->version < 7, err) < 0)
        return -1;
    struct sweep sweep = {.index = index, .tables = tables, .err = err};
    int result = sweep_all(&sweep);
    if (result < 0)
        err->batch = index->batch_count > 0 ? (int64_t)index->batch_count - 1 : TRAIL_NOWHERE;
    free(sweep.frames);
    /* At equal times by offset, as in a stable sort of the file by time. */
    if (index->sample_count > 0)
        qsort(index->samples, index->sample_count, sizeof *index->samples, compare_samples);
    return result;
}

void v1_index_fini(struct v1_index *index)
{
    v1_input_close(&index->input);
    free(index->batches);
    free(index->chains);
    idmap_free(&index->chain_ids);
    free(index->samples);
    idmap_free(&index->timer_gs);
    *index = (struct v1_index){0};
}

int64_t v1_index_batch_at(const struct v1_index *index, uint64_t offset)
{
    return (int64_t)SEARCH(i, 0, index->batch_count, index->batches[i].offset <= offset) - 1;
}
