/*
 * Records: every record of a trace as it is in the file, decoded by the tables of src/wire alone.
 * Nothing is ordered or validated; a batch of v2 is just a record followed by others (§5.6), and
 * its size is ignored.
 *
 * A record is decoded from [at, end), the whole trace in place or a window of it. A record that is
 * incomplete there is decoded again from its start after more input was read; the window doubles
 * when it is full, so memory is bounded by twice the input read. Its numbers are in `numbers`,
 * which grows with the bytes that encode them: counts in the file allocate nothing.
 */
#include "read/records.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/varint.h"
#include "read/reader.h"
#include "read/source.h"
#include "read/v1/lex.h"

#define WINDOW_AT_FIRST  ((size_t)256 << 10)
#define NUMBERS_AT_FIRST 64

enum decoded { DECODED, NEEDS_MORE, FAILED };

struct trail_records {
    trail_source *source;
    int version;
    const uint8_t *at, *end;
    uint8_t *window; /* holds [at, end); NULL: in place */
    size_t window_size;
    bool ended;     /* no input follows `end` */
    int64_t offset; /* of `at` in the trace */
    uint64_t *numbers;
    size_t capacity;
    struct v1_lex lex;
    const char *v1_names[V1_TYPES][V1_NAMED_NUMBERS];
    trail_record record;
    void (*before_wait)(void *context);
    void *context;
    bool failed;
    trail_error error;
};

static enum decoded records_fail(trail_records *r)
{
    if (r->error.offset == TRAIL_NOWHERE)
        r->error.offset = r->offset;
    r->failed = true;
    return FAILED;
}

static bool reserve_numbers(trail_records *r, size_t count)
{
    if (count <= r->capacity)
        return true;
    uint64_t *grown = count <= SIZE_MAX / 2 / sizeof *grown
                          ? realloc(r->numbers, 2 * count * sizeof *grown)
                          : NULL;
    if (!grown) {
        error_set(&r->error, TRAIL_NO_MEMORY, "no memory for a record of %zu numbers", count);
        return false;
    }
    r->numbers = grown;
    r->capacity = 2 * count;
    return true;
}

/* MARK: v2 */

/* Decodes `count` numbers, for which there is room, and advances *at. */
static enum decoded v2_numbers(trail_records *r, const uint8_t **at, uint64_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint8_t *next = uvarint_get(*at, r->end, &to[i]);
        if (__builtin_expect(!next, 0)) {
            if (r->end - *at < UVARINT_MAX_SIZE)
                return NEEDS_MORE;
            error_set(&r->error, TRAIL_CORRUPT, "binary: varint overflows a 64-bit integer");
            return records_fail(r);
        }
        *at = next;
    }
    return DECODED;
}

static enum decoded v2_frames(trail_records *r, const uint8_t **at)
{
    uint64_t frames = r->numbers[1];
    size_t args = r->record.args;
    if (frames > (uint64_t)(r->end - *at) / 4 ||
        frames > UINT_MAX) /* a number has at least one byte */
        return NEEDS_MORE;
    if (!reserve_numbers(r, args + 4 * frames))
        return records_fail(r);
    enum decoded result = v2_numbers(r, at, r->numbers + args, 4 * frames);
    r->record.frames = (unsigned)frames;
    r->record.frame_fields = 4;
    r->record.frame = r->numbers + args;
    return result;
}

static enum decoded v2_data(trail_records *r, const uint8_t **at)
{
    uint64_t size = 0;
    enum decoded result = v2_numbers(r, at, &size, 1);
    if (result != DECODED)
        return result;
    if (size > (uint64_t)(r->end - *at))
        return NEEDS_MORE;
    r->record.has_data = true;
    r->record.data = (trail_string){.data = (const char *)*at, .size = size};
    *at += size;
    return DECODED;
}

static enum decoded v2_decode(trail_records *r)
{
    const uint8_t *at = r->at;
    unsigned type = *at++;
    if (!v2_type_known(type, r->version)) {
        error_set(&r->error, TRAIL_CORRUPT, "invalid event type: %u", type);
        return records_fail(r);
    }
    const struct v2_type_info *info = &v2_types[type];
    r->record = (trail_record){.offset = r->offset,
                               .type = type,
                               .name = info->name,
                               .args = info->args,
                               .arg_name = info->arg};
    enum decoded result = v2_numbers(r, &at, r->numbers, info->args);
    if (result == DECODED && type == V2_Stack)
        result = v2_frames(r, &at);
    if (result == DECODED && (type == V2_String || type == V2_ExperimentalBatch))
        result = v2_data(r, &at);
    r->record.arg = r->numbers;
    r->record.size = (uint64_t)(at - r->at);
    return result;
}

