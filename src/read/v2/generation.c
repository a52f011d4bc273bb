/* v2: reads a generation and sorts its batches. */
#include "read/v2/generation.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "read/printed.h"
#include "read/source.h"
#include "read/v2/batch.h"
#include "read/v2/order.h"
#include "read/v2/resync.h"
#include "wire/wire.h"

#define READ_STEP ((size_t)256 * 1024)
/* That of Go on Linux, for a first generation that has lost its frequency. */
#define ASSUMED_NS_PER_TICK 64
/* A generation lasts about a second, so the number of the next good one is not much larger. */
#define FAR_GENERATION 100000

/* MARK: The buffer */

/* Appends bytes of the source to the buffer. Returns 1, 0 at the end, -1 on an error. */
static int fill(struct v2_generation *g, trail_error *err)
{
    if (g->at_end)
        return 0;
    if (!GROW(g->buffer, g->capacity, g->filled + READ_STEP))
        return error_set(err, TRAIL_NO_MEMORY, "out of memory for a generation of %zu bytes",
                         g->filled + READ_STEP);
    ssize_t n = source_read(g->source, g->buffer + g->filled, READ_STEP, err);
    if (n < 0)
        return -1;
    g->at_end = n == 0;
    g->filled += (size_t)n;
    return n > 0;
}

/*
 * Makes `size` bytes available from `at` on; fewer at the end of the source. Returns -1 on an
 * error.
 */
static int require(struct v2_generation *g, size_t at, size_t size, trail_error *err)
{
    while (g->filled - at < size) {
        int more = fill(g, err);
        if (more <= 0)
            return more;
    }
    return 1;
}

/* Drops the current generation's bytes and moves those after them to the front. */
static void drop_used(struct v2_generation *g)
{
    g->filled -= g->used;
    if (g->filled > 0)
        memmove(g->buffer, g->buffer + g->used, g->filled);
    g->offset += (int64_t)g->used;
    g->used = 0;
}

/* Every read is of READ_STEP bytes, as all before were. */
int v2_generation_pass(struct v2_generation *g, int64_t offset, trail_error *err)
{
    drop_used(g);
    uint64_t gap = (uint64_t)(offset - g->offset);
    if (gap > g->filled) {
        uint64_t steps = (gap - g->filled) / READ_STEP * READ_STEP;
        if (source_skip(g->source, steps, err) < 0)
            return -1;
        if (steps > 0) {
            g->offset += (int64_t)(g->filled + steps);
            g->filled = 0;
        }
        if (require(g, 0, (size_t)(offset - g->offset), err) < 0)
            return -1;
    }
    g->used = (size_t)(offset - g->offset);
    return 0;
}

/* MARK: Forgiving */

bool v2_is_damage(const trail_error *err)
{
    return err->code != TRAIL_OK && err->code != TRAIL_IO && err->code != TRAIL_NO_MEMORY &&
           err->code != TRAIL_LIMIT;
}

static void set_fault(struct v2_generation *g, const trail_error *err, int64_t offset)
{
    if (g->fault.code != TRAIL_OK)
        return;
    g->fault = *err;
    if (g->fault.offset == TRAIL_NOWHERE)
        g->fault.offset = offset;
    g->fault.generation = g->number ? (int64_t)g->number : TRAIL_NOWHERE;
}

/* Keeps the first error of a generation whose rest is usable. Returns false if it is not. */
static bool forgives(struct v2_generation *g, trail_error *err)
{
    if (!g->salvage || !v2_is_damage(err))
        return false;
    set_fault(g, err, g->offset);
    error_clear(err);
    return true;
}

/* MARK: Sections: the contents of structural batches (§5.1) */

/* A section being decoded. */
struct section {
    struct v2_generation *g;
    const uint8_t *at, *end;
    uint64_t batch_time;
    trail_error *err;
};

static int section_fail(struct section *s, trail_error *err)
{
    if (err)
        err->offset = s->g->offset + (s->at - s->g->buffer);
    return -1;
}

#define FAIL(s, code, ...) (error_set((s)->err, code, __VA_ARGS__), section_fail(s, (s)->err))

static int section_number(struct section *s, uint64_t *value)
{
    const uint8_t *next = uvarint_get(s->at, s->end, value);
    if (!next)
        return FAIL(s, TRAIL_CORRUPT, "found invalid uvarint in a table batch");
    s->at = next;
    return 0;
}

static int section_numbers(struct section *s, uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (section_number(s, &values[i]) < 0)
            return -1;
    return 0;
}

