/* v1, index: one sweep that finds batches, strings, stacks and samples. */
#include "read/v1/index.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"
#include "base/utf8.h"
#include "read/printed.h"
#include "read/source.h"

/* Ticks per second of any clock that Go uses. */
#define LOWEST_HZ  100000
#define HIGHEST_HZ 100000000000

/*
 * After damage, this many well-formed records must follow; chance bytes are well-formed in one of
 * four cases. REACH: how many bytes are examined.
 */
#define FOLLOWING 8
#define REACH     4096

/* This many records before damage may be chance bytes. */
#define DOUBTED 4

/* No two batches of a trace are further apart: more than half an hour at 500 MHz. */
#define MOST_TICKS (UINT64_C(1) << 40)

/* How much earlier than the file's first batch another P's batch may begin: seconds. */
#define EARLIER_TICKS (UINT64_C(1) << 31)

/* The first batch is not earlier: its clock has run for a while. */
#define FIRST_TICKS 128

/* Text that the program printed in one place is shorter. */
#define TEXT_REACH ((ptrdiff_t)1 << 20)

/* The records of the last batch stay in the window up to this size: Go's have 64 KiB. */
#define MOST_KEPT ((ptrdiff_t)256 << 10)

/* State of the sweep. */
struct sweep {
    struct v1_index *index;
    struct tables *tables;
    trail_error *err;  /* of the record that is being taken */
    trail_error first; /* why the first hole begins */
    uint64_t *frames;  /* of the stack being read: 4 numbers each */
    size_t frames_capacity;
    bool salvage;      /* continues after damage */
    bool orphaned;     /* between a hole and the next Batch: the P of its events is unknown */
    uint64_t searched; /* no text begins before this offset, in the last batch */
};

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
        return error_no_memory(sweep->err), NULL;
    if (!idmap_put(&index->chain_ids, (uint64_t)proc, (void *)(uintptr_t)(index->chain_count + 1)))
        return error_no_memory(sweep->err), NULL;
    struct v1_chain *chain = &index->chains[index->chain_count++];
    *chain = (struct v1_chain){.proc = proc, .first = V1_NO_BATCH, .last = V1_NO_BATCH};
    return chain;
}

/* Records the times of a P's batch. The rest of a damaged batch before it is earlier. */
static void time_batch(struct v1_index *index, struct v1_chain *chain, int64_t ticks)
{
    if (index->batch_count == 1)
        index->first_ticks = index->newest_ticks = ticks;
    if (ticks > index->newest_ticks)
        index->newest_ticks = ticks;
    if (chain->last != V1_NO_BATCH) {
        uint32_t hole = index->batches[chain->last].hole;
        if (hole > 0)
            index->holes[hole - 1].latest_ticks = ticks;
        int64_t between = (int64_t)((uint64_t)ticks - (uint64_t)chain->ticks);
        if (between > index->longest_ticks)
            index->longest_ticks = between;
    }
    chain->ticks = ticks;
}

static int add_batch(struct sweep *sweep, int64_t proc, int64_t ticks, uint64_t offset)
{
    struct v1_index *index = sweep->index;
    struct v1_chain *chain = chain_of(sweep, proc);
    if (!chain)
        return -1;
    if (index->batch_count >= V1_NO_BATCH ||
        !GROW(index->batches, index->batch_capacity, index->batch_count + 1))
        return error_no_memory(sweep->err);
    uint32_t i = (uint32_t)index->batch_count++;
    index->batches[i] = (struct v1_batch){.offset = offset, .next = V1_NO_BATCH};
    time_batch(index, chain, ticks);
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
    sweep->orphaned = false;
    return add_batch(sweep, (int64_t)proc, (int64_t)record->number[record->numbers - 1], offset);
}

/* In a damaged trace, a frequency that no clock has may be chance bytes. */
static int on_frequency(struct sweep *sweep, const struct v1_record *record)
{
    uint64_t frequency = record->number[0];
    bool doubted = sweep->index->has_frequency || v1_index_is_damaged(sweep->index);
    if (sweep->salvage && doubted && (frequency < LOWEST_HZ || frequency > HIGHEST_HZ))
        return 0;
    /* Go refuses a trace for each frequency that is not positive; else the last one counts. */
    if (!sweep->salvage && sweep->index->has_frequency && sweep->index->frequency <= 0)
        return 0;
    sweep->index->has_frequency = true;
    sweep->index->frequency = (int64_t)frequency;
    return 0;
}