/* MARK: v1 */

static void v1_name_numbers(trail_records *r)
{
    for (unsigned type = 1; type < V1_TYPES; type++)
        for (unsigned i = 0; i < V1_NAMED_NUMBERS; i++)
            r->v1_names[type][i] = v1_number_name(type, r->version, i);
}

static enum decoded v1_bad_value(trail_records *r, const uint8_t *at)
{
    error_set(&r->error, TRAIL_CORRUPT, "bad value at offset 0x%" PRIx64, r->offset + (at - r->at));
    return records_fail(r);
}

/* Decodes all numbers in [at, end) and counts them. */
static enum decoded v1_numbers(trail_records *r, const uint8_t *at, const uint8_t *end,
                               size_t *count)
{
    size_t n = 0;
    if (!reserve_numbers(r, (size_t)(end - at)))
        return records_fail(r);
    while (at < end) {
        const uint8_t *next = uvarint_get(at, end, &r->numbers[n++]);
        if (!next)
            return v1_bad_value(r, at);
        at = next;
    }
    *count = n;
    return DECODED;
}

/*
 * Decodes a number in a record that the lexer found complete; 0 if it exceeds 64 bits, which no
 * length does.
 */
static uint64_t v1_number(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    const uint8_t *next = uvarint_get(*at, end, &value);
    if (next)
        *at = next;
    return next ? value : 0;
}

static enum decoded v1_wrong_count(trail_records *r, uint64_t want, uint64_t got)
{
    error_set(&r->error, TRAIL_CORRUPT,
              "%s has wrong number of arguments at offset 0x%" PRIx64 ": want %" PRIu64
              ", got %" PRIu64,
              r->record.name, r->offset, want, got);
    return records_fail(r);
}

static enum decoded v1_stack(trail_records *r, size_t count)
{
    unsigned fields = r->version < 7 ? 1 : 4;
    if (count < 2 || (count - 2) / fields != r->numbers[1] || (count - 2) % fields != 0)
        return v1_wrong_count(r, 2 + fields * (count < 2 ? 0 : r->numbers[1]), count);
    r->record.args = 2;
    r->record.frames = (unsigned)r->numbers[1];
    r->record.frame_fields = fields;
    r->record.frame = r->numbers + 2;
    return DECODED;
}

static enum decoded v1_string(trail_records *r, const uint8_t *at, const uint8_t *next)
{
    r->numbers[0] = v1_number(&at, next);
    uint64_t size = v1_number(&at, next);
    r->record.args = 1;
    r->record.has_data = true;
    r->record.data = (trail_string){.data = (const char *)(next - size), .size = size};
    return DECODED;
}

/* Decodes the record from its first byte to the end found by the lexer. */
static enum decoded v1_record(trail_records *r, const uint8_t *next)
{
    unsigned class = r->lex.class[*r->at], type = r->record.type;
    const uint8_t *at = r->at + 1, *end = next;
    size_t count = 0;
    if (class == V1_LEX_STRING)
        return v1_string(r, at, next);
    if (class == V1_LEX_LENGTH || class == V1_LEX_LOG) {
        uint64_t length = v1_number(&at, next);
        end = at + length;
    }
    if (class == V1_LEX_LOG) {
        const uint8_t *text = end;
        uint64_t size = v1_number(&text, next);
        r->record.has_data = true;
        r->record.data = (trail_string){.data = (const char *)text, .size = size};
    }
    enum decoded result = v1_numbers(r, at, end, &count);
    if (result != DECODED)
        return result;
    if (type == V1_Stack)
        return v1_stack(r, count);
    unsigned want = v1_time_fields(type, r->version) + v1_arg_count(type, r->version);
    if (count != want)
        return v1_wrong_count(r, want, count);
    r->record.args = want;
    return DECODED;
}

static enum decoded v1_decode(trail_records *r)
{
    const uint8_t *next = v1_lex_skip(&r->lex, r->at, r->end);
    if (__builtin_expect(!next, 0)) {
        v1_lex_error(&r->lex, r->at, r->end, r->offset, &r->error);
        return r->error.code == TRAIL_TRUNCATED ? NEEDS_MORE : records_fail(r);
    }
    unsigned type = *r->at & V1_TYPE_MASK;
    r->record = (trail_record){.offset = r->offset,
                               .size = (uint64_t)(next - r->at),
                               .type = type,
                               .name = v1_types[type].name,
                               .arg_name = r->v1_names[type]};
    enum decoded result = v1_record(r, next);
    r->record.arg = r->numbers;
    return result;
}