static int table_error(struct section *s, enum table_result result, const char *what, uint64_t id)
{
    switch (result) {
    case TABLE_OK:
        return 0;
    case TABLE_DUPLICATE:
        return FAIL(s, TRAIL_CORRUPT, "multiple %ss with the same ID: id=%" PRIu64, what, id);
    case TABLE_FULL:
        return FAIL(s, TRAIL_CORRUPT, "too many %ss in one generation", what);
    case TABLE_NO_MEMORY:
        break;
    }
    return error_no_memory(s->err);
}

static int read_string(struct section *s)
{
    uint64_t id, size;
    if (*s->at != V2_String)
        return FAIL(s, TRAIL_CORRUPT, "expected string event, got %u", *s->at);
    s->at++;
    if (section_number(s, &id) < 0 || section_number(s, &size) < 0)
        return -1;
    if (size > V2_MAX_STRING)
        return FAIL(s, TRAIL_CORRUPT, "invalid string size %" PRIu64 ", maximum is %d", size,
                    V2_MAX_STRING);
    size_t left = (size_t)(s->end - s->at);
    if (size > left)
        return FAIL(s, TRAIL_CORRUPT, "failed to read full string: read %zu but wanted %" PRIu64,
                    left, size);
    trail_string text = {.data = (const char *)s->at, .size = (size_t)size};
    s->at += size;
    return table_error(s, tables_add_string(s->g->tables, id, text), "string", id);
}

static int read_stack(struct section *s)
{
    uint64_t id, frames, raw[V2_MAX_FRAMES * 4];
    if (*s->at != V2_Stack)
        return FAIL(s, TRAIL_CORRUPT, "expected stack event, got %u", *s->at);
    s->at++;
    if (section_number(s, &id) < 0 || section_number(s, &frames) < 0)
        return -1;
    if (frames > V2_MAX_FRAMES)
        return FAIL(s, TRAIL_CORRUPT, "invalid stack size %" PRIu64 ", maximum is %d", frames,
                    V2_MAX_FRAMES);
    if (section_numbers(s, raw, (size_t)frames * 4) < 0)
        return -1;
    return table_error(s, tables_add_stack(s->g->tables, id, raw, (size_t)frames), "stack", id);
}

/*
 * The stack is an ID until v2_generation_load resolves it; IDs of samples are not checked (§6.4).
 */
static int read_sample(struct section *s)
{
    struct v2_generation *g = s->g;
    uint64_t v[5];
    if (*s->at != V2_CPUSample)
        return FAIL(s, TRAIL_CORRUPT, "expected CPU sample event, got %u", *s->at);
    s->at++;
    if (section_numbers(s, v, 5) < 0)
        return -1;
    if (!GROW(g->samples, g->sample_capacity, g->sample_count + 1))
        return error_no_memory(s->err);
    g->samples[g->sample_count] = (struct v2_sample){
        .index = g->sample_count,
        .time_ns = (int64_t)v[0], /* still in ticks */
        .thread = (int64_t)v[1],
        .proc = (int64_t)v[2],
        .goroutine = v[3] == 0 ? TRAIL_NONE : (int64_t)v[3],
        .stack = v[4] > UINT32_MAX ? UINT32_MAX : (uint32_t)v[4], /* still an ID */
    };
    g->sample_count++;
    return 0;
}

static int read_frequency(struct section *s)
{
    uint64_t frequency;
    if (section_number(s, &frequency) < 0)
        return -1;
    if (s->g->ns_per_tick != 0)
        return FAIL(s, TRAIL_CORRUPT, "found multiple frequency events");
    if (frequency == 0)
        return FAIL(s, TRAIL_CORRUPT, "no frequency event found (it is 0)");
    s->g->ns_per_tick = 1.0 / ((double)frequency / 1e9);
    return 0;
}

static int read_snapshot(struct section *s)
{
    struct v2_generation *g = s->g;
    uint64_t v[4];
    if (section_numbers(s, v, 4) < 0)
        return -1;
    if (g->has_snapshot)
        return FAIL(s, TRAIL_CORRUPT, "found multiple clock snapshot events");
    g->has_snapshot = true;
    /* As in Go's time.Unix, nanoseconds outside a second are carried. */
    int64_t ns = (int64_t)v[3] % INT64_C(1000000000),
            carry = (int64_t)v[3] / INT64_C(1000000000) - (ns < 0);
    g->snapshot = (trail_clock_snapshot){
        .trace_ns = (int64_t)(s->batch_time + v[0]), /* still in ticks */
        .mono_ns = v[1],
        .wall_s = (int64_t)(v[2] + (uint64_t)carry),
        .wall_ns = (uint32_t)(ns < 0 ? ns + INT64_C(1000000000) : ns),
    };
    return 0;
}

