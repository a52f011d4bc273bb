/*
 * v2: growing batches (§5.1). Every thread has one open batch, and so does each table. They are in
 * a list from the oldest to the newest: when memory runs out, and when the generation ends, the
 * oldest is written first. So all batches of a thread are in order in the file.
 *
 *   batch   01 generation m time size[3] data      the size is filled in when the batch is complete
 *
 * A batch that is not in the list has no memory; one in the list has its header and at least one
 * record.
 */
#include "write/v2_writer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/intern.h"
#include "base/objects.h"
#include "base/out.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "read/maker.h"
#include "read/recorded.h"

#define TICKS_A_SECOND 1000000000u

#define SIZE_BYTES 3
#define HEADER_MAX                                                                                 \
    (1 + 3 * UVARINT_MAX_SIZE + SIZE_BYTES + 1) /* including the byte of a
                                                                 * section */
#define BATCH_FIRST ((size_t)512)
#define BATCH_MAX   ((size_t)V2_MAX_BATCH_DATA) /* including the header, as in Go's own */
#define MEMORY_MAX  ((size_t)16 << 20)          /* of all open batches */

/* Maximum bytes of a record. */
#define EVENT_MAX     (1 + V2_MAX_ARGS * UVARINT_MAX_SIZE)
#define SAMPLE_MAX    (1 + 5 * UVARINT_MAX_SIZE)
#define STRING_MAX    (1 + 2 * UVARINT_MAX_SIZE + V2_MAX_STRING)
#define FRAME_NUMBERS 4
#define STACK_MAX(n)  (1 + 2 * UVARINT_MAX_SIZE + (n)*FRAME_NUMBERS * UVARINT_MAX_SIZE)

_Static_assert(HEADER_MAX + EVENT_MAX <= BATCH_FIRST, "an event fits into the smallest batch");
_Static_assert(BATCH_MAX / 2 + STACK_MAX(V2_MAX_FRAMES) <= BATCH_MAX, "twice as large is enough");

struct batch {
    uint64_t m;
    int64_t last_ns;   /* of the thread's last event in this generation; 0 before it */
    uint8_t *at, *end; /* the free part of `data` */
    uint8_t *data;
    struct batch *older, *newer; /* in the list */
    uint8_t size_at;             /* where in `data` the size goes */
    uint8_t section;             /* the type that begins its data; 0: a thread's events */
};

#define NOT_WRITTEN 0xff

/* What a caller may write for a type. */
struct rule {
    uint8_t args;            /* after the time; NOT_WRITTEN: not an event of the version */
    uint8_t strings, stacks; /* a bit per argument: it is an ID of that kind */
};

enum { SYNC, STACKS, STRINGS, SAMPLES, SECTIONS };

struct v2_writer {
    struct batch *current; /* of the last event written; NULL after a failure */
    uint64_t bytes;        /* of the trace, including open batches */
    struct rule rules[V2_TYPES];
    int version;
    bool begun; /* a generation has begun */
    uint64_t generation;
    int64_t begin_ns;

    struct batch *oldest, *newest;
    size_t memory;          /* of the batches in the list */
    struct objects threads; /* of struct batch */
    struct batch sections[SECTIONS];
    struct intern strings, stacks;

    struct out out;
    trail_error err; /* TRAIL_OK: none, but the sink may have failed */
};

/* MARK: Failure */

