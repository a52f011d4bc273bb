/*
 * Assembling: turns the text form of records back into a trace (§5.6, docs/wire-text.md), driven by
 * the same tables as the decoder. Numbers are written in as few bytes as possible.
 *
 * Records of v2 are collected in `body` until their batch ends, because the size before them may
 * need correction: it is kept if it is right, or if the batch has no records (so that a damaged
 * batch can be written down), and computed if it is wrong or `size=auto`.
 */
#include <trail/export.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/out.h"
#include "base/quote.h"
#include "base/varint.h"
#include "read/source.h"
#include "wire/wire.h"

#define NAMES       256 /* slots of the table of names; a power of two over twice their number */
#define BODY_ENOUGH ((size_t)64 << 10)

struct span {
    const char *at, *end;
};

/* The text not read yet. */
struct text {
    struct span rest;
    unsigned line; /* the number of the last line read */
};

struct assembler {
    struct text text;
    int version;
    bool v2;
    uint8_t names[NAMES]; /* hash of a name -> type, 0: free */

    uint64_t *numbers; /* of the record being read */
    size_t count, capacity;
    char *data; /* of the record being read; room for as many bytes as the text has */
    size_t data_size;

    uint8_t *body; /* records not written yet */
    size_t body_size, body_capacity;
    bool in_batch; /* v2: `batch` is written before the body */
    uint64_t batch[4];

    struct out out;
    trail_error *err;
};

#define FAIL(a, ...) assemble_fail(a, TRAIL_CORRUPT, __VA_ARGS__)