/* Up to 1.23 the section's first byte is that of its only record; from 1.25 on it is Sync. */
static int read_sync(struct section *s)
{
    uint8_t type = *s->at;
    if (type == V2_Frequency || (type == V2_ClockSnapshot && s->g->version >= 25)) {
        s->at++;
        return type == V2_Frequency ? read_frequency(s) : read_snapshot(s);
    }
    return FAIL(s, TRAIL_CORRUPT, "expected frequency or clock snapshot event, got %u", type);
}

static int read_section(struct v2_generation *g, trail_batch_kind kind, const uint8_t *data,
                        size_t size, uint64_t batch_time, trail_error *err)
{
    struct section s = {
        .g = g,
        .at = kind == TRAIL_BATCH_SYNC && *data == V2_Frequency ? data : data + 1,
        .end = data + size,
        .batch_time = batch_time,
        .err = err,
    };
    int result = 0;
    while (result == 0 && s.at < s.end) {
        switch (kind) {
        case TRAIL_BATCH_STRINGS:
            result = read_string(&s);
            break;
        case TRAIL_BATCH_STACKS:
            result = read_stack(&s);
            break;
        case TRAIL_BATCH_CPU_SAMPLES:
            result = read_sample(&s);
            break;
        default:
            result = read_sync(&s);
            break;
        }
    }
    return result;
}

/* MARK: Batches */

static int add_event_batch(struct v2_generation *g, const struct v2_batch_header *header, size_t at,
                           size_t gaps, trail_error *err)
{
    if (g->batch_count >= V2_NO_BATCH || !GROW(g->batches, g->batch_capacity, g->batch_count + 1))
        return error_no_memory(err);
    g->batches[g->batch_count++] = (struct v2_batch){
        .at = at,
        .size = (uint32_t)header->size,
        .next = V2_NO_BATCH,
        .gaps = (uint32_t)gaps,
        .thread = header->thread,
        .time = header->time,
    };
    return 0;
}

static int add_experiment(struct v2_generation *g, const struct v2_batch_header *header,
                          const uint8_t *data, trail_error *err)
{
    if (!GROW(g->experiments, g->experiment_capacity, g->experiment_count + 1))
        return error_no_memory(err);
    g->experiments[g->experiment_count++] = (trail_experiment_batch){
        .experiment = header->experiment,
        .thread = (int64_t)header->thread,
        .data = data,
        .size = (size_t)header->size,
    };
    return 0;
}

/* Second pass over the complete buffer: decodes tables and lists event batches. */
static int index_batches(struct v2_generation *g, trail_error *err)
{
    struct v2_batch_header header;
    size_t length, gap = 0;
    g->min_time = 0; /* Go takes a 0 for "none yet" */
    for (size_t at = 0; at < g->used; at += length + (size_t)header.size) {
        for (; gap < g->gap_count && at >= g->gaps[gap].at; gap++)
            at = at > g->gaps[gap].end ? at : g->gaps[gap].end;
        if (at >= g->used || v2_batch_header(g->buffer + at, g->used - at, g->version, &header,
                                             &length, NULL) != V2_HEADER_OK)
            break;
        if (header.end_of_generation)
            break;
        if (gap < g->gap_count && header.size > g->gaps[gap].at - at - length)
            header.size = g->gaps[gap].at - at - length;
        const uint8_t *data = g->buffer + at + length;
        size_t size = (size_t)header.size;
        const uint8_t first = size ? data[0] : 0;
        /* 1.25 may be assumed for a version with batches of the frequency alone. */
        const bool old = first == V2_Frequency && source_lacks_header(g->source);
        trail_batch_kind kind = v2_batch_kind(&header, first, old ? 22 : g->version);
        int result;
        if (g->min_time == 0 || header.time < g->min_time)
            g->min_time = header.time;
        if (kind == TRAIL_BATCH_EVENTS)
            result = add_event_batch(g, &header, at + length, gap, err);
        else if (kind == TRAIL_BATCH_EXPERIMENT)
            result = add_experiment(g, &header, data, err);
        else
            result = read_section(g, kind, data, size, header.time, err);
        if (result < 0 && !forgives(g, err))
            return result;
    }
    return 0;
}

/* MARK: Batches that damage has moved or copied */

static int batch_by_time(const void *a, const void *b)
{
    const struct v2_batch *x = a, *y = b;
    return ORDER(x->time, y->time) ?: ORDER(x->thread, y->thread) ?: ORDER(x->at, y->at);
}