static int on_timer_goroutine(struct sweep *sweep, const struct v1_record *record)
{
    void *set = sweep->index;
    return idmap_put(&sweep->index->timer_gs, record->number[0], set) ? 0
                                                                      : error_no_memory(sweep->err);
}

static int on_string(struct sweep *sweep, const struct v1_record *record, uint64_t offset)
{
    trail_string text = record->text;
    if (!sweep->index->input.in_place &&
        !(text.data = arena_copy(&sweep->tables->extra, text.data, text.size)))
        return error_no_memory(sweep->err);
    switch (tables_add_string(sweep->tables, record->number[0], text)) {
    case TABLE_OK:
        return 0;
    case TABLE_DUPLICATE:
        return error_set(sweep->err, TRAIL_CORRUPT, "string at offset 0x%llx has duplicate id %llu",
                         (unsigned long long)offset, (unsigned long long)record->number[0]);
    case TABLE_FULL:
        return error_set(sweep->err, TRAIL_CORRUPT, "trace contains too many strings");
    default:
        return error_no_memory(sweep->err);
    }
}

/* Ignores stacks with ID 0 or without frames. If several have the same ID, the last one counts, as
 * in Go. */
static int on_stack(struct sweep *sweep, const struct v1_record *record)
{
    size_t count = (size_t)record->number[1];
    if (record->number[0] == 0 || count == 0)
        return 0;
    if (!GROW(sweep->frames, sweep->frames_capacity, count * 4) || !sweep->frames)
        return error_no_memory(sweep->err);
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
        return error_no_memory(sweep->err);
    }
}

