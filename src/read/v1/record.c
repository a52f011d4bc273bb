/* v1: decodes and checks single records. */
#include "read/v1/record.h"

#include "base/error.h"

/* Types that the index stores or counts, so that the sweep must not skip them. */
static bool is_special(unsigned type)
{
    switch (type) {
    case V1_Batch:
    case V1_Frequency:
    case V1_Stack:
    case V1_TimerGoroutine:
    case V1_String:
    case V1_UserLog:
    case V1_CPUSample:
    case V1_FutileWakeup:
        return true;
    default:
        return false;
    }
}

static void init_shape(struct v1_format *format, unsigned type)
{
    struct v1_shape *shape = &format->shapes[type];
    shape->known = type > 0 && type < V1_TYPES && v1_types[type].since <= format->version;
    if (!shape->known || type == V1_String || type == V1_Stack)
        return;
    unsigned count = v1_arg_count(type, format->version);
    shape->ordinary = !is_special(type);
    shape->stack = v1_types[type].stack;
    shape->args = (uint8_t)(count - shape->stack);
    shape->numbers = (uint8_t)(count + v1_time_fields(type, format->version));
}

void v1_format_init(struct v1_format *format, int version, bool newer_rules)
{
    *format = (struct v1_format){.version = version, .newer_rules = newer_rules};
    format->time_fields = version < 7 ? 2 : 1;
    for (unsigned type = 0; type <= V1_TYPE_MASK; type++)
        init_shape(format, type);
    for (unsigned byte = 0; byte < 256; byte++) {
        const struct v1_shape *shape = &format->shapes[byte & V1_TYPE_MASK];
        unsigned code = byte >> V1_COUNT_SHIFT;
        if (!shape->ordinary)
            continue;
        if (code == V1_COUNT_LENGTH)
            format->first[byte] = (uint8_t)(V1_FIRST_PREFIXED | shape->numbers);
        else if (code + format->time_fields == shape->numbers)
            format->first[byte] = shape->numbers;
    }
}

/* State of v1_record_read: position and error. */
struct lexer {
    const struct v1_format *format;
    const struct v1_bytes *bytes;
    const uint8_t *at;
    const uint8_t *end;
    unsigned type;
    trail_error *err;
};

static int fail_at(struct lexer *lexer, const uint8_t *where)
{
    if (lexer->err)
        lexer->err->offset = (int64_t)v1_offset(lexer->bytes, where);
    return -1;
}

static unsigned long long offset_of(const struct lexer *lexer, const uint8_t *where)
{
    return (unsigned long long)v1_offset(lexer->bytes, where);
}

static int fail_truncated(struct lexer *lexer, const uint8_t *start)
{
    error_set(lexer->err, TRAIL_TRUNCATED,
              "failed to read event %s at offset 0x%llx: the trace ends inside it",
              v1_types[lexer->type].name, offset_of(lexer, start));
    return fail_at(lexer, start);
}

static int get_number(struct lexer *lexer, const uint8_t *start, uint64_t *value)
{
    const uint8_t *next = uvarint_get(lexer->at, lexer->end, value);
    if (next) {
        lexer->at = next;
        return 0;
    }
    if (lexer->end - lexer->at < UVARINT_MAX_SIZE) {
        const uint8_t *p = lexer->at;
        while (p < lexer->end && *p >= 0x80)
            p++;
        if (p == lexer->end)
            return fail_truncated(lexer, start);
    }
    error_set(lexer->err, TRAIL_CORRUPT, "bad value at offset 0x%llx: not a base-128 varint",
              offset_of(lexer, lexer->at));
    return fail_at(lexer, lexer->at);
}

static int wrong_count(struct lexer *lexer, const uint8_t *start, uint64_t want, uint64_t got)
{
    error_set(lexer->err, TRAIL_CORRUPT,
              "%s has wrong number of arguments at offset 0x%llx: want %llu, got %llu",
              v1_types[lexer->type].name, offset_of(lexer, start), (unsigned long long)want,
              (unsigned long long)got);
    return fail_at(lexer, start);
}

/* [id, length, bytes]; the first byte's count is ignored. */
static int lex_string(struct lexer *lexer, const uint8_t *start, struct v1_record *record)
{
    uint64_t size;
    if (get_number(lexer, start, &record->number[0]) < 0)
        return -1;
    unsigned long long offset = offset_of(lexer, start);
    if (record->number[0] == 0) {
        error_set(lexer->err, TRAIL_CORRUPT, "string at offset 0x%llx has invalid id 0", offset);
        return fail_at(lexer, start);
    }
    if (get_number(lexer, start, &size) < 0)
        return -1;
    if (size == 0 || size > V1_MAX_STRING) {
        error_set(lexer->err, TRAIL_CORRUPT, "string at offset 0x%llx has %s length %llu", offset,
                  size == 0 ? "invalid" : "too large", (unsigned long long)size);
        return fail_at(lexer, start);
    }
    if ((uint64_t)(lexer->end - lexer->at) < size)
        return fail_truncated(lexer, start);
    record->numbers = 1;
    record->text = (trail_string){(const char *)lexer->at, (size_t)size};
    record->end = lexer->at + size;
    return 0;
}