/* Returns the size of the well-formed events at the start of a batch. */
static size_t sound_size(const struct v2_generation *g, const struct v2_batch *batch)
{
    const uint8_t *begin = g->buffer + batch->at, *end = begin + batch->size, *at = begin;
    struct v2_wire_event event;
    while (at < end) {
        const uint8_t *next = v2_decode_any(at, end, &event);
        if (!next)
            break;
        at = next;
    }
    return (size_t)(at - begin);
}

/* A thread does not have two batches with the same time. */
static bool is_copy(const struct v2_batch *a, const struct v2_batch *b)
{
    return a->time == b->time && a->thread == b->thread && a->thread != V2_NO_THREAD;
}

/* Orders the batches of a damaged generation by time. Of several copies, the one with the most
 * events stays. */
static void restore_order(struct v2_generation *g)
{
    size_t count = 0;
    if (g->batch_count == 0)
        return;
    qsort(g->batches, g->batch_count, sizeof *g->batches, batch_by_time);
    for (size_t i = 0; i < g->batch_count; i++) {
        struct v2_batch *last = count > 0 ? &g->batches[count - 1] : NULL;
        if (!last || !is_copy(last, &g->batches[i]))
            g->batches[count++] = g->batches[i];
        else if (sound_size(g, &g->batches[i]) > sound_size(g, last))
            *last = g->batches[i];
    }
    g->batch_count = count;
}

/* MARK: Extent */

/* The state of the generation after the batches read so far. */
enum extent { EXTENT_MORE, EXTENT_END, EXTENT_NO_MORE, EXTENT_ERROR };

struct extent_state {
    size_t at;        /* end of the last complete batch */
    size_t last;      /* start of its data */
    uint64_t batches; /* so far */
    size_t resync;    /* where the next search after damage begins; only moves forward */
    bool any;         /* the generation has a batch */
    bool event_batch; /* the generation has a batch with events */
    bool misplaced;   /* the batch that ends the reading is good, but not its generation */
    size_t searched;  /* no other trace begins before this */
    size_t foreign;   /* no batch of the generation follows damage before this */
};

/* The source ends between two batches. */
static enum extent end_of_input(struct v2_generation *g, const struct extent_state *s,
                                trail_error *err)
{
    g->unstopped = g->version >= 26 && s->any;
    if (g->unstopped && s->event_batch) {
        error_set(err, TRAIL_TRUNCATED,
                  "incomplete generation found; trace likely truncated (generation %" PRIu64
                  " has no end)",
                  g->number);
        return EXTENT_ERROR;
    }
    /*
     * Tables without events, truncated before their end mark, are accepted as a normal end (§6.2).
     */
    return s->any && g->version < 26 ? EXTENT_END : EXTENT_NO_MORE;
}

/* Returns whether a batch belongs to the generation, ends it or is an error. */
static enum extent place_batch(struct v2_generation *g, const struct v2_batch_header *header,
                               struct extent_state *s, trail_error *err)
{
    s->misplaced = true;
    if (header->generation == 0) {
        error_set(err, TRAIL_CORRUPT, "invalid generation number 0");
        return EXTENT_ERROR;
    }
    if (!s->any) {
        g->number = header->generation;
    } else if (header->generation != g->number) {
        if (g->version >= 26) {
            error_set(err, TRAIL_CORRUPT,
                      "broken trace: missing end-of-generation event, or generations are "
                      "interleaved (%" PRIu64 " in %" PRIu64 ")",
                      header->generation, g->number);
            return (header->generation == g->number + 1 || g->irregular) && forgives(g, err)
                       ? EXTENT_END
                       : EXTENT_ERROR;
        }
        if (header->generation == g->number + 1)
            return EXTENT_END;
        error_set(err, TRAIL_CORRUPT, "generations out of order (%" PRIu64 " after %" PRIu64 ")",
                  header->generation, g->number);
        return EXTENT_ERROR;
    }
    s->misplaced = false;
    return EXTENT_MORE;
}

/*
 * Decodes the batch header at `at`. Returns 1, 0 at the end of the source, -1 on an error. Reads no
 * more than the header needs: later bytes of a pipe may be slow to arrive.
 */
static int next_header(struct v2_generation *g, size_t at, struct v2_batch_header *header,
                       size_t *length, trail_error *err)
{
    for (;;) {
        trail_error problem;
        if (g->filled > at) {
            enum v2_header_result result = v2_batch_header(g->buffer + at, g->filled - at,
                                                           g->version, header, length, &problem);
            if (result == V2_HEADER_OK)
                return 1;
            if (result == V2_HEADER_BAD || g->at_end) {
                *err = problem;
                return -1;
            }
        } else if (g->at_end) {
            return 0;
        }
        if (fill(g, err) < 0)
            return -1;
    }
}

/* MARK: Passing over what is no batch */