static int assemble_fail(struct assembler *a, trail_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int assemble_fail(struct assembler *a, trail_code code, const char *format, ...)
{
    char message[TRAIL_MESSAGE_MAX - 32];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (a->text.line == 0) /* about the text as a whole */
        return error_set(a->err, code, "%s", message);
    return error_set(a->err, code, "line %u: %s", a->text.line, message);
}

static int no_memory(struct assembler *a)
{
    return assemble_fail(a, TRAIL_NO_MEMORY, "no memory");
}

/* MARK: Lines and tokens */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span trim(struct span s)
{
    while (s.at < s.end && is_space(*s.at))
        s.at++;
    while (s.at < s.end && is_space(s.end[-1]))
        s.end--;
    return s;
}

static bool span_is(struct span s, const char *text)
{
    return (size_t)(s.end - s.at) == strlen(text) && memcmp(s.at, text, strlen(text)) == 0;
}

/* The length for %.*s: a message shows at most a line of the input. */
static int shown(struct span s)
{
    return s.end - s.at < 100 ? (int)(s.end - s.at) : 100;
}

static struct span raw_line(struct text *text)
{
    struct span line = text->rest;
    const char *newline = memchr(line.at, '\n', (size_t)(line.end - line.at));
    line.end = newline ? newline : line.end;
    text->rest.at = newline ? newline + 1 : line.end;
    text->line++;
    return line;
}

/* Reads the next line that is neither blank nor a comment, trimmed. False at the end. */
static bool next_line(struct text *text, struct span *line)
{
    while (text->rest.at < text->rest.end) {
        *line = trim(raw_line(text));
        if (line->at < line->end && *line->at != '#')
            return true;
    }
    return false;
}

/* Takes the next word off a line; empty at its end or at a comment. */
static struct span token(struct span *line)
{
    struct span word = trim(*line);
    const char *end = word.at;
    while (end < word.end && !is_space(*end) && *end != '#')
        end++;
    word.end = end;
    line->at = end;
    return word;
}

static bool is_marker(struct span line)
{
    return line.end - line.at >= 6 && memcmp(line.at, "-- ", 3) == 0 &&
           memcmp(line.end - 3, " --", 3) == 0;
}

/* In an archive of texts, narrows the text to the one named `trace`. */
static void find_trace(struct text *text)
{
    struct text search = *text;
    while (search.rest.at < search.rest.end) {
        if (!span_is(trim(raw_line(&search)), "-- trace --"))
            continue;
        *text = search;
        while (search.rest.at < search.rest.end) {
            const char *begin = search.rest.at;
            if (is_marker(trim(raw_line(&search)))) {
                text->rest.end = begin;
                return;
            }
        }
        return;
    }
}

/* MARK: Names */

static const char *type_name(const struct assembler *a, unsigned type)
{
    if (a->v2)
        return v2_type_known(type, a->version) ? v2_types[type].name : NULL;
    return type < V1_TYPES && v1_types[type].since <= a->version ? v1_types[type].name : NULL;
}

static const char *number_name(const struct assembler *a, unsigned type, unsigned i)
{
    if (!a->v2)
        return v1_number_name(type, a->version, i);
    return i < v2_types[type].args ? v2_types[type].arg[i] : NULL;
}

/* Returns the slot of a name: the one that has it, or the free one where it would go. */
static uint8_t *name_slot(struct assembler *a, struct span name)
{
    uint32_t hash = 2166136261;
    for (const char *c = name.at; c < name.end; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619;
    for (;; hash++) {
        uint8_t *slot = &a->names[(hash ^ hash >> 15) & (NAMES - 1)];
        if (!*slot || span_is(name, type_name(a, *slot)))
            return slot;
    }
}

static void learn_names(struct assembler *a)
{
    for (unsigned type = 1; type < 256; type++) {
        const char *name = type_name(a, type);
        if (name)
            *name_slot(a, (struct span){name, name + strlen(name)}) = (uint8_t)type;
    }
}

/* MARK: Numbers and data */

static bool parse_number(struct span text, uint64_t *value)
{
    uint64_t sum = 0;
    if (text.at == text.end)
        return false;
    for (const char *c = text.at; c < text.end; c++) {
        unsigned digit = (unsigned)(*c - '0');
        if (digit > 9 || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    return true;
}

/* Reads `name=NUMBER`; `may_be_auto` lets the number be the word auto, which becomes 0. */
static int read_number(struct assembler *a, struct span *line, const char *name, bool may_be_auto)
{
    struct span word = token(line);
    if (word.at == word.end)
        return FAIL(a, "no argument: \"%s\" is missing", name);
    const char *equals = memchr(word.at, '=', (size_t)(word.end - word.at));
    if (!equals)
        return FAIL(a, "malformed argument: \"%.*s\"", shown(word), word.at);
    struct span given = {word.at, equals}, text = {equals + 1, word.end};
    if (!span_is(given, name))
        return FAIL(a, "expected argument \"%s\", but got \"%.*s\"", name, shown(given), given.at);
    uint64_t value = 0;
    bool is_auto = may_be_auto && span_is(text, "auto");
    if (!is_auto && !parse_number(text, &value))
        return FAIL(a, "failed to parse argument value \"%.*s\" for arg \"%s\"", shown(text),
                    text.at, name);
    return APPEND(a->numbers, a->capacity, a->count, value) ? 0 : no_memory(a);
}

static int end_of_line(struct assembler *a, struct span line)
{
    struct span word = token(&line);
    if (word.at == word.end)
        return 0;
    return FAIL(a, "encountered unexpected non-space at the end of an event: \"%.*s\"", shown(word),
                word.at);
}

static int read_frames(struct assembler *a, uint64_t frames, unsigned fields)
{
    static const char *const names[] = {"pc", "func", "file", "line"};
    for (uint64_t i = 0; i < frames; i++) {
        struct span line;
        if (!next_line(&a->text, &line))
            return FAIL(a, "unexpected EOF while reading a stack");
        for (unsigned field = 0; field < fields; field++)
            if (read_number(a, &line, names[field], false) < 0)
                return -1;
        if (end_of_line(a, line) < 0)
            return -1;
    }
    return 0;
}

/* Reads the line `data="..."`, which is omitted when the data are empty. */
static int read_data(struct assembler *a)
{
    struct text ahead = a->text;
    struct span line;
    a->data_size = 0;
    if (!next_line(&ahead, &line) || line.end - line.at < 4 || memcmp(line.at, "data", 4) != 0)
        return 0;
    a->text = ahead;
    struct span rest = trim((struct span){line.at + 4, line.end});
    if (rest.at == rest.end || *rest.at != '=')
        return FAIL(a, "malformed data: \"%.*s\"", shown(line), line.at);
    rest.at++;
    rest = trim(rest);
    ptrdiff_t size = unquote(rest.at, (size_t)(rest.end - rest.at), a->data);
    if (size < 0)
        return FAIL(a, "failed to parse data: \"%.*s\"", shown(line), line.at);
    a->data_size = (size_t)size;
    return 0;
}

/* MARK: The body */

static bool body_room(struct assembler *a, size_t size)
{
    return GROW(a->body, a->body_capacity, a->body_size + size);
}

static void body_number(struct assembler *a, uint64_t value)
{
    a->body_size += uvarint_put(a->body + a->body_size, value);
}

static void body_numbers(struct assembler *a)
{
    for (size_t i = 0; i < a->count; i++)
        body_number(a, a->numbers[i]);
}

static void body_data(struct assembler *a)
{
    body_number(a, a->data_size);
    if (a->data_size > 0)
        memcpy(a->body + a->body_size, a->data, a->data_size);
    a->body_size += a->data_size;
}

static void write_number(struct assembler *a, uint64_t value)
{
    uint8_t bytes[UVARINT_MAX_SIZE];
    out_bytes(&a->out, bytes, uvarint_put(bytes, value));
}

/* Writes the open batch, or the records that belong to none. */
static void body_flush(struct assembler *a)
{
    if (a->in_batch) {
        out_char(&a->out, V2_EventBatch);
        for (unsigned i = 0; i < 4; i++)
            write_number(a, a->batch[i]);
    }
    out_bytes(&a->out, a->body, a->body_size);
    a->body_size = 0;
    a->in_batch = false;
}

/* MARK: Records */

static void v2_end_batch(struct assembler *a)
{
    if (a->in_batch && a->body_size > 0)
        a->batch[3] = a->body_size;
    body_flush(a);
}

static void v2_begin_batch(struct assembler *a)
{
    v2_end_batch(a);
    memcpy(a->batch, a->numbers, sizeof a->batch);
    a->in_batch = true;
}

static void v2_emit(struct assembler *a, unsigned type, bool has_data)
{
    if (type == V2_EventBatch) {
        v2_begin_batch(a);
        return;
    }
    bool outside = type == V2_ExperimentalBatch || type == V2_EndOfGeneration;
    if (outside)
        v2_end_batch(a);
    a->body[a->body_size++] = (uint8_t)type;
    body_numbers(a);
    if (has_data)
        body_data(a);
    if (outside)
        body_flush(a);
}

/* The argument count in the first byte excludes time fields, and stops at the value that announces
 * a length. */
static uint8_t v1_first_byte(const struct assembler *a, unsigned type)
{
    size_t uncounted = a->version < 7 ? 2 : 1;
    size_t code = a->count - uncounted;
    if (type == V1_String)
        code = 0;
    else if (type == V1_Stack || code > V1_COUNT_LENGTH)
        code = V1_COUNT_LENGTH;
    return (uint8_t)(type | code << V1_COUNT_SHIFT);
}

static void v1_emit(struct assembler *a, unsigned type, bool has_data)
{
    uint8_t first = v1_first_byte(a, type);
    a->body[a->body_size++] = first;
    if (first >> V1_COUNT_SHIFT == V1_COUNT_LENGTH) {
        size_t size = 0;
        for (size_t i = 0; i < a->count; i++)
            size += uvarint_size(a->numbers[i]);
        body_number(a, size);
    }
    body_numbers(a);
    if (has_data)
        body_data(a);
    if (a->body_size >= BODY_ENOUGH)
        body_flush(a);
}

static int read_record(struct assembler *a, struct span line)
{
    struct span name = token(&line);
    unsigned type = *name_slot(a, name);
    if (type == 0)
        return FAIL(a, "unidentified event: %.*s", shown(name), name.at);
    const char *number;
    a->count = 0;
    for (unsigned i = 0; (number = number_name(a, type, i)); i++)
        if (read_number(a, &line, number, a->v2 && type == V2_EventBatch && i == 3) < 0)
            return -1;
    if (end_of_line(a, line) < 0)
        return -1;
    bool is_stack = type == (a->v2 ? (unsigned)V2_Stack : (unsigned)V1_Stack);
    if (is_stack && read_frames(a, a->numbers[1], a->version < 7 ? 1 : 4) < 0)
        return -1;
    bool has_data = a->v2 ? type == V2_String || type == V2_ExperimentalBatch
                          : type == V1_String || type == V1_UserLog;
    if (has_data && read_data(a) < 0)
        return -1;
    if (!body_room(a, 1 + (a->count + 2) * UVARINT_MAX_SIZE + (has_data ? a->data_size : 0)))
        return no_memory(a);
    if (a->v2)
        v2_emit(a, type, has_data);
    else
        v1_emit(a, type, has_data);
    return 0;
}

/* MARK: The header */

static bool version_known(uint64_t version)
{
    return version < 1000 && trail_version_writers((int)version);
}

/* Reads `Trace Go1.NN` if present, and determines the version. */
static int read_header(struct assembler *a, int version)
{
    static const char prefix[] = "Go1.";
    struct text ahead = a->text;
    struct span line = {0};
    uint64_t said = 0;
    bool has_line = next_line(&ahead, &line);
    if (has_line && span_is(token(&line), "Trace")) {
        a->text = ahead;
        struct span go = token(&line);
        struct span number = {go.at + sizeof prefix - 1, go.end};
        if (go.end - go.at < (ptrdiff_t)sizeof prefix - 1 ||
            memcmp(go.at, prefix, sizeof prefix - 1) != 0 || !parse_number(number, &said))
            return FAIL(a, "failed to parse header Go version");
        if (!version_known(said))
            return assemble_fail(a, TRAIL_UNSUPPORTED, "unknown or unsupported Go version 1.%.*s",
                                 shown(number), number.at);
        if (version != 0 && (uint64_t)version != said)
            return assemble_fail(a, TRAIL_USAGE, "the text is of format 1.%d, not 1.%d", (int)said,
                                 version);
        if (end_of_line(a, line) < 0)
            return -1;
        version = (int)said;
    }
    if (version == 0)
        return assemble_fail(
            a, TRAIL_CORRUPT,
            "failed to parse header: no line \"Trace Go1.NN\", and no version given");
    a->version = version;
    a->v2 = trail_version_is_v2(version);
    return 0;
}

static int assemble(struct assembler *a, int version)
{
    struct span line;
    find_trace(&a->text);
    if (read_header(a, version) < 0)
        return -1;
    learn_names(a);
    out_bytes(&a->out, wire_header(a->version), WIRE_HEADER_SIZE);
    while (next_line(&a->text, &line) && !a->out.failed)
        if (read_record(a, line) < 0)
            return -1;
    return 0;
}

int trail_assemble(trail_source *source, int version, const trail_sink *sink, trail_error *err)
{
    if (version != 0 && (version < 0 || !version_known((uint64_t)version)))
        return error_set(err, TRAIL_USAGE, "there is no trace format 1.%d", version);
    const uint8_t *text;
    size_t size;
    if (source_whole(source, &text, &size, err) < 0)
        return -1;
    int result = -1;
    struct assembler *a = calloc(1, sizeof *a);
    /* The data are never longer than the text that encodes them. */
    if (!a || !(a->data = malloc(size + 1)) || !out_init(&a->out, sink->write, sink->context)) {
        error_no_memory(err);
        goto out;
    }
    a->err = err;
    a->text.rest = (struct span){(const char *)text, (const char *)text + size};
    result = assemble(a, version);
    v2_end_batch(a);
    trail_error unwritten;
    if (out_finish(&a->out, &unwritten) < 0) {
        if (err)
            *err = unwritten;
        result = -1;
    }
out:
    if (a) {
        free(a->data);
        free(a->numbers);
        free(a->body);
    }
    free(a);
    return result;
}
