/*
 * Symbolizing: copies a trace and names its stacks. Everything but the tables of stacks is copied
 * byte for byte; write/naming.h decides what becomes of a stack.
 *
 * v2: each generation has tables, which come in any order. Batches are copied as they come until
 * the first that holds stacks or strings; from there on they are held until the generation ends,
 * when all strings are known. Each is then written in its place, with batches of stacks rewritten,
 * and additional strings in batches of their own after the last table:
 *
 *     events, events | Stacks, Strings | -> events, events | Stacks', Strings, Strings+ |
 *
 * v1: strings may be anywhere, so the file is first lexed for them; then it is copied, and each
 * stack that changes is preceded by the strings that it needs.
 *
 * An error in the trace does not lose it: what was held and what follows is copied unchanged.
 */
#include <trail/export.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/out.h"
#include "base/varint.h"
#include "read/reader.h"
#include "read/source.h"
#include "read/v1/lex.h"
#include "read/v2/batch.h"
#include "write/naming.h"

#define WINDOW_SIZE ((size_t)256 << 10) /* more than any batch of v2 */

/* A batch that is held: its bytes are in symbolizer.held. */
struct piece {
    size_t at, header_size, size; /* size: of the data */
    struct v2_batch_header header;
    trail_batch_kind kind;
};

struct symbolizer {
    trail_source *source;
    const trail_symbolize_options *options;
    int version;
    struct naming naming;
    struct out out;
    trail_error *err;

    /* The current stack: */
    struct naming_frame *frames;
    size_t frame_count, frame_capacity;
    uint64_t stack_id;
    struct naming_frame made[NAMING_MAX_FRAMES];

    /* v2: bytes read and not taken yet are at [at, end) of the window. */
    uint8_t *window;
    size_t at, end;
    int64_t offset; /* of `at` in the trace */
    uint64_t generation;
    uint8_t *held;
    size_t held_size, held_capacity;
    struct piece *pieces;
    size_t piece_count, piece_capacity;
    uint8_t body[V2_MAX_BATCH_DATA]; /* data of the batch being made */
    size_t body_size;
    bool no_memory; /* out of memory: what looks damaged was merely not read */
};

static int corrupt(struct symbolizer *s, int64_t offset, const char *message)
{
    if (s->no_memory)
        return error_no_memory(s->err);
    error_set(s->err, TRAIL_CORRUPT, "%s at offset 0x%" PRIx64, message, offset);
    if (s->err) {
        s->err->offset = offset;
        if (s->generation > 0)
            s->err->generation = (int64_t)s->generation;
    }
    return -1;
}

static void progress(const struct symbolizer *s)
{
    if (s->options->progress)
        s->options->progress(s->options->progress_context);
}

/* MARK: Stacks */

/* Reads `id n frames` of a stack into s->frames. NULL if the bytes end before that: nothing is
 * known. */
static const uint8_t *stack_get(struct symbolizer *s, const uint8_t *at, const uint8_t *end)
{
    uint64_t count = 0;
    at = uvarint_get(at, end, &s->stack_id);
    if (at)
        at = uvarint_get(at, end, &count);
    if (!at || count > (uint64_t)(end - at) / 4) /* a number takes at least one byte */
        return NULL;
    if (!GROW(s->frames, s->frame_capacity, count)) {
        s->no_memory = true;
        return NULL;
    }
    s->frame_count = count;
    for (size_t i = 0; at && i < count; i++) {
        struct naming_frame *frame = &s->frames[i];
        uint64_t *const fields[] = {&frame->pc, &frame->function, &frame->file, &frame->line};
        for (unsigned field = 0; at && field < 4; field++)
            at = uvarint_get(at, end, fields[field]);
    }
    return at;
}

static size_t frame_size(const struct naming_frame *frame)
{
    return uvarint_size(frame->pc) + uvarint_size(frame->function) + uvarint_size(frame->file) +
           uvarint_size(frame->line);
}

/* Writes a stack made of the new frames, in the form that stack_get reads, and returns its end. */
static uint8_t *stack_put(const struct symbolizer *s, size_t count, uint8_t *to)
{
    to += uvarint_put(to, s->stack_id);
    to += uvarint_put(to, count);
    for (const struct naming_frame *frame = s->made; frame < s->made + count; frame++) {
        to += uvarint_put(to, frame->pc);
        to += uvarint_put(to, frame->function);
        to += uvarint_put(to, frame->file);
        to += uvarint_put(to, frame->line);
    }
    return to;
}