/* Whether another trace begins at `at`. If so, this one ends there. */
static bool ends_in_trace(struct v2_generation *g, size_t at)
{
    trail_error none;
    if (require(g, at, WIRE_HEADER_SIZE, &none) < 0 || g->filled - at < WIRE_HEADER_SIZE ||
        wire_header_parse(g->buffer + at) == 0)
        return false;
    g->next_trace = g->offset + (int64_t)at;
    g->filled = at;
    g->at_end = true;
    return true;
}

/* Whether zero bytes may have completed the last batch, which is cut. */
static bool may_be_completed(const struct v2_generation *g, const struct extent_state *s)
{
    const struct v2_batch batch = {.at = s->last, .size = (uint32_t)(s->at - s->last)};
    return s->any && g->buffer[s->at - 1] == 0 && sound_size(g, &batch) < batch.size;
}

/* Whether only zero bytes follow, as in a file whose space was reserved. If so, this trace ends. */
static bool ends_in_zeros(struct v2_generation *g, const struct extent_state *s)
{
    trail_error none;
    const size_t at = s->at;
    if (at == g->filled || g->buffer[at] != 0 || may_be_completed(g, s) ||
        require(g, at, V2_RESYNC_REACH, &none) < 0 || !is_zero(g->buffer + at, g->filled - at) ||
        (!g->at_end && !source_only_zeros_follow(g->source)))
        return false;
    g->filled = at;
    g->at_end = true;
    return true;
}

/*
 * Whether another trace begins between damage at `from` and `end`, where a batch was found that may
 * be that trace's. Only a header before a batch counts: strings may contain the same bytes.
 */
static bool trace_after_damage(struct v2_generation *g, size_t from, size_t end)
{
    struct v2_batch_header header;
    size_t length;
    for (size_t at = from; at + WIRE_HEADER_SIZE < g->filled && at < end; at++) {
        int version = g->buffer[at] == 'g' ? wire_header_parse(g->buffer + at) : 0;
        const uint8_t *next = g->buffer + at + WIRE_HEADER_SIZE;
        if (version == 0)
            continue;
        if (trail_version_is_v2(version)
                ? v2_batch_header(next, g->filled - at - WIRE_HEADER_SIZE, version, &header,
                                  &length, NULL) == V2_HEADER_OK
                : *next == (V1_Batch | 1 << V1_COUNT_SHIFT))
            return ends_in_trace(g, at);
    }
    return false;
}

/* Keeps the rest of a last batch that is cut. Returns false if it is not a batch. */
static bool keep_cut(struct v2_generation *g, struct extent_state *s, trail_error *err)
{
    struct v2_batch_header header;
    size_t length, at = s->at;
    if (!g->at_end || err->code != TRAIL_TRUNCATED ||
        v2_batch_header(g->buffer + at, g->filled - at, g->version, &header, &length, NULL) !=
            V2_HEADER_OK ||
        header.generation == 0 || (s->any && header.generation != g->number) ||
        header.time < g->time_ticks / 2 || !GROW(g->gaps, g->gap_capacity, g->gap_count + 1))
        return false;
    g->number = header.generation;
    set_fault(g, err, g->offset + (int64_t)at);
    g->gaps[g->gap_count++] = (struct v2_gap){g->filled, g->filled};
    g->events_lost = true;
    s->at = s->last = g->filled;
    s->any = s->event_batch = true;
    s->resync = g->filled + 1;
    error_clear(err);
    return true;
}

/*
 * Where damage is followed at `at` by a batch of the next generation, one of this generation may
 * come later. Returns its offset, or `at`.
 */
static size_t find_own(const struct v2_generation *g, struct extent_state *s, size_t at, size_t end)
{
    struct v2_batch_header header;
    size_t length;
    if (v2_batch_header(g->buffer + at, end - at, g->version, &header, &length, NULL) !=
            V2_HEADER_OK ||
        header.generation == g->number)
        return at;
    const struct v2_resync rules = {g->version, g->number, 0, g->time_ticks, false, false};
    size_t from = at > s->foreign ? at : s->foreign;
    size_t own = from < end ? from + v2_resync_find(&rules, g->buffer + from, end - from) : end;
    if (own < end)
        return own;
    s->foreign = end;
    return at;
}

/* Whether the end mark of the trace, at `end`, belongs to a later generation. */
static bool ends_later(const struct v2_generation *g, size_t from, size_t end)
{
    if (!g->at_end)
        return false;
    const struct v2_resync rules = {g->version,    g->number, FAR_GENERATION,
                                    g->time_ticks, true,      g->irregular};
    return end + 1 == g->filled && g->buffer[end] == V2_EndOfGeneration &&
           v2_resync_find(&rules, g->buffer + from, end - from) < end - from;
}