/* The text after a UserLog, outside the length of the record itself. */
static int lex_log_text(struct lexer *lexer, const uint8_t *start, struct v1_record *record)
{
    uint64_t size;
    lexer->at = record->end;
    if (get_number(lexer, start, &size) < 0)
        return -1;
    if (size > V1_MAX_STRING) {
        error_set(lexer->err, TRAIL_CORRUPT, "string at offset 0x%llx is too large (len=%llu)",
                  offset_of(lexer, record->end), (unsigned long long)size);
        return fail_at(lexer, record->end);
    }
    if ((uint64_t)(lexer->end - lexer->at) < size)
        return fail_truncated(lexer, start);
    record->text = (trail_string){(const char *)lexer->at, (size_t)size};
    record->end = lexer->at + size;
    return 0;
}

/* [id, n, frames]: the numbers of the frames are checked and counted, not stored. */
static int lex_stack(struct lexer *lexer, const uint8_t *start, const uint8_t *end,
                     struct v1_record *record)
{
    uint64_t got = 0, number;
    record->frames = end;
    for (; lexer->at < end; got++) {
        if (got == 2)
            record->frames = lexer->at;
        if (get_number(lexer, start, &number) < 0)
            return -1;
        if (got < 2)
            record->number[got] = number;
    }
    if (got < 2)
        return wrong_count(lexer, start, 2, got);
    record->numbers = 2;
    uint64_t frames = record->number[1];
    if (frames > V1_MAX_FRAMES) {
        error_set(lexer->err, TRAIL_CORRUPT,
                  "EvStack has bad number of frames at offset 0x%llx: %llu",
                  offset_of(lexer, start), (unsigned long long)frames);
        return fail_at(lexer, start);
    }
    uint64_t want = 2 + frames * (lexer->format->version < 7 ? 1 : 4);
    return want == got ? 0 : wrong_count(lexer, start, want, got);
}

static int lex_prefixed(struct lexer *lexer, const uint8_t *start, struct v1_record *record)
{
    uint64_t length;
    if (get_number(lexer, start, &length) < 0)
        return -1;
    const int most = lexer->format->newer_rules ? V1_MAX_LENGTH : V1_MAX_OLD_LENGTH;
    if (length > (uint64_t)most) {
        error_set(lexer->err, TRAIL_CORRUPT,
                  "failed to read event %s argument at offset 0x%llx: length-prefixed argument too "
                  "big: %llu bytes, limit is %d",
                  v1_types[lexer->type].name, offset_of(lexer, start), (unsigned long long)length,
                  most);
        return fail_at(lexer, start);
    }
    /* Go since 1.23 finds batches without reading lengths. */
    if (lexer->type == V1_Batch && lexer->format->newer_rules)
        return wrong_count(lexer, start, 2, V1_COUNT_LENGTH + 1);
    if (length > (uint64_t)(lexer->end - lexer->at))
        return fail_truncated(lexer, start);
    const uint8_t *body = lexer->at;
    const uint8_t *end = body + length;
    record->end = end;
    if (lexer->type == V1_Stack) {
        if (lex_stack(lexer, start, end, record) < 0)
            return -1;
    } else {
        uint64_t want = lexer->format->shapes[lexer->type].numbers;
        uint64_t got = 0, number;
        for (; lexer->at < end; got++) {
            if (get_number(lexer, start, &number) < 0)
                return -1;
            if (got < V1_MAX_NUMBERS)
                record->number[got] = number;
        }
        if (got != want)
            return wrong_count(lexer, start, want, got);
        record->numbers = (unsigned)got;
    }
    if (lexer->at == end)
        return 0;
    error_set(lexer->err, TRAIL_CORRUPT,
              "event has wrong length at offset 0x%llx: want %llu, got %llu",
              offset_of(lexer, start), (unsigned long long)length,
              (unsigned long long)(lexer->at - body));
    return fail_at(lexer, start);
}

static int lex_inline(struct lexer *lexer, const uint8_t *start, struct v1_record *record)
{
    unsigned numbers = (*start >> V1_COUNT_SHIFT) + lexer->format->time_fields;
    for (unsigned i = 0; i < numbers; i++)
        if (get_number(lexer, start, &record->number[i]) < 0)
            return -1;
    record->numbers = numbers;
    record->end = lexer->at;
    if (lexer->type == V1_Stack) {
        lexer->at = start + 1;
        return lex_stack(lexer, start, record->end, record);
    }
    unsigned want = lexer->format->shapes[lexer->type].numbers;
    return numbers == want ? 0 : wrong_count(lexer, start, want, numbers);
}

int v1_record_read(const struct v1_format *format, const struct v1_bytes *bytes, const uint8_t *at,
                   struct v1_record *record, trail_error *err)
{
    struct lexer lexer = {
        .format = format,
        .bytes = bytes,
        .at = at + 1,
        .end = bytes->data + bytes->size,
        .type = *at & V1_TYPE_MASK,
        .err = err,
    };
    record->type = lexer.type;
    record->text = (trail_string){0};
    if (!format->shapes[lexer.type].known) {
        error_set(err, TRAIL_CORRUPT, "unknown event type %u at offset 0x%llx", lexer.type,
                  offset_of(&lexer, at));
        return fail_at(&lexer, at);
    }
    if (lexer.type == V1_String)
        return lex_string(&lexer, at, record);
    int result = *at >> V1_COUNT_SHIFT == V1_COUNT_LENGTH ? lex_prefixed(&lexer, at, record)
                                                          : lex_inline(&lexer, at, record);
    if (result == 0 && lexer.type == V1_UserLog)
        result = lex_log_text(&lexer, at, record);
    return result;
}