static int on_sample(struct sweep *sweep, const struct v1_record *record, uint64_t offset)
{
    struct v1_index *index = sweep->index;
    if (!GROW(index->samples, index->sample_capacity, index->sample_count + 1))
        return error_no_memory(sweep->err);
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
    return type == V1_CPUSample ? 0 : add_batch(sweep, 0, 0, offset);
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

/* MARK: Input */

/* Returns the first record in the window, of the last batch, at which text may begin. */
static const uint8_t *text_may_begin(const struct sweep *sweep)
{
    const struct v1_index *index = sweep->index;
    const struct v1_bytes *bytes = &index->input.bytes;
    uint64_t begin =
        index->batch_count > 0 ? index->batches[index->batch_count - 1].offset : WIRE_HEADER_SIZE;
    begin = begin > sweep->searched ? begin : sweep->searched;
    begin = begin > bytes->offset ? begin : bytes->offset;
    return bytes->data + (begin - bytes->offset);
}

/* As v1_input_more, but keeps records before *at, which may be text. */
static int more_input(struct sweep *sweep, const uint8_t **at, trail_error *err)
{
    const uint8_t *kept = sweep->salvage ? text_may_begin(sweep) : *at;
    kept = *at - kept > MOST_KEPT ? *at : kept;
    ptrdiff_t between = *at - kept;
    int more = v1_input_more(&sweep->index->input, &kept, err);
    *at = kept + between;
    return more;
}

/* MARK: Holes */

/* Whether `a` is greater than `b` by more than `most`. */
static bool is_beyond(int64_t a, int64_t b, uint64_t most)
{
    return a > b && (uint64_t)a - (uint64_t)b > most;
}

static bool fits_batch(const struct v1_index *index, const struct v1_record *record)
{
    uint64_t proc = record->number[0];
    int64_t ticks = (int64_t)record->number[record->numbers - 1];
    if (index->batch_count == 0)
        return ticks >= FIRST_TICKS && (proc < V1_MAX_LANES || proc == V1_NO_PROC);
    if (is_beyond(index->first_ticks, ticks, EARLIER_TICKS) ||
        is_beyond(ticks, index->newest_ticks, MOST_TICKS))
        return false;
    size_t known = (size_t)(uintptr_t)idmap_find(&index->chain_ids, proc);
    if (known)
        return ticks > index->chains[known - 1].ticks;
    return proc < V1_MAX_LANES || proc == V1_NO_PROC;
}

static bool is_printable(trail_string text)
{
    for (size_t i = 0; i < text.size; i++)
        if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return false;
    return utf8_valid(text);
}

static bool fits(const struct v1_index *index, const struct tables *tables,
                 const struct v1_record *record)
{
    uint32_t handle;
    switch (record->type) {
    case V1_Batch:
        return fits_batch(index, record);
    case V1_String:
        return is_printable(record->text) && !tables_string(tables, record->number[0], &handle);
    case V1_Stack:
        return record->number[0] != 0 && record->number[1] != 0 &&
               !tables_stack(tables, record->number[0], &handle);
    default:
        return false;
    }
}

/*
 * Whether the trace may continue at `at`. A file has no marks to search for, so the bytes there
 * must fit the rest: a Batch of a P whose time advances, or a string or stack with an unused ID.
 */
static bool goes_on(const struct v1_index *index, const struct tables *tables, const uint8_t *at)
{
    const struct v1_bytes *bytes = &index->input.bytes;
    const uint8_t *end = bytes->data + bytes->size;
    struct v1_record record;
    unsigned type = *at & V1_TYPE_MASK;
    if ((type != V1_Batch && type != V1_String && type != V1_Stack) ||
        v1_record_read(index->format, bytes, at, &record, NULL) < 0 ||
        !fits(index, tables, &record))
        return false;
    at = record.end;
    for (unsigned i = 0; i < FOLLOWING && at < end; i++, at = record.end)
        if (v1_record_read(index->format, bytes, at, &record, NULL) < 0)
            return false;
    return true;
}

/*
 * Whether another trace begins at `at`, inside damage: a header followed by a batch, because
 * strings may contain the bytes of a header.
 */
static bool begins_trace(struct v1_index *index, const uint8_t *at)
{
    const struct v1_bytes *bytes = &index->input.bytes;
    if (*at != 'g' || bytes->data + bytes->size - at <= WIRE_HEADER_SIZE)
        return false;
    int version = wire_header_parse(at);
    uint8_t next = at[WIRE_HEADER_SIZE];
    bool v2 = trail_version_is_v2(version);
    if (version <= 0 || next != (v2 ? V2_EventBatch : V1_Batch | 1 << V1_COUNT_SHIFT))
        return false;
    index->next_trace = (int64_t)v1_offset(bytes, at);
    return true;
}

/* Whether the record before `at` was cut, and consists of the first bytes of another trace. */
static bool is_in_trace(struct v1_index *index, const uint8_t *at)
{
    const uint8_t *begin = index->input.bytes.data;
    for (size_t back = 0; back < WIRE_HEADER_SIZE && back <= (size_t)(at - begin); back++)
        if (begins_trace(index, at - back))
            return true;
    return false;
}

/*
 * Moves *at to where records continue. Returns 1, 0 at the end of the trace, -1 on an error. Data
 * without a batch near the start are not a trace.
 */
static int find_records(struct sweep *sweep, const uint8_t **at)
{
    struct v1_index *index = sweep->index;
    const struct v1_bytes *bytes = &index->input.bytes;
    const uint64_t begin = v1_offset(bytes, *at);
    bool ended = false;
    for (;; (*at)++) {
        if (index->batch_count == 0 && v1_offset(bytes, *at) - begin > TEXT_REACH)
            return 0;
        while (!ended && bytes->data + bytes->size - *at < REACH) {
            int more = v1_input_more(&index->input, at, sweep->err);
            if (more < 0)
                return -1;
            ended = more == 0;
        }
        if (*at == bytes->data + bytes->size || begins_trace(index, *at))
            return 0;
        if (goes_on(index, sweep->tables, *at))
            return 1;
    }
}

static struct v1_hole *add_hole(struct v1_index *index, uint64_t begin)
{
    if (!GROW(index->holes, index->hole_capacity, index->hole_count + 1))
        return NULL;
    struct v1_hole *hole = &index->holes[index->hole_count++];
    *hole = (struct v1_hole){.begin = begin, .latest_ticks = INT64_MAX};
    struct v1_batch *batch =
        index->batch_count > 0 ? &index->batches[index->batch_count - 1] : NULL;
    if (batch && batch->hole == 0)
        batch->hole = (uint32_t)index->hole_count;
    return hole;
}

/* MARK: Text */

/*
 * Whether the frequency is at `at`: between two batches, without one of its own, perhaps followed
 * by the goroutines that run timers.
 */
static bool frequency_goes_on(const struct v1_index *index, const struct tables *tables,
                              const uint8_t *at)
{
    const struct v1_bytes *bytes = &index->input.bytes;
    const uint8_t *end = bytes->data + bytes->size;
    struct v1_record record;
    for (uint8_t type = V1_Frequency; at < end && *at == type; at = record.end) {
        if (v1_record_read(index->format, bytes, at, &record, NULL) < 0 ||
            (type == V1_Frequency &&
             (record.number[0] < LOWEST_HZ || record.number[0] > HIGHEST_HZ)))
            return false;
        type = V1_TimerGoroutine;
        if (record.end == end || goes_on(index, tables, record.end))
            return true;
    }
    return false;
}

/*
 * Returns where records continue after text at `from`; NULL if they do not. Sets *none to a place
 * before which no such text begins.
 */
static const uint8_t *text_end(const struct sweep *sweep, const uint8_t *from, const uint8_t **none)
{
    const struct v1_index *index = sweep->index;
    const uint8_t *end = index->input.bytes.data + index->input.bytes.size, *at = from;
    for (; at < end && is_printed(at, 1); at++)
        if (at > from && (*at & V1_TYPE_MASK) == V1_Batch && goes_on(index, sweep->tables, at))
            return at;
    *none = at;
    if (at == from)
        return NULL;
    if (at == end)
        return at[-1] == '\n' ? at : NULL; /* else a string that is cut */
    return frequency_goes_on(index, sweep->tables, at) ? at : NULL;
}

/*
 * Whether a record of printable bytes is more likely the event after which a P's batch was written:
 * in one of ten batches it is, nearly always of these types. Text rarely begins with an X, a Z or a
 * backslash.
 */
static bool is_last_event(uint8_t first)
{
    unsigned type = first & V1_TYPE_MASK;
    return first >> V1_COUNT_SHIFT == 1 &&
           (type == V1_GoBlockSelect || type == V1_GoBlockCond || type == V1_GoSysCall);
}

/* Finds text that begins at a record from `from` to `at`. Returns false if there is none. */
static bool find_text(const struct sweep *sweep, const uint8_t *from, const uint8_t *at,
                      const uint8_t **begin, const uint8_t **end)
{
    const struct v1_index *index = sweep->index;
    const uint8_t *none = from;
    for (struct v1_record record; from <= at; from = record.end) {
        *begin = from;
        *end = from >= none && !is_last_event(*from) ? text_end(sweep, from, &none) : NULL;
        if (*end && utf8_valid((trail_string){(const char *)from, (size_t)(*end - from)}))
            return true;
        if (v1_record_read(index->format, &index->input.bytes, from, &record, NULL) < 0)
            return false;
    }
    return false;
}

/* Counts the timed records in [at, end), which turned out to be text. */
static uint64_t count_timed(const struct v1_index *index, const uint8_t *at, const uint8_t *end)
{
    uint64_t count = 0;
    struct v1_record record;
    for (; at < end && v1_record_read(index->format, &index->input.bytes, at, &record, NULL) == 0;
         at = record.end)
        count += v1_time_fields(record.type, index->format->version) > 0;
    return count;
}

/*
 * Moves *at past text that the program printed, if that begins there or in the records before it.
 * Returns 1, 0 if there is none, -1 on an error.
 */
static int cut_text(struct sweep *sweep, const uint8_t **at)
{
    struct v1_index *index = sweep->index;
    const struct v1_bytes *bytes = &index->input.bytes;
    const uint8_t *begin, *end;
    int more = 1;
    while (more > 0 && bytes->data + bytes->size - *at < TEXT_REACH)
        more = more_input(sweep, at, sweep->err);
    if (more < 0)
        return -1;
    const uint8_t *from = text_may_begin(sweep);
    sweep->searched = v1_offset(bytes, *at);
    if (!find_text(sweep, from, *at, &begin, &end))
        return 0;
    uint64_t offset = v1_offset(bytes, begin);
    struct v1_hole *hole = index->batch_count > 0 ? add_hole(index, offset) : NULL;
    if (index->batch_count > 0 && !hole)
        return error_no_memory(sweep->err);
    if (hole) {
        *hole = (struct v1_hole){offset, offset + (uint64_t)(end - begin), .text = true};
        index->text_holes++;
    }
    if (index->text_bytes == 0)
        index->text_offset = (int64_t)offset;
    index->text_bytes += (uint64_t)(end - begin);
    index->timed -= count_timed(index, begin, *at);
    error_clear(sweep->err);
    *at = end;
    sweep->searched = index->end = (size_t)v1_offset(bytes, end);
    return 1;
}

/*
 * Whether a record may be a letter of printed text: a batch that does not fit, or a record whose
 * first byte Go does not write.
 */
static bool is_doubtful(const struct v1_index *index, const struct v1_record *record, uint8_t first)
{
    switch (record->type) {
    case V1_Batch:
        return !fits_batch(index, record);
    case V1_Frequency:
    case V1_String:
    case V1_TimerGoroutine:
    case V1_FutileWakeup:
        return first != record->type;
    case V1_Stack:
    case V1_CPUSample:
        return first >> V1_COUNT_SHIFT != V1_COUNT_LENGTH;
    default:
        return index->batch_count == 0;
    }
}

/*
 * Whether only zero bytes follow. If the record before them ends in one, they may have completed a
 * record that is cut.
 */
static bool is_padding(struct v1_input *input, const uint8_t **at)
{
    trail_error none;
    const struct v1_bytes *bytes = &input->bytes;
    size_t zeros = 0;
    int more = 1;
    if (*at == bytes->data || (*at)[-1] == 0 || **at != 0)
        return false;
    while (more > 0) {
        const uint8_t *from = *at + zeros, *end = bytes->data + bytes->size;
        if (!is_zero(from, (size_t)(end - from)))
            return false;
        if (input->again)
            return source_only_zeros_follow(input->source);
        zeros = (size_t)(end - *at);
        more = v1_input_more(input, at, &none);
    }
    return more == 0;
}

/*
 * The bytes at *at are not a record, for `reason`. Continues after the damage if that is wanted and
 * possible. Returns as sweep_some.
 */
static int damaged(struct sweep *sweep, const uint8_t **at, trail_error reason)
{
    struct v1_index *index = sweep->index;
    bool began = index->batch_count > 0;
    reason.batch = began ? (int64_t)index->batch_count - 1 : TRAIL_NOWHERE;
    *sweep->err = reason;
    if (!sweep->salvage || reason.code == TRAIL_NO_MEMORY || reason.code == TRAIL_IO)
        return -1;
    index->padded = !sweep->orphaned && is_padding(&index->input, at);
    if (index->padded) {
        error_clear(sweep->err);
        return 0;
    }
    int is_text = sweep->orphaned ? 0 : cut_text(sweep, at);
    if (is_text != 0)
        return is_text;
    if (!v1_index_is_damaged(index))
        sweep->first = reason;
    if (!sweep->orphaned && !add_hole(index, v1_offset(&index->input.bytes, *at)))
        return error_no_memory(sweep->err);
    const bool last = is_in_trace(index, *at);
    (*at)++;
    int found = last ? 0 : find_records(sweep, at);
    struct v1_hole *hole = &index->holes[index->hole_count - 1];
    hole->end = v1_offset(&index->input.bytes, *at);
    hole->exact = found == 0 && reason.code == TRAIL_TRUNCATED;
    sweep->orphaned = true;
    return found;
}

/*
 * Whether another trace begins at *at, where no record does: no valid record has the first byte of
 * a header. Returns -1 on an error.
 */
static int at_trace(struct sweep *sweep, const uint8_t **at)
{
    struct v1_index *index = sweep->index;
    const struct v1_bytes *bytes = &index->input.bytes;
    int more = 1;
    while (more > 0 && bytes->data + bytes->size - *at < WIRE_HEADER_SIZE)
        more = more_input(sweep, at, sweep->err);
    if (more <= 0)
        return more;
    if (wire_header_parse(*at) == 0)
        return 0;
    index->next_trace = (int64_t)v1_offset(bytes, *at);
    return 1;
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
        int more = cut ? more_input(sweep, at, &err) : 0;
        if (more > 0) {
            error_clear(&err);
            continue;
        }
        if (more == 0 && reason.code == TRAIL_OK)
            return 0;
        int trace = sweep->salvage && more == 0 ? at_trace(sweep, at) : 0;
        if (trace == 0)
            return damaged(sweep, at, more < 0 ? err : reason);
        return trace > 0 ? 0 : -1;
    }
    uint64_t offset = v1_offset(bytes, *at);
    if (sweep->orphaned && v1_time_fields(record.type, index->format->version) > 0)
        return damaged(sweep, at, sweep->first);
    if (sweep->salvage && !sweep->orphaned && is_doubtful(index, &record, **at)) {
        int is_text = cut_text(sweep, at);
        if (is_text != 0)
            return is_text;
        if (v1_record_read(index->format, bytes, *at, &record, &err) < 0) /* it has moved */
            return damaged(sweep, at, err);
    }
    if (take_record(sweep, &record, offset) < 0) {
        sweep->err->offset = (int64_t)offset;
        return damaged(sweep, at, *sweep->err);
    }
    *at = record.end;
    if (index->batch_count > 0 && !sweep->orphaned)
        *at = v1_records_skip(index->format, *at, bytes->data + bytes->size, &index->timed);
    index->end = (size_t)v1_offset(bytes, *at);
    return 1;
}