static bool fail(struct v2_writer *w, trail_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool fail(struct v2_writer *w, trail_code code, const char *format, ...)
{
    char message[TRAIL_MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    error_set(&w->err, code, "%s", message);
    w->err.generation = w->generation ? (int64_t)w->generation : TRAIL_NOWHERE;
    w->current = NULL;
    return false;
}

static bool no_memory(struct v2_writer *w)
{
    return fail(w, TRAIL_NO_MEMORY, "out of memory while writing a trace");
}

bool v2_writer_failed(const struct v2_writer *w)
{
    return w->err.code != TRAIL_OK || w->out.failed;
}

/* Whether records can be written now. */
static bool ready(struct v2_writer *w)
{
    if (v2_writer_failed(w))
        return false;
    return w->begun || fail(w, TRAIL_USAGE, "a record outside of generations");
}

/* MARK: The list of batches */

static void list_remove(struct v2_writer *w, struct batch *b)
{
    *(b->older ? &b->older->newer : &w->oldest) = b->newer;
    *(b->newer ? &b->newer->older : &w->newest) = b->older;
}

static void list_append(struct v2_writer *w, struct batch *b)
{
    b->older = w->newest;
    b->newer = NULL;
    *(b->older ? &b->older->newer : &w->oldest) = b;
    w->newest = b;
}

/* MARK: Batches */

static size_t batch_capacity(const struct batch *b)
{
    return (size_t)(b->end - b->data);
}

/*
 * Readers first convert the time of a batch to a float64 (§6.2), which is exact below 2^53 ns, 104
 * days. Above, the last bits go into the first event's delta instead, which keeps them.
 */
static uint64_t base_time(int64_t time_ns)
{
    uint64_t time = (uint64_t)time_ns, lost = time >> 53;
    return lost ? time & ~((UINT64_C(2) << (63 - __builtin_clzll(lost))) - 1) : time;
}

static void batch_start(struct v2_writer *w, struct batch *b, int64_t time_ns)
{
    uint8_t *at = b->data;
    uint64_t base = base_time(time_ns);
    *at++ = V2_EventBatch;
    at += uvarint_put(at, w->generation);
    at += uvarint_put(at, b->m);
    at += uvarint_put(at, base);
    b->size_at = (uint8_t)(at - b->data);
    at += SIZE_BYTES;
    if (b->section)
        *at++ = b->section;
    b->at = at;
    b->last_ns = (int64_t)base;
    w->bytes += (uint64_t)(at - b->data);
}

/* Writes the batch out and empties its memory. */
static void batch_write(struct v2_writer *w, struct batch *b)
{
    uint8_t *size_at = b->data + b->size_at;
    size_t size = (size_t)(b->at - size_at) - SIZE_BYTES;
    for (int i = 0; i < SIZE_BYTES - 1; i++, size >>= 7)
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a batch in the list has memory. */
        *size_at++ = (uint8_t)(size | 0x80);
    *size_at = (uint8_t)size;
    out_bytes(&w->out, b->data, (size_t)(b->at - b->data));
    b->at = b->data;
}

/* Writes the batch out and frees its memory. */
static void batch_close(struct v2_writer *w, struct batch *b)
{
    batch_write(w, b);
    list_remove(w, b);
    w->memory -= batch_capacity(b);
    free(b->data);
    b->data = b->at = b->end = NULL;
}

static size_t larger(const struct batch *b, size_t room)
{
    size_t wanted = HEADER_MAX + (size_t)(b->at - b->data) + room;
    size_t size = batch_capacity(b) ? 2 * batch_capacity(b) : BATCH_FIRST;
    while (size < wanted)
        size *= 2;
    return size < BATCH_MAX ? size : BATCH_MAX;
}

/* Enlarges a batch. If the total is too large, the oldest batches are closed, possibly `b`
 * itself. */
static bool batch_grow(struct v2_writer *w, struct batch *b, size_t room)
{
    while (w->oldest && w->memory + larger(b, room) - batch_capacity(b) > MEMORY_MAX)
        batch_close(w, w->oldest);
    size_t capacity = larger(b, room), used = (size_t)(b->at - b->data);
    uint8_t *data = realloc(b->data, capacity);
    if (!data)
        return false;
    if (!b->data)
        list_append(w, b);
    w->memory += capacity - batch_capacity(b);
    b->data = data;
    b->at = data + used;
    b->end = data + capacity;
    return true;
}

/* Makes room for `room` bytes, whose first record has the given time. */
static bool batch_room(struct v2_writer *w, struct batch *b, size_t room, int64_t time_ns)
{
    if ((size_t)(b->end - b->at) >= room)
        return true;
    if (batch_capacity(b) == BATCH_MAX) {
        batch_write(w, b);
        list_remove(w, b);
        list_append(w, b);
    } else if (!batch_grow(w, b, room)) {
        return no_memory(w);
    }
    if (b->at == b->data)
        batch_start(w, b, time_ns);
    return true;
}

/* Returns `room` free bytes in a section's batch; NULL on a failure. */
static uint8_t *section_room(struct v2_writer *w, unsigned section, size_t room)
{
    struct batch *b = &w->sections[section];
    return batch_room(w, b, room, w->begin_ns) ? b->at : NULL;
}

/* Ends what was written into them at `at`. */
static void section_put(struct v2_writer *w, unsigned section, uint8_t *at)
{
    struct batch *b = &w->sections[section];
    w->bytes += (uint64_t)(at - b->at);
    b->at = at;
}

/* MARK: Events */

static struct batch *thread_batch(struct v2_writer *w, uint64_t m)
{
    struct batch *b = objects_find(&w->threads, m);
    if (b)
        return b;
    b = objects_get(&w->threads, m);
    if (b)
        b->m = m;
    return b;
}

static inline void put_event(struct v2_writer *w, struct batch *b, int64_t time_ns, unsigned type,
                             unsigned count, const uint64_t *args)
{
    uint8_t *at = b->at;
    *at++ = (uint8_t)type;
    at += uvarint_put(at, (uint64_t)time_ns - (uint64_t)b->last_ns);
    for (unsigned i = 0; i < count; i++)
        at += uvarint_put(at, args[i]);
    w->bytes += (uint64_t)(at - b->at);
    b->at = at;
    b->last_ns = time_ns;
}

/* Readers reject an ID that is in no table; ours are all IDs up to the last. */
static inline bool ids_known(const struct v2_writer *w, const struct rule *rule,
                             const uint64_t *args)
{
    for (unsigned bits = rule->strings; bits; bits &= bits - 1)
        if (args[__builtin_ctz(bits)] > w->strings.last)
            return false;
    for (unsigned bits = rule->stacks; bits; bits &= bits - 1)
        if (args[__builtin_ctz(bits)] > w->stacks.last)
            return false;
    return true;
}

static bool check_type(struct v2_writer *w, unsigned type, unsigned count, const uint64_t *args)
{
    if (type >= V2_TYPES || w->rules[type].args == NOT_WRITTEN)
        return fail(w, TRAIL_USAGE, "type %u is not an event of format 1.%d", type, w->version);
    if (w->rules[type].args != count)
        return fail(w, TRAIL_USAGE, "%s has %u arguments, not %u", v2_types[type].name,
                    w->rules[type].args, count);
    if (!ids_known(w, &w->rules[type], args))
        return fail(w, TRAIL_USAGE, "%s refers to a string or stack of no table",
                    v2_types[type].name);
    return true;
}

static bool check_time(struct v2_writer *w, const struct batch *b, int64_t time_ns)
{
    if (time_ns >= b->last_ns)
        return true;
    fail(w, TRAIL_USAGE, "time goes backwards in a thread, from %" PRId64 " to %" PRId64 " ns",
         b->last_ns, time_ns);
    w->err.thread = (int64_t)b->m;
    w->err.time_ns = time_ns;
    return false;
}

/* Handles events of a thread other than the last, lack of room, and errors. */
static __attribute__((noinline)) bool event_slow(struct v2_writer *w, uint64_t m, int64_t time_ns,
                                                 unsigned type, unsigned count,
                                                 const uint64_t *args)
{
    if (!ready(w) || !check_type(w, type, count, args))
        return false;
    struct batch *b = thread_batch(w, m);
    if (!b)
        return no_memory(w);
    if (!check_time(w, b, time_ns) || !batch_room(w, b, EVENT_MAX, time_ns))
        return false;
    w->current = b;
    put_event(w, b, time_ns, type, count, args);
    return true;
}

bool v2_writer_event(struct v2_writer *w, uint64_t m, int64_t time_ns, unsigned type,
                     unsigned count, const uint64_t *args)
{
    struct batch *b = w->current;
    if (__builtin_expect(!b || b->m != m || b->end - b->at < EVENT_MAX || time_ns < b->last_ns ||
                             type >= V2_TYPES || w->rules[type].args != count ||
                             !ids_known(w, &w->rules[type], args),
                         0))
        return event_slow(w, m, time_ns, type, count, args);
    put_event(w, b, time_ns, type, count, args);
    return true;
}

bool v2_writer_sample(struct v2_writer *w, int64_t time_ns, uint64_t m, uint64_t p, uint64_t g,
                      uint64_t stack)
{
    if (!ready(w))
        return false;
    if (time_ns < 0)
        return fail(w, TRAIL_USAGE, "a CPU sample has the time %" PRId64 " ns", time_ns);
    if (stack > w->stacks.last)
        return fail(w, TRAIL_USAGE, "a CPU sample refers to a stack of no table");
    const uint64_t numbers[] = {(uint64_t)time_ns, m, p, g, stack};
    uint8_t *at = section_room(w, SAMPLES, SAMPLE_MAX);
    if (!at)
        return false;
    *at++ = V2_CPUSample;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        at += uvarint_put(at, numbers[i]);
    section_put(w, SAMPLES, at);
    return true;
}

/* MARK: Tables */

static bool write_string(struct v2_writer *w, uint64_t id, trail_string text)
{
    uint8_t *at = section_room(w, STRINGS, STRING_MAX);
    if (!at)
        return false;
    *at++ = V2_String;
    at += uvarint_put(at, id);
    at += uvarint_put(at, text.size);
    memcpy(at, text.data, text.size);
    section_put(w, STRINGS, at + text.size);
    return true;
}

/* Returns the ID of a text that is not too long. */
static uint64_t string_id(struct v2_writer *w, trail_string text)
{
    bool fresh;
    if (text.size == 0)
        return 0;
    uint64_t id = intern_put(&w->strings, text.data, text.size, &fresh);
    if (id == 0)
        no_memory(w);
    else if (fresh && !write_string(w, id, text))
        return 0;
    return id;
}

uint64_t v2_writer_string(struct v2_writer *w, trail_string text)
{
    return ready(w) ? string_id(w, utf8_first(text, V2_MAX_STRING)) : 0;
}

void v2_writer_maker(struct v2_writer *w, const trail_maker *maker)
{
    char line[MAKER_LINE];
    v2_writer_note(w, maker_line(maker, line));
}

void v2_writer_recorded(struct v2_writer *w, const trail_recorded *row)
{
    char line[RECORDED_LINE];
    v2_writer_note(w, recorded_line(row, line));
}

static bool write_stack(struct v2_writer *w, uint64_t id, const uint64_t *numbers, size_t frames)
{
    uint8_t *at = section_room(w, STACKS, STACK_MAX(frames));
    if (!at)
        return false;
    *at++ = V2_Stack;
    at += uvarint_put(at, id);
    at += uvarint_put(at, frames);
    for (size_t i = 0; i < frames * FRAME_NUMBERS; i++)
        at += uvarint_put(at, numbers[i]);
    section_put(w, STACKS, at);
    return true;
}

uint64_t v2_writer_stack(struct v2_writer *w, const struct v2_frame *frames, size_t count)
{
    uint64_t numbers[V2_MAX_FRAMES * FRAME_NUMBERS], *to = numbers;
    bool fresh;
    if (count == 0 || !ready(w))
        return 0;
    if (count > V2_MAX_FRAMES)
        count = V2_MAX_FRAMES;
    for (size_t i = 0; i < count; i++) {
        *to++ = frames[i].pc;
        *to++ = string_id(w, utf8_last(frames[i].function, V2_MAX_STRING));
        *to++ = string_id(w, utf8_last(frames[i].file, V2_MAX_STRING));
        *to++ = frames[i].line;
    }
    if (v2_writer_failed(w))
        return 0;
    uint64_t id = intern_put(&w->stacks, numbers, (size_t)(to - numbers) * sizeof *to, &fresh);
    if (id == 0)
        no_memory(w);
    else if (fresh && !write_stack(w, id, numbers, count))
        return 0;
    return id;
}

/* MARK: Experiments */

bool v2_writer_experiment(struct v2_writer *w, uint8_t experiment, uint64_t m, const void *data,
                          size_t size)
{
    uint8_t header[2 + 4 * UVARINT_MAX_SIZE] = {V2_ExperimentalBatch, experiment}, *at = header + 2;
    if (!ready(w))
        return false;
    if (!v2_type_known(V2_ExperimentalBatch, w->version) || size > V2_MAX_BATCH_DATA)
        return fail(w, TRAIL_USAGE, "a batch of an experiment of %zu bytes in format 1.%d", size,
                    w->version);
    at += uvarint_put(at, w->generation);
    at += uvarint_put(at, m);
    at += uvarint_put(at, base_time(w->begin_ns));
    at += uvarint_put(at, size);
    out_bytes(&w->out, header, (size_t)(at - header));
    out_bytes(&w->out, data, size);
    w->bytes += (uint64_t)(at - header) + size;
    return !v2_writer_failed(w);
}

/* MARK: Generations */

/* Up to 1.23 the section is its only record; from 1.25 on it has two (§5.1). */
static bool write_sync(struct v2_writer *w, const trail_clock_snapshot *clocks)
{
    uint8_t *at = section_room(w, SYNC, 2 + 5 * UVARINT_MAX_SIZE);
    if (!at)
        return false;
    if (w->version >= 25)
        *at++ = V2_Frequency;
    at += uvarint_put(at, TICKS_A_SECOND);
    if (w->version >= 25) {
        *at++ = V2_ClockSnapshot;
        at += uvarint_put(at, (uint64_t)(clocks->trace_ns - w->sections[SYNC].last_ns));
        at += uvarint_put(at, clocks->mono_ns);
        at += uvarint_put(at, (uint64_t)clocks->wall_s);
        at += uvarint_put(at, clocks->wall_ns);
    }
    section_put(w, SYNC, at);
    batch_close(w, &w->sections[SYNC]);
    return true;
}

bool v2_writer_begin_before(struct v2_writer *w, int64_t time_ns,
                            const trail_clock_snapshot *clocks)
{
    if (v2_writer_failed(w))
        return false;
    if (w->begun)
        return fail(w, TRAIL_USAGE, "a generation begins before the previous one has ended");
    if (time_ns < 0 || time_ns > clocks->trace_ns)
        return fail(w, TRAIL_USAGE, "a generation begins at %" PRId64 " ns", time_ns);
    w->generation++;
    w->begin_ns = time_ns;
    w->begun = write_sync(w, clocks);
    return w->begun;
}

bool v2_writer_begin_at(struct v2_writer *w, const trail_clock_snapshot *clocks)
{
    return v2_writer_begin_before(w, clocks->trace_ns, clocks);
}

bool v2_writer_begin(struct v2_writer *w, int64_t time_ns, int64_t wall_ns)
{
    const int64_t second = 1000000000;
    int64_t wall_s = wall_ns / second - (wall_ns % second < 0);
    return v2_writer_begin_at(w, &(trail_clock_snapshot){
                                     .trace_ns = time_ns,
                                     .mono_ns = (uint64_t)time_ns,
                                     .wall_s = wall_s,
                                     .wall_ns = (uint32_t)(wall_ns - wall_s * second),
                                 });
}

/* Needs no memory, so that a generation is complete even when memory has run out. */
static void complete(struct v2_writer *w)
{
    while (w->oldest)
        batch_close(w, w->oldest);
    if (w->version >= 26) {
        out_char(&w->out, V2_EndOfGeneration);
        w->bytes++;
    }
    out_flush(&w->out);
    w->current = NULL;
    w->begun = false;
    objects_clear(&w->threads);
    intern_clear(&w->strings);
    intern_clear(&w->stacks);
}

bool v2_writer_end(struct v2_writer *w)
{
    if (w->begun)
        complete(w);
    else if (!v2_writer_failed(w))
        fail(w, TRAIL_USAGE, "no generation has begun");
    return !v2_writer_failed(w);
}

uint64_t v2_writer_generation(const struct v2_writer *w)
{
    return w->generation;
}

uint64_t v2_writer_bytes(const struct v2_writer *w)
{
    return w->bytes;
}

/* MARK: The trace */

/* Returns the arguments of a type, not counting the time, whose names end in `suffix`
 * (src/wire/v2.def): one bit each. */
static uint8_t args_named(const struct v2_type_info *type, const char *suffix)
{
    unsigned bits = 0;
    for (unsigned i = 1; i < type->args; i++) {
        size_t size = strlen(type->arg[i]), end = strlen(suffix);
        if (size >= end && strcmp(type->arg[i] + size - end, suffix) == 0)
            bits |= 1u << (i - 1);
    }
    return (uint8_t)bits;
}

static void learn_rules(struct v2_writer *w)
{
    for (unsigned type = 0; type < V2_TYPES; type++) {
        const struct v2_type_info *info = &v2_types[type];
        bool timed = info->class == V2_CLASS_TIMED || info->class == V2_CLASS_ALLOC_FREE;
        w->rules[type].args = NOT_WRITTEN;
        if (timed && v2_type_known(type, w->version))
            w->rules[type] = (struct rule){
                .args = (uint8_t)(info->args - 1),
                .strings = args_named(info, "_string"),
                .stacks = args_named(info, "stack"),
            };
    }
}

static void learn_sections(struct v2_writer *w)
{
    const uint8_t first[SECTIONS] = {
        [SYNC] = w->version >= 25 ? V2_Sync : V2_Frequency,
        [STACKS] = V2_Stacks,
        [STRINGS] = V2_Strings,
        [SAMPLES] = V2_CPUSamples,
    };
    for (unsigned i = 0; i < SECTIONS; i++)
        w->sections[i] = (struct batch){.m = V2_NO_THREAD, .section = first[i]};
}

struct v2_writer *v2_writer_open(int version, const trail_sink *sink, trail_error *err)
{
    const uint8_t *header = trail_version_is_v2(version) ? wire_header(version) : NULL;
    if (!header) {
        error_set(err, TRAIL_UNSUPPORTED, "format 1.%d cannot be written", version);
        return NULL;
    }
    struct v2_writer *w = calloc(1, sizeof *w);
    if (!w || !out_init(&w->out, sink->write, sink->context)) {
        free(w);
        error_no_memory(err);
        return NULL;
    }
    w->version = version;
    w->threads = OBJECTS_OF(struct batch);
    error_clear(&w->err);
    learn_rules(w);
    learn_sections(w);
    out_bytes(&w->out, header, WIRE_HEADER_SIZE);
    w->bytes = WIRE_HEADER_SIZE;
    return w;
}

bool v2_writer_close(struct v2_writer *w, trail_error *err)
{
    trail_error sink_err;
    if (w->begun)
        complete(w);
    bool written = out_finish(&w->out, &sink_err) == 0;
    bool good = written && w->err.code == TRAIL_OK;
    if (!good && err)
        *err = w->err.code != TRAIL_OK ? w->err : sink_err;
    objects_free(&w->threads);
    intern_free(&w->strings);
    intern_free(&w->stacks);
    free(w);
    return good;
}