#define STACK_MAX_SIZE (2 * UVARINT_MAX_SIZE + NAMING_MAX_FRAMES * 4 * UVARINT_MAX_SIZE)

/* MARK: v2: bytes */

/* Makes at least `size` bytes of the window readable, fewer only at the end. -1: *err is set. */
static int window_fill(struct symbolizer *s, size_t size)
{
    if (s->end - s->at >= size)
        return 0;
    memmove(s->window, s->window + s->at, s->end - s->at);
    s->end -= s->at;
    s->at = 0;
    while (s->end < size) {
        ssize_t n = source_read(s->source, s->window + s->end, WINDOW_SIZE - s->end, s->err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        s->end += (size_t)n;
        progress(s);
    }
    return 0;
}

/* Copies the rest of the source unchanged. */
static int copy_rest(struct symbolizer *s)
{
    do {
        out_bytes(&s->out, s->window + s->at, s->end - s->at);
        s->at = s->end;
        if (window_fill(s, 1) < 0)
            return -1;
    } while (s->at < s->end && !s->out.failed);
    return 0;
}

/* MARK: v2: a generation's tables */

/* Records the strings of a batch. */
static int take_strings(struct symbolizer *s, const struct piece *piece)
{
    const uint8_t *begin = s->held + piece->at + piece->header_size, *at = begin + 1;
    const uint8_t *end = begin + piece->size;
    while (at < end) {
        uint64_t id, size;
        bool is_string = *at == V2_String;
        const uint8_t *next = is_string ? uvarint_get(at + 1, end, &id) : NULL;
        if (next)
            next = uvarint_get(next, end, &size);
        if (!next || size > (uint64_t)(end - next))
            return corrupt(s, s->offset, "a damaged string in the generation that ends");
        if (!naming_string(&s->naming, id, (const char *)next, size))
            return error_no_memory(s->err);
        at = next + size;
    }
    return 0;
}

/* Returns the end of the record of a stack, which is then in s->frames; NULL if it is damaged. */
static const uint8_t *take_stack(struct symbolizer *s, const uint8_t *at, const uint8_t *end)
{
    return *at == V2_Stack ? stack_get(s, at + 1, end) : NULL;
}

static int check_stacks(struct symbolizer *s, const struct piece *piece)
{
    const uint8_t *begin = s->held + piece->at + piece->header_size, *at = begin + 1;
    const uint8_t *end = begin + piece->size;
    while (at < end && (at = take_stack(s, at, end)) != NULL) {
    }
    return at ? 0 : corrupt(s, s->offset, "a damaged stack in the generation that ends");
}

/* MARK: v2: writing */

static void write_number(struct symbolizer *s, uint64_t value)
{
    uint8_t bytes[UVARINT_MAX_SIZE];
    out_bytes(&s->out, bytes, uvarint_put(bytes, value));
}

/* Writes the batch in `body` if it has more than its first byte, with the header of another. */
static void body_flush(struct symbolizer *s, const struct piece *like)
{
    if (s->body_size > 1) {
        out_char(&s->out, V2_EventBatch);
        write_number(s, like->header.generation);
        write_number(s, like->header.thread);
        write_number(s, like->header.time);
        write_number(s, s->body_size);
        out_bytes(&s->out, s->body, s->body_size);
    }
    s->body_size = 1;
}

static void body_begin(struct symbolizer *s, enum v2_type section)
{
    s->body[0] = (uint8_t)section;
    s->body_size = 1;
}

static void body_add(struct symbolizer *s, const struct piece *like, const void *data, size_t size)
{
    if (size > sizeof s->body - s->body_size)
        body_flush(s, like);
    memcpy(s->body + s->body_size, data, size);
    s->body_size += size;
}

static void write_piece(struct symbolizer *s, const struct piece *piece)
{
    out_bytes(&s->out, s->held + piece->at, piece->header_size + piece->size);
}

/* Rewrites a batch of stacks, or copies it if none of them changes: `body` then holds as much as
 * fits in one batch, which is all of it as long as nothing changed. */
static int write_stacks(struct symbolizer *s, const struct piece *piece)
{
    const uint8_t *begin = s->held + piece->at + piece->header_size, *at = begin + 1, *next;
    const uint8_t *end = begin + piece->size;
    uint8_t record[1 + STACK_MAX_SIZE] = {V2_Stack};
    bool changed = false;
    body_begin(s, V2_Stacks);
    for (; at < end; at = next) {
        next = take_stack(s, at, end);
        int count = naming_stack(&s->naming, s->frames, s->frame_count, s->made, s->err);
        if (count < 0)
            return -1;
        changed |= count > 0;
        if (count > 0)
            body_add(s, piece, record, (size_t)(stack_put(s, (size_t)count, record + 1) - record));
        else
            body_add(s, piece, at, (size_t)(next - at));
    }
    if (changed)
        body_flush(s, piece);
    else
        write_piece(s, piece);
    return 0;
}

/* Writes the additional strings of stacks, in batches like that one. */
static void write_strings(struct symbolizer *s, const struct piece *like)
{
    uint8_t record[1 + 2 * UVARINT_MAX_SIZE + V2_MAX_STRING] = {V2_String};
    const struct naming_text *text;
    body_begin(s, V2_Strings);
    while ((text = naming_new_string(&s->naming)) != NULL) {
        uint8_t *at = record + 1;
        at += uvarint_put(at, text->id);
        at += uvarint_put(at, text->text.size);
        memcpy(at, text->text.data, text->text.size);
        body_add(s, like, record, (size_t)(at + text->text.size - record));
    }
    body_flush(s, like);
}

static int check_tables(struct symbolizer *s)
{
    naming_begin(&s->naming);
    EACH(const struct piece, piece, s->pieces, s->piece_count) {
        if (piece->kind == TRAIL_BATCH_STRINGS && take_strings(s, piece) < 0)
            return -1;
        if (piece->kind == TRAIL_BATCH_STACKS && check_stacks(s, piece) < 0)
            return -1;
    }
    return 0;
}

static bool is_table(const struct piece *piece)
{
    return piece->kind == TRAIL_BATCH_STRINGS || piece->kind == TRAIL_BATCH_STACKS;
}

static int write_pieces(struct symbolizer *s)
{
    size_t last_table = 0; /* the first one held is a table */
    for (size_t i = 0; i < s->piece_count; i++)
        last_table = is_table(&s->pieces[i]) ? i : last_table;
    for (size_t i = 0; i < s->piece_count; i++) {
        const struct piece *piece = &s->pieces[i];
        if (piece->kind != TRAIL_BATCH_STACKS)
            write_piece(s, piece);
        else if (write_stacks(s, piece) < 0)
            return -1;
        if (i == last_table)
            write_strings(s, piece);
    }
    return 0;
}

/* Writes what is held of a generation; unchanged unless `result` shows that its tables are
 * sound. */
static int end_generation(struct symbolizer *s)
{
    int result = check_tables(s);
    if (result == 0)
        result = write_pieces(s);
    else
        out_bytes(&s->out, s->held, s->held_size);
    s->held_size = s->piece_count = 0;
    out_flush(&s->out);
    return result;
}

/* MARK: v2: reading */

static int hold(struct symbolizer *s, const struct piece *piece)
{
    size_t size = piece->header_size + piece->size;
    if (!GROW(s->held, s->held_capacity, s->held_size + size) ||
        !GROW(s->pieces, s->piece_capacity, s->piece_count + 1))
        return error_no_memory(s->err);
    memcpy(s->held + s->held_size, s->window + s->at, size);
    s->pieces[s->piece_count] = *piece;
    s->pieces[s->piece_count++].at = s->held_size;
    s->held_size += size;
    return 0;
}

/* Takes the batch at the front of the window, which is complete. */
static int take_batch(struct symbolizer *s, struct piece *piece)
{
    const struct v2_batch_header *header = &piece->header;
    const uint8_t *begin = s->window + s->at;
    size_t size = piece->header_size + piece->size;
    bool other = !header->end_of_generation && header->generation != s->generation;
    if ((header->end_of_generation || other) && end_generation(s) < 0)
        return -1;
    if (!header->end_of_generation)
        s->generation = header->generation;
    piece->kind =
        v2_batch_kind(header, piece->size > 0 ? begin[piece->header_size] : 0, s->version);
    if (!is_table(piece) && s->piece_count == 0)
        out_bytes(&s->out, begin, size);
    else if (hold(s, piece) < 0)
        return -1;
    s->at += size;
    s->offset += (int64_t)size;
    return 0;
}

/* Finds the next batch and brings all of it into the window. Returns 1, 0 at the end, -1 on an
 * error. */
static int find_batch(struct symbolizer *s, struct piece *piece)
{
    enum v2_header_result result = V2_HEADER_SHORT;
    for (size_t want = 1; result == V2_HEADER_SHORT; want = s->end - s->at + 1) {
        if (window_fill(s, want) < 0)
            return -1;
        size_t have = s->end - s->at;
        if (have == 0)
            return 0;
        result = v2_batch_header(s->window + s->at, have, s->version, &piece->header,
                                 &piece->header_size, s->err);
        if (result == V2_HEADER_BAD || (result == V2_HEADER_SHORT && have < want))
            goto bad;
    }
    piece->size = piece->header.size;
    if (window_fill(s, piece->header_size + piece->size) < 0)
        return -1;
    if (s->end - s->at >= piece->header_size + piece->size)
        return 1;
    error_set(s->err, TRAIL_TRUNCATED, "the trace ends inside a batch");
bad:
    if (s->err)
        s->err->offset = s->offset;
    return -1;
}

static bool is_damage(const trail_error *err)
{
    return err->code != TRAIL_IO && err->code != TRAIL_NO_MEMORY;
}

static int symbolize_v2(struct symbolizer *s)
{
    struct piece piece;
    int found;
    s->window = malloc(WINDOW_SIZE);
    if (!s->window)
        return error_no_memory(s->err);
    if (window_fill(s, WIRE_HEADER_SIZE) < 0)
        return -1;
    out_bytes(&s->out, s->window, WIRE_HEADER_SIZE);
    s->at = WIRE_HEADER_SIZE;
    s->offset = WIRE_HEADER_SIZE;
    while ((found = find_batch(s, &piece)) > 0 && !s->out.failed)
        if (take_batch(s, &piece) < 0) {
            found = -1;
            break;
        }
    if (found < 0 && is_damage(s->err)) {
        /* The truncated generation is incomplete, though its tables may be complete. */
        trail_error first = *s->err;
        bool ended = end_generation(s) == 0 || is_damage(s->err);
        if (!ended || copy_rest(s) < 0)
            return -1;
        *s->err = first;
        return -1;
    }
    return found < 0 ? -1 : end_generation(s);
}

/* MARK: v1 */

struct v1_file {
    struct v1_lex lex, stops; /* the same, stopping at strings and stacks */
    const uint8_t *begin, *end;
};

static void v1_init(struct v1_file *file, int version)
{
    v1_lex_init(&file->lex, version);
    file->stops = file->lex;
    for (unsigned first = 0; first < 256; first++) {
        unsigned type = first & V1_TYPE_MASK;
        if (type == V1_String || type == V1_Stack)
            file->stops.class[first] = V1_LEX_STOP;
    }
}

/* Returns the next string or stack from `at` on: *next is its end. NULL: none, or damage comes
 * first. */
static const uint8_t *v1_find(const struct v1_file *file, const uint8_t *at, const uint8_t **next)
{
    uint64_t count = 0;
    at = v1_lex_run(&file->stops, at, file->end, &count);
    *next = NULL;
    if (at < file->end && file->stops.class[*at] == V1_LEX_STOP)
        *next = v1_lex_skip(&file->lex, at, file->end);
    return *next ? at : NULL;
}

/* Records all strings up to the end or the first damage. */
static int v1_take_strings(struct symbolizer *s, const struct v1_file *file)
{
    const uint8_t *at = file->begin, *next;
    for (unsigned n = 0; (at = v1_find(file, at, &next)) != NULL; at = next) {
        uint64_t id = 0, size = 0;
        if (n++ % 4096 == 0)
            progress(s);
        if ((*at & V1_TYPE_MASK) != V1_String)
            continue;
        (void)uvarint_get(uvarint_get(at + 1, next, &id), next, &size);
        if (!naming_string(&s->naming, id, (const char *)next - size, size))
            return error_no_memory(s->err);
    }
    return 0;
}

/* Cuts the outermost new frames so that Go accepts the record: returns how many remain and sets
 * *length to the length to write before them. */
static size_t v1_fit(struct symbolizer *s, size_t count, size_t *length)
{
    size_t frames = 0, fitting = 0, id_size = uvarint_size(s->stack_id);
    *length = id_size + 1;
    for (size_t i = 0; i < count; i++) {
        frames += frame_size(&s->made[i]);
        if (id_size + uvarint_size(i + 1) + frames > V1_MAX_LENGTH)
            break;
        fitting = i + 1;
        *length = id_size + uvarint_size(fitting) + frames;
    }
    return fitting;
}

static void v1_write_strings(struct symbolizer *s)
{
    const struct naming_text *text;
    while ((text = naming_new_string(&s->naming)) != NULL) {
        out_char(&s->out, V1_String);
        write_number(s, text->id);
        write_number(s, text->text.size);
        out_bytes(&s->out, text->text.data, text->text.size);
    }
}

/* Writes the stack that begins at `at` if it changes; sets *done accordingly. */
static int v1_write_stack(struct symbolizer *s, const uint8_t *at, const uint8_t *next, bool *done)
{
    uint64_t length = 0;
    const uint8_t *begin = uvarint_get(at + 1, next, &length);
    *done = false;
    if (*at >> V1_COUNT_SHIFT != V1_COUNT_LENGTH || stack_get(s, begin, next) != next)
        return s->no_memory ? error_no_memory(s->err) : 0;
    int made = naming_stack(&s->naming, s->frames, s->frame_count, s->made, s->err);
    if (made <= 0)
        return made;
    uint8_t record[STACK_MAX_SIZE];
    size_t size = 0, count = v1_fit(s, (size_t)made, &size);
    s->naming.stats.cut_stacks += count < (size_t)made;
    v1_write_strings(s);
    out_char(&s->out, (char)(V1_Stack | V1_COUNT_LENGTH << V1_COUNT_SHIFT));
    write_number(s, size);
    out_bytes(&s->out, record, (size_t)(stack_put(s, count, record) - record));
    *done = true;
    return 0;
}

/* Returns what is wrong with the trace from `at` on; 0 if nothing is. */
static int v1_verdict(struct symbolizer *s, const struct v1_file *file, const uint8_t *at)
{
    uint64_t count = 0;
    at = v1_lex_run(&file->lex, at, file->end, &count);
    if (at == file->end)
        return 0;
    return v1_lex_error(&file->lex, at, file->end, WIRE_HEADER_SIZE + (at - file->begin), s->err);
}

static int symbolize_v1(struct symbolizer *s)
{
    struct v1_file file;
    const uint8_t *data, *copied, *next;
    size_t size;
    if (s->version < 7)
        return error_set(s->err, TRAIL_UNSUPPORTED,
                         "stacks of Go 1.5 and 1.6 cannot have names in the trace; 'trail print "
                         "--binary' shows them");
    if (source_whole(s->source, &data, &size, s->err) < 0)
        return -1;
    v1_init(&file, s->version);
    file.begin = data + WIRE_HEADER_SIZE;
    file.end = data + size;
    naming_begin(&s->naming);
    if (v1_take_strings(s, &file) < 0)
        return -1;
    const uint8_t *at = file.begin;
    for (copied = data; (at = v1_find(&file, at, &next)) != NULL && !s->out.failed; at = next) {
        bool done = false;
        if ((*at & V1_TYPE_MASK) != V1_Stack)
            continue;
        out_bytes(&s->out, copied, (size_t)(at - copied));
        copied = at;
        if (v1_write_stack(s, at, next, &done) < 0)
            return -1;
        if (done)
            copied = next;
    }
    out_bytes(&s->out, copied, (size_t)(file.end - copied));
    return v1_verdict(s, &file, copied > data ? copied : file.begin);
}

/* MARK: The public side */

int trail_symbolize(trail_source *source, const trail_symbolize_options *options,
                    const trail_sink *sink, trail_symbolize_stats *stats, trail_error *err)
{
    trail_error ignored;
    error_clear(&ignored);
    err = err ? err : &ignored;
    if (stats)
        *stats = (trail_symbolize_stats){0};
    int version = reader_peek_version(source, err);
    if (version < 0)
        return -1;
    int result = -1;
    struct symbolizer *s = calloc(1, sizeof *s);
    if (!s || !out_init(&s->out, sink->write, sink->context)) {
        error_no_memory(err);
        free(s);
        return -1;
    }
    s->source = source;
    s->options = options;
    s->version = version;
    s->err = err;
    bool v2 = trail_version_is_v2(version);
    naming_init(&s->naming, options, v2 ? V2_MAX_STRING : V1_MAX_STRING);
    result = v2 ? symbolize_v2(s) : symbolize_v1(s);
    trail_error unwritten;
    if (out_finish(&s->out, &unwritten) < 0) {
        *err = unwritten;
        result = -1;
    }
    if (stats)
        *stats = s->naming.stats;
    naming_free(&s->naming);
    free(s->frames);
    free(s->window);
    free(s->held);
    free(s->pieces);
    free(s);
    return result;
}