/* After a P's last batch, only the other batches of the trace bound the times of its hole. */
static void bound_holes(struct v1_index *index)
{
    int64_t latest;
    if (index->longest_ticks == 0 ||
        __builtin_add_overflow(index->newest_ticks, index->longest_ticks, &latest))
        return;
    for (size_t i = 0; i < index->hole_count; i++)
        if (!index->holes[i].exact && index->holes[i].latest_ticks == INT64_MAX)
            index->holes[i].latest_ticks = latest;
}

/* Skips the header, which has been checked. */
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
    return ORDER(x->ticks, y->ticks) ?: ORDER(x->offset, y->offset);
}

int v1_index_build(struct v1_index *index, const struct v1_format *format, trail_source *source,
                   struct tables *tables, bool salvage, trail_error *err)
{
    error_clear(err);
    index->format = format;
    index->next_trace = index->text_offset = -1;
    if (v1_input_open(&index->input, source, format->version < 7, err) < 0)
        return -1;
    struct sweep sweep = {.index = index, .tables = tables, .err = err, .salvage = salvage};
    int result = sweep_all(&sweep);
    free(sweep.frames);
    /* At equal times by offset, as in a stable sort of the file by time. */
    if (index->sample_count > 0)
        qsort(index->samples, index->sample_count, sizeof *index->samples, compare_samples);
    bound_holes(index);
    if (result < 0 || !v1_index_is_damaged(index))
        return result;
    *err = sweep.first;
    return -1;
}