/* Whether the program printed these bytes. */
static bool is_text(const struct v2_generation *g, size_t at, size_t end)
{
    const uint8_t *data = g->buffer + at;
    return end > at && is_printed(data, end - at) &&
           utf8_valid((trail_string){(const char *)data, end - at});
}

/*
 * The bytes at s->at are not a batch. Finds the next one, searching from the data of the last
 * batch, whose size may be wrong. Returns false if there is none within reach.
 */
static bool pass_over(struct v2_generation *g, struct extent_state *s, trail_error *err)
{
    size_t from = s->any ? s->last : s->at;
    from = from > s->resync ? from : s->resync;
    if (from > g->filled || require(g, s->at, V2_RESYNC_REACH, err) < 0)
        return false;
    if (!GROW(g->gaps, g->gap_capacity, g->gap_count + 1))
        return error_no_memory(err) == 0;
    /* No more than was required, because how much else has arrived depends on the source. */
    size_t limit = g->filled - s->at < V2_RESYNC_REACH ? g->filled : s->at + V2_RESYNC_REACH;
    /* A first batch that no other follows may itself be damaged. */
    const bool sure = s->batches > 1 || g->offset > WIRE_HEADER_SIZE;
    /* The last batch, which is cut, may have swallowed the start of the other trace. */
    const bool last = trace_after_damage(g, from > s->searched ? from : s->searched, limit);
    if (last)
        limit = g->filled;
    const size_t two_headers = (size_t)2 * WIRE_HEADER_SIZE;
    s->searched = limit > two_headers ? limit - two_headers : 0;
    const struct v2_resync rules = {g->version,
                                    s->any && sure ? g->number : 0,
                                    1,
                                    sure ? g->time_ticks : 0,
                                    limit == g->filled && g->at_end,
                                    g->irregular};
    size_t end = limit;
    if (!last || limit > s->at)
        end = from + v2_resync_find(&rules, g->buffer + from, limit - from);
    if (!last && end == limit && !(g->at_end && is_text(g, s->at, end)))
        return false;
    if (s->any && sure && end < limit) {
        if (ends_later(g, from, end))
            return false;
        end = find_own(g, s, end, limit);
    }
    size_t at = end < s->at ? end : s->at;
    g->gaps[g->gap_count++] = (struct v2_gap){at, end};
    /* The version may be assumed: 1.25 for 1.26. */
    const bool is_end =
        end == at + 1 && g->buffer[at] == V2_EndOfGeneration && source_lacks_header(g->source);
    if (!is_end && is_text(g, at, end)) {
        g->text_offset = g->text_offset < 0 ? g->offset + (int64_t)at : g->text_offset;
        g->text_bytes += end - at;
    } else if (!is_end) {
        set_fault(g, err, g->offset + (int64_t)at);
        g->lost_bytes += end - at;
        g->events_lost = true;
    }
    s->at = s->last = end;
    s->resync = end + 1;
    error_clear(err);
    return true;
}

bool v2_generation_resume(struct v2_generation *g, trail_error *err)
{
    size_t at = g->used;
    for (;;) {
        if (require(g, at, V2_RESYNC_REACH, err) < 0)
            return false;
        const struct v2_resync rules = {g->version,    g->number, FAR_GENERATION,
                                        g->time_ticks, g->at_end, g->irregular};
        size_t found = v2_resync_find(&rules, g->buffer + at, g->filled - at);
        /* A possible start of a batch at the end is examined again, with more bytes. */
        if (trace_after_damage(g, at, at + found)) {
            g->lost_bytes += g->filled - at;
            g->used = g->filled;
            return false;
        }
        size_t left = g->filled - at - found;
        size_t step = left > 0 || g->at_end ? found : found - V2_RESYNC_REACH / 2;
        g->lost_bytes += step;
        g->behind_loss = true;
        g->used = at + step;
        if (left > 0)
            return true;
        if (g->at_end)
            return false;
        drop_used(g);
        at = 0;
    }
}

/* MARK: The extent of a generation */