/* MARK: The window */

/* Appends at least one byte to [at, end). Returns 1, 0 at the end of the input, -1 on an error. */
static int records_fill(trail_records *r)
{
    size_t have = (size_t)(r->end - r->at);
    if (r->ended)
        return 0;
    if (have > r->window_size / 2) {
        uint8_t *grown = r->window_size <= SIZE_MAX / 2 ? malloc(2 * r->window_size) : NULL;
        if (!grown) {
            error_set(&r->error, TRAIL_NO_MEMORY, "no memory for a record of over %zu bytes", have);
            return records_fail(r), -1;
        }
        memcpy(grown, r->at, have);
        free(r->window);
        r->window = grown;
        r->window_size *= 2;
    } else if (have > 0) {
        memmove(r->window, r->at, have);
    }
    r->at = r->window;
    r->end = r->window + have;
    if (r->before_wait)
        r->before_wait(r->context);
    ssize_t n = source_read(r->source, r->window + have, r->window_size - have, &r->error);
    if (n < 0)
        return records_fail(r), -1;
    r->end += n;
    r->ended = n == 0;
    return n > 0;
}

/* Opens the window and skips the header, which has been checked. */
static int records_begin(trail_records *r, trail_error *err)
{
    size_t size = 0;
    r->version = reader_peek_version(r->source, err);
    if (r->version < 0)
        return -1;
    if (!trail_version_is_v2(r->version)) {
        v1_lex_init(&r->lex, r->version);
        v1_name_numbers(r);
    }
    if (!reserve_numbers(r, NUMBERS_AT_FIRST))
        return error_no_memory(err);
    if (source_in_place(r->source, &r->at, &size)) {
        r->ended = true;
        r->at += WIRE_HEADER_SIZE;
        r->end = r->at + size - WIRE_HEADER_SIZE;
    } else {
        if (source_skip(r->source, WIRE_HEADER_SIZE, err) < 0)
            return -1;
        r->window_size = WINDOW_AT_FIRST;
        r->at = r->end = r->window = malloc(r->window_size);
        if (!r->window)
            return error_no_memory(err);
    }
    r->offset = WIRE_HEADER_SIZE;
    return 0;
}

void records_before_wait(trail_records *records, void (*call)(void *context), void *context)
{
    records->before_wait = call;
    records->context = context;
}

/* MARK: The public side */

trail_records *trail_records_open(trail_source *source, trail_error *err)
{
    trail_records *r = calloc(1, sizeof *r);
    if (!r) {
        error_no_memory(err);
        return NULL;
    }
    error_clear(&r->error);
    r->source = source;
    if (records_begin(r, err) == 0)
        return r;
    trail_records_close(r);
    return NULL;
}

int trail_records_version(const trail_records *records)
{
    return records->version;
}

static int records_cut(trail_records *r)
{
    bool v2 = trail_version_is_v2(r->version);
    const char *name = v2 ? v2_types[*r->at].name : v1_types[*r->at & V1_TYPE_MASK].name;
    error_set(&r->error, TRAIL_TRUNCATED,
              "the trace ends inside a record of type %s at offset 0x%" PRIx64, name, r->offset);
    records_fail(r);
    return -1;
}

int trail_records_next(trail_records *r, const trail_record **record)
{
    if (r->failed)
        return -1;
    r->at += r->record.size;
    r->offset += (int64_t)r->record.size;
    r->record.size = 0;
    if (r->at == r->end) {
        int filled = records_fill(r);
        if (filled <= 0)
            return filled;
    }
    for (;;) {
        enum decoded result = trail_version_is_v2(r->version) ? v2_decode(r) : v1_decode(r);
        if (result == DECODED) {
            *record = &r->record;
            return 1;
        }
        r->record.size = 0;
        int filled = result == FAILED ? -1 : records_fill(r);
        if (filled < 0)
            return -1;
        if (filled == 0)
            return records_cut(r);
    }
}

const trail_error *trail_records_error(const trail_records *records)
{
    return &records->error;
}

void trail_records_close(trail_records *records)
{
    if (!records)
        return;
    free(records->window);
    free(records->numbers);
    free(records);
}