void v1_index_fini(struct v1_index *index)
{
    v1_input_close(&index->input);
    free(index->batches);
    free(index->chains);
    idmap_free(&index->chain_ids);
    free(index->samples);
    free(index->holes);
    idmap_free(&index->timer_gs);
    *index = (struct v1_index){0};
}

int64_t v1_index_batch_at(const struct v1_index *index, uint64_t offset)
{
    return (int64_t)SEARCH(i, 0, index->batch_count, index->batches[i].offset <= offset) - 1;
}

const uint8_t *v1_hole_trusted(const struct v1_hole *hole, const struct v1_format *format,
                               const struct v1_bytes *bytes, const uint8_t *at, const uint8_t *end,
                               int64_t ticks)
{
    const uint8_t *recent[DOUBTED] = {at, at, at, at};
    struct v1_record record;
    for (unsigned i = 0; at < end; i++, at = record.end) {
        if (v1_record_read(format, bytes, at, &record, NULL) < 0)
            break;
        unsigned fields = v1_time_fields(record.type, format->version);
        if (fields > 0 && (record.type != V1_CPUSample || !format->newer_rules))
            ticks = (int64_t)((uint64_t)ticks + record.number[fields - 1]);
        if (ticks > hole->latest_ticks)
            break;
        if (fields > 0)
            recent[i % DOUBTED] = at;
        else /* strings, stacks and frequencies do not occur by chance */
            recent[0] = recent[1] = recent[2] = recent[3] = record.end;
    }
    if (hole->exact)
        return at;
    const uint8_t *oldest = recent[0];
    for (unsigned i = 1; i < DOUBTED; i++)
        oldest = recent[i] < oldest ? recent[i] : oldest;
    return oldest;
}