/* Adds the next batch to the generation. */
static enum extent extend_plain(struct v2_generation *g, struct extent_state *s, trail_error *err)
{
    struct v2_batch_header header;
    size_t length;
    int found = next_header(g, s->at, &header, &length, err);
    if (found <= 0)
        return found < 0 ? EXTENT_ERROR : end_of_input(g, s, err);
    if (header.end_of_generation) {
        s->at += length;
        return EXTENT_END;
    }
    if (require(g, s->at, length + (size_t)header.size, err) < 0)
        return EXTENT_ERROR;
    if (g->filled - s->at < length + (size_t)header.size) {
        error_set(err, TRAIL_TRUNCATED, "failed to read full batch: read %zu but wanted %" PRIu64,
                  g->filled - s->at - length, header.size);
        return EXTENT_ERROR;
    }
    enum extent placed = place_batch(g, &header, s, err);
    if (placed != EXTENT_MORE)
        return placed;
    uint8_t first = header.size ? g->buffer[s->at + length] : 0;
    s->any = true;
    s->event_batch |= v2_batch_kind(&header, first, g->version) == TRAIL_BATCH_EVENTS;
    s->batches++;
    s->last = s->at + length;
    if (g->time_ticks == 0 || header.time < g->time_ticks)
        g->time_ticks = header.time;
    s->at += length + (size_t)header.size;
    return EXTENT_MORE;
}

/* Like extend_plain, but a reader that is not strict skips bytes that are not batches. */
static enum extent extend(struct v2_generation *g, struct extent_state *s, trail_error *err)
{
    enum extent extent = extend_plain(g, s, err);
    if (extent != EXTENT_ERROR || !g->salvage || !v2_is_damage(err))
        return extent;
    if (ends_in_trace(g, s->at) || ends_in_zeros(g, s)) {
        error_clear(err);
        return end_of_input(g, s, err);
    }
    return (s->any && pass_over(g, s, err)) || keep_cut(g, s, err) || pass_over(g, s, err)
               ? EXTENT_MORE
               : EXTENT_ERROR;
}

/* The generation ends in damage. Its last batch may have swallowed the start of a later one. */
static void give_back(struct v2_generation *g, struct extent_state *s)
{
    trail_error later;
    if (require(g, s->at, V2_RESYNC_REACH, &later) < 0 ||
        !GROW(g->gaps, g->gap_capacity, g->gap_count + 1))
        return;
    size_t left = g->filled - s->at,
           limit = left < V2_RESYNC_REACH ? g->filled : s->at + V2_RESYNC_REACH;
    const struct v2_resync rules = {g->version,    g->number + 1,          FAR_GENERATION,
                                    g->time_ticks, left < V2_RESYNC_REACH, g->irregular};
    size_t end = s->last + v2_resync_find(&rules, g->buffer + s->last, limit - s->last);
    if (end >= s->at)
        return;
    g->gaps[g->gap_count++] = (struct v2_gap){end, end};
    g->events_lost = true;
    s->at = end;
}

/* Starts after lost bytes, which may be the generation's own. */
static void begin_after_loss(struct v2_generation *g)
{
    if (!g->behind_loss || !GROW(g->gaps, g->gap_capacity, 1))
        return;
    g->gaps[g->gap_count++] = (struct v2_gap){0, 0};
    g->events_lost = true;
}

/* Reads until the generation is complete, or as far as possible, with the reason in *behind. */
static enum v2_load read_extent(struct v2_generation *g, trail_error *behind)
{
    struct extent_state s = {0};
    enum extent extent;
    g->number = 0;
    g->gap_count = 0;
    g->events_lost = false;
    error_clear(&g->fault);
    begin_after_loss(g);
    do {
        extent = extend(g, &s, behind);
    } while (extent == EXTENT_MORE);
    if (extent == EXTENT_ERROR && g->salvage && s.any && v2_is_damage(behind))
        give_back(g, &s);
    g->used = s.at;
    g->behind_loss = g->events_lost && g->gap_count > 0 && g->gaps[g->gap_count - 1].end == s.at;
    if (extent == EXTENT_NO_MORE)
        return V2_NO_MORE;
    if (extent == EXTENT_END)
        return V2_LOADED;
    if (behind->code != TRAIL_IO && behind->code != TRAIL_NO_MEMORY) {
        behind->offset = g->offset + (int64_t)s.at;
        behind->generation = s.any ? (int64_t)g->number : TRAIL_NOWHERE;
    }
    /* Up to 1.25, Go shows what precedes an unreadable batch, but not what precedes one of a wrong
     * generation. */
    bool shown = g->salvage || (g->version < 26 && !s.misplaced);
    return s.any && shown ? V2_LOADED : V2_LOAD_FAILED;
}

/* MARK: Whole generations */

static int by_time(const void *a, const void *b)
{
    const struct v2_sample *x = a, *y = b;
    return ORDER(x->time_ns, y->time_ns) ?: ORDER(x->index, y->index);
}

/* Converts times to nanoseconds and stacks to handles, once frequency and tables are known. */
static void finish_samples(struct v2_generation *g)
{
    bool sorted = true;
    for (size_t i = 0; i < g->sample_count; i++) {
        struct v2_sample *sample = &g->samples[i];
        sample->time_ns = v2_ticks_to_ns(g->ns_per_tick, (uint64_t)sample->time_ns);
        tables_stack(g->tables, sample->stack, &sample->stack);
        sorted = sorted && (i == 0 || sample[-1].time_ns <= sample->time_ns);
    }
    if (!sorted)
        qsort(g->samples, g->sample_count, sizeof *g->samples, by_time);
}

static int check_mandatory(struct v2_generation *g, trail_error *err)
{
    uint64_t stack, string;
    bool is_file;
    if (g->ns_per_tick == 0) {
        error_set(err, TRAIL_CORRUPT, "no frequency event found");
        if (!forgives(g, err))
            return -1;
        g->frequency_assumed |= g->usual_ns_per_tick == 0;
        g->ns_per_tick = g->usual_ns_per_tick > 0 ? g->usual_ns_per_tick : ASSUMED_NS_PER_TICK;
    }
    g->usual_ns_per_tick = g->ns_per_tick;
    if (g->version >= 25 && !g->has_snapshot && !source_lacks_header(g->source) &&
        error_set(err, TRAIL_CORRUPT, "no clock snapshot event found") < 0 && !forgives(g, err))
        return -1;
    if (!tables_resolve_frames(g->tables, &stack, &string, &is_file))
        return error_set(err, TRAIL_CORRUPT,
                         "found invalid %s string ID %" PRIu64 " for stack %" PRIu64,
                         is_file ? "file" : "func", string, stack) < 0 &&
                       !forgives(g, err)
                   ? -1
                   : 0;
    return 0;
}

static int assemble(struct v2_generation *g, trail_error *err)
{
    g->batch_count = g->sample_count = g->experiment_count = 0;
    g->ns_per_tick = 0;
    g->has_snapshot = false;
    if (!tables_reset(g->tables))
        return error_no_memory(err);
    if (index_batches(g, err) < 0 || check_mandatory(g, err) < 0) {
        if (err->offset == TRAIL_NOWHERE)
            err->offset = g->offset;
        err->generation = (int64_t)g->number;
        return -1;
    }
    if (g->events_lost)
        restore_order(g);
    finish_samples(g);
    g->snapshot.trace_ns = v2_ticks_to_ns(g->ns_per_tick, (uint64_t)g->snapshot.trace_ns);
    return 0;
}

enum v2_load v2_generation_load(struct v2_generation *g, trail_error *err, trail_error *behind)
{
    drop_used(g);
    enum v2_load extent = read_extent(g, behind);
    /* A trace up to 1.25 has at least one generation; one of 1.26 may have only a header. */
    if (extent == V2_NO_MORE && g->version < 26 && g->offset == WIRE_HEADER_SIZE) {
        error_set(err, TRAIL_TRUNCATED, "no frequency event found: the trace has no generation");
        err->offset = g->offset;
        return V2_LOAD_FAILED;
    }
    if (extent == V2_LOAD_FAILED) {
        *err = *behind;
        error_clear(behind);
    }
    if (extent != V2_LOADED)
        return extent;
    g->irregular |= !g->events_lost && g->undamaged > 0 && g->number != g->undamaged + 1;
    g->undamaged = g->events_lost ? 0 : g->number;
    trail_error later; /* occurs again when the next generation is loaded */
    g->looked_ahead = g->salvage && (g->events_lost || behind->code != TRAIL_OK) &&
                      require(g, g->used, V2_RESYNC_REACH, &later) >= 0;
    return assemble(g, err) < 0 ? V2_LOAD_FAILED : V2_LOADED;
}

uint64_t v2_generation_next_time(const struct v2_generation *g, uint64_t thread)
{
    struct v2_batch_header header;
    size_t length, left = g->filled - g->used,
                   end = g->used + (left < V2_RESYNC_REACH ? left : V2_RESYNC_REACH);
    const struct v2_resync rules = {
        g->version, g->number, FAR_GENERATION, g->time_ticks, left < V2_RESYNC_REACH, g->irregular};
    if (!g->looked_ahead)
        return 0;
    size_t at = g->used + v2_resync_find(&rules, g->buffer + g->used, end - g->used);
    while (at < end && v2_batch_header(g->buffer + at, end - at, g->version, &header, &length,
                                       NULL) == V2_HEADER_OK) {
        if (!header.end_of_generation && header.generation > g->number && header.thread == thread)
            return header.time;
        at += length + (size_t)header.size;
    }
    return 0;
}

void v2_generation_free(struct v2_generation *g)
{
    free(g->buffer);
    free(g->batches);
    free(g->samples);
    free(g->experiments);
    free(g->gaps);
}
