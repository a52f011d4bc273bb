/*
 * Perfetto's traces: the kernel's scheduling events in FtraceEventBundle
 * (protos/perfetto/trace/ftrace) come separately for each CPU, so all are held and sorted.
 * perfetto_tracks.h has the track events.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/text.h"
#include "import/forms.h"
#include "import/perfetto_tracks.h"
#include "read/source.h"
#include "wire/perfetto.h"

/* Bits of preempt_count in the events' common flags: TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ. */
#define FLAGS_INTERRUPT 0x18u

struct perfetto {
    struct import_model *model;
    struct import_stats *stats;
    int32_t cpu;     /* the bundle's */
    bool has_states; /* an event of the kernel was taken */
    bool failed;     /* out of memory */
};

/* MARK: Values */

static void take_name(struct perfetto *p, int64_t tid, const struct proto *text)
{
    if (tid > 0 && tid <= IMPORT_TID_MAX && text->at < text->end)
        import_thread_name(&p->model->threads, (int32_t)tid,
                           (trail_string){(const char *)text->at, (size_t)(text->end - text->at)});
}

/*
 * Returns how a thread left, by prev_state: 0, or the lowest bit of TASK_REPORT; from 256 on it was
 * preempted (Linux 4.14 and later: TASK_REPORT_MAX).
 */
static enum import_left left_of(uint64_t state)
{
    static const struct {
        uint64_t bit;
        enum import_left left;
    } bits[] = {{1, IMPORT_SLEEPING},  {2, IMPORT_BLOCKED},   {4, IMPORT_STOPPED},
                {8, IMPORT_STOPPED},   {16, IMPORT_ENDED},    {32, IMPORT_ENDED},
                {64, IMPORT_SLEEPING}, {128, IMPORT_SLEEPING}};
    for (size_t i = 0; state < 256 && i < sizeof bits / sizeof *bits; i++)
        if (state & bits[i].bit)
            return bits[i].left;
    return IMPORT_PREEMPTED;
}

static bool is_tid(uint64_t number)
{
    return number <= IMPORT_TID_MAX;
}

/* Passes an event to the model, or counts it if its numbers are invalid. */
static void put(struct perfetto *p, const struct import_event *event, bool good)
{
    if (!good || event->time_ns <= 0 || event->cpu > IMPORT_CPU_MAX) {
        import_count_bad(p->stats);
        return;
    }
    p->stats->events++;
    p->has_states = true;
    p->failed |= !import_model_put(p->model, event);
}

/* MARK: Events */

/* The fields of one event: those common to several kinds are read in the same way. */
struct fields {
    uint64_t prev_state, prev_tid, next_tid;
    struct proto prev_name, next_name;
};

/* Reads the fields with these numbers; 0: no such field. */
static struct fields read_fields(struct proto *message, uint32_t prev_name, uint32_t prev_tid,
                                 uint32_t prev_state, uint32_t next_name, uint32_t next_tid)
{
    struct fields fields = {0};
    struct proto_field field;
    while (proto_next(message, &field)) {
        if (field.id == prev_name && field.type == PROTO_BYTES)
            fields.prev_name = field.bytes;
        else if (field.id == next_name && field.type == PROTO_BYTES)
            fields.next_name = field.bytes;
        else if (field.id == prev_tid)
            fields.prev_tid = field.number;
        else if (field.id == prev_state)
            fields.prev_state = field.number;
        else if (field.id == next_tid)
            fields.next_tid = field.number;
    }
    return fields;
}

static void put_switch(struct perfetto *p, struct import_event *event, struct proto *message)
{
    struct fields fields = read_fields(message, 1, 2, 4, 5, 6);
    bool good = is_tid(fields.prev_tid) && is_tid(fields.next_tid) && !message->bad;
    event->left = (uint8_t)left_of(fields.prev_state);
    event->tid = good ? (int32_t)fields.prev_tid : 0;
    event->other = good ? (int32_t)fields.next_tid : 0;
    take_name(p, event->tid, &fields.prev_name);
    take_name(p, event->other, &fields.next_name);
    put(p, event, good);
}

/* A wake-up, or the start or end of a thread, whose TID and name are fields 1 and 2. */
static void put_about(struct perfetto *p, struct import_event *event, struct proto *message)
{
    struct fields fields = read_fields(message, 0, 0, 0, 1, 2);
    bool good = fields.next_tid > 0 && is_tid(fields.next_tid) && !message->bad;
    event->other = good ? (int32_t)fields.next_tid : 0;
    if (event->kind == IMPORT_EXIT)
        event->tid = event->other;
    if (event->kind != IMPORT_STARTED) /* at that point its name is still its parent's */
        take_name(p, event->other, &fields.next_name);
    put(p, event, good);
}

/* The new thread's name is its parent's; other names are in another bundle, before or after. */
static void put_fork(struct perfetto *p, struct import_event *event, struct proto *message)
{
    struct fields fields = read_fields(message, 0, 0, 0, 0, 4);
    bool good = fields.next_tid > 0 && is_tid(fields.next_tid) && !message->bad;
    event->other = good ? (int32_t)fields.next_tid : 0;
    put(p, event, good);
}

/* The begin or the end of an interrupt. */
static void put_kind(struct perfetto *p, struct import_event *event, struct proto *message)
{
    (void)message;
    put(p, event, true);
}

/* TaskNewtask: pid, comm, ...; TaskRename: pid, oldcomm, newcomm. */
static void take_rename(struct perfetto *p, struct proto *message, uint32_t name)
{
    struct fields fields = read_fields(message, 0, 0, 0, name, 1);
    if (is_tid(fields.next_tid))
        take_name(p, (int64_t)fields.next_tid, &fields.next_name);
    p->stats->events++;
}

static const struct {
    uint32_t id;
    enum import_kind kind;
    void (*put)(struct perfetto *p, struct import_event *event, struct proto *message);
} rows[] = {
    {FTRACE_SCHED_SWITCH, IMPORT_SWITCH, put_switch},
    {FTRACE_SCHED_WAKEUP, IMPORT_WAKEUP, put_about},
    {FTRACE_SCHED_WAKING, IMPORT_WAKING, put_about},
    {FTRACE_SCHED_WAKEUP_NEW, IMPORT_STARTED, put_about},
    {FTRACE_SCHED_EXIT, IMPORT_EXIT, put_about},
    {FTRACE_SCHED_FORK, IMPORT_FORK, put_fork},
    {FTRACE_IRQ_ENTRY, IMPORT_INTERRUPT, put_kind},
    {FTRACE_SOFTIRQ_ENTRY, IMPORT_INTERRUPT, put_kind},
    {FTRACE_IRQ_EXIT, IMPORT_RESUME, put_kind},
    {FTRACE_SOFTIRQ_EXIT, IMPORT_RESUME, put_kind},
};

static void put_message(struct perfetto *p, struct import_event *event, struct proto_field *field)
{
    char name[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == field->id) {
            event->kind = (uint8_t)rows[i].kind;
            rows[i].put(p, event, &field->bytes);
            return;
        }
    if (field->id == FTRACE_TASK_NEWTASK || field->id == FTRACE_TASK_RENAME) {
        take_rename(p, &field->bytes, field->id == FTRACE_TASK_NEWTASK ? 2 : 3);
        return;
    }
    (void)snprintf(name, sizeof name, "ftrace event %" PRIu32, field->id);
    import_count_unknown(p->stats, text_from(name));
}

/* The time and the thread may precede the event's own message, or follow it. */
static void read_event(struct perfetto *p, struct proto event)
{
    struct import_event head = {.cpu = p->cpu, .tid = IMPORT_TID_OF_CPU};
    struct proto_field field, message = {0};
    while (proto_next(&event, &field)) {
        if (field.id == FTRACE_TIMESTAMP)
            head.time_ns = field.number <= INT64_MAX ? (int64_t)field.number : -1;
        else if (field.id == FTRACE_PID && is_tid(field.number))
            head.tid = (int32_t)field.number;
        else if (field.id == FTRACE_COMMON_FLAGS)
            head.in_interrupt = (field.number & FLAGS_INTERRUPT) != 0;
        else if (field.type == PROTO_BYTES)
            message = field;
    }
    if (event.bad)
        import_count_bad(p->stats);
    else if (message.id > 0)
        put_message(p, &head, &message);
}

/* MARK: Compact events: columns of one bundle */

/* The fields of CompactSched: packed lists; field 5, the table of names, is not one. */
enum {
    SWITCH_TIME = 1,
    SWITCH_STATE,
    SWITCH_NEXT,
    SWITCH_NAME = 6,
    WAKING_TIME,
    WAKING_TID,
    WAKING_NAME = 11,
    WAKING_FLAGS,
    COMPACT_FIELDS
};
enum { COMPACT_NAMES = 5 };

/* Returns the text with that number in the table. */
static struct proto name_of(struct proto compact, uint64_t number)
{
    struct proto_field field;
    while (proto_next(&compact, &field))
        if (field.id == COMPACT_NAMES && field.type == PROTO_BYTES && number-- == 0)
            return field.bytes;
    return (struct proto){0};
}

/* Returns the next number of a column; 0 after its end. */
static uint64_t next_of(struct proto *column)
{
    uint64_t number = 0;
    return proto_next_number(column, &number) ? number : 0;
}

static void read_switches(struct perfetto *p, struct proto compact, struct proto *columns)
{
    uint64_t delta, time = 0;
    while (!p->failed && proto_next_number(&columns[SWITCH_TIME], &delta)) {
        uint64_t state = next_of(&columns[SWITCH_STATE]), next = next_of(&columns[SWITCH_NEXT]);
        struct proto name = name_of(compact, next_of(&columns[SWITCH_NAME]));
        time += delta;
        bool good = is_tid(next) && time <= INT64_MAX;
        struct import_event event = {
            .time_ns = good ? (int64_t)time : 0,
            .kind = IMPORT_SWITCH,
            .left = (uint8_t)left_of(state),
            .cpu = p->cpu,
            .tid = IMPORT_TID_OF_CPU,
            .other = good ? (int32_t)next : 0,
        };
        take_name(p, event.other, &name);
        put(p, &event, good);
    }
}

static void read_wakings(struct perfetto *p, struct proto compact, struct proto *columns)
{
    uint64_t delta, time = 0;
    while (!p->failed && proto_next_number(&columns[WAKING_TIME], &delta)) {
        uint64_t tid = next_of(&columns[WAKING_TID]), flags = next_of(&columns[WAKING_FLAGS]);
        struct proto name = name_of(compact, next_of(&columns[WAKING_NAME]));
        time += delta;
        bool good = tid > 0 && is_tid(tid) && time <= INT64_MAX;
        struct import_event event = {
            .time_ns = good ? (int64_t)time : 0,
            .kind = IMPORT_WAKING,
            .in_interrupt = (flags & FLAGS_INTERRUPT) != 0,
            .cpu = p->cpu,
            .tid = IMPORT_TID_OF_CPU,
            .other = good ? (int32_t)tid : 0,
        };
        take_name(p, event.other, &name);
        put(p, &event, good);
    }
}

static void read_compact(struct perfetto *p, struct proto compact)
{
    struct proto columns[COMPACT_FIELDS] = {0}, rest = compact;
    struct proto_field field;
    while (proto_next(&rest, &field))
        if (field.id < COMPACT_FIELDS && field.type == PROTO_BYTES)
            columns[field.id] = field.bytes;
    if (rest.bad) {
        import_count_bad(p->stats);
        return;
    }
    read_switches(p, compact, columns);
    read_wakings(p, compact, columns);
    for (size_t i = 0; i < COMPACT_FIELDS; i++)
        if (columns[i].bad && i != COMPACT_NAMES)
            import_count_bad(p->stats);
}

/* MARK: Packets */

/* The number of the CPU comes first: the events after it need it. */
static void read_bundle(struct perfetto *p, struct proto bundle)
{
    struct proto_field field;
    p->cpu = IMPORT_NO_CPU;
    while (!p->failed && proto_next(&bundle, &field)) {
        if (field.id == BUNDLE_CPU && field.number <= IMPORT_CPU_MAX)
            p->cpu = (int32_t)field.number;
        else if (field.id == BUNDLE_LOST_EVENTS && field.number)
            p->stats->lost++;
        else if (p->cpu == IMPORT_NO_CPU || field.type != PROTO_BYTES)
            continue;
        else if (field.id == BUNDLE_EVENT)
            read_event(p, field.bytes);
        else if (field.id == BUNDLE_COMPACT_SCHED)
            read_compact(p, field.bytes);
    }
    if (bundle.bad)
        import_count_bad(p->stats);
}

static void read_packet(struct perfetto *p, struct proto packet)
{
    static const char compressed[] = "compressed packets";
    struct proto_field field;
    while (!p->failed && proto_next(&packet, &field)) {
        if (field.id == PACKET_COMPRESSED_PACKETS)
            import_count_unknown(p->stats, text_from(compressed));
        else if (field.id == PACKET_FTRACE_EVENTS && field.type == PROTO_BYTES)
            read_bundle(p, field.bytes);
    }
    if (packet.bad)
        import_count_bad(p->stats);
}

/* Takes the next packet of a trace. */
static bool next_packet(struct proto *trace, struct proto *packet)
{
    struct proto_field field;
    while (proto_next(trace, &field)) {
        if (field.id == TRACE_PACKET && field.type == PROTO_BYTES) {
            *packet = field.bytes;
            return true;
        }
    }
    return false;
}

static bool read_trace(struct perfetto *p, struct tracks *tracks, struct proto trace)
{
    struct proto packet, rest = trace;
    while (!tracks->spans.failed && next_packet(&rest, &packet))
        tracks_learn(tracks, packet);
    tracks_learnt(tracks);
    while (!p->failed && !tracks->spans.failed && next_packet(&trace, &packet)) {
        p->stats->lines++;
        read_packet(p, packet);
        tracks_packet(tracks, packet);
    }
    /* The last packet of a truncated recording. */
    if (trace.bad)
        import_count_bad(p->stats);
    return !p->failed && tracks_mean(tracks, p->has_states);
}

/* MARK: Compressed packets */

/* The bytes of a trace whose compressed packets are replaced by what they contain. */
struct expanded {
    trail_source *source;
    trail_error *err;
    uint8_t *data;
    size_t size, capacity;
    uint64_t packed, unpacked; /* of all compressed packets, for the source's limits */
};

static int append(struct expanded *to, const void *data, size_t size)
{
    if (size == 0)
        return 0;
    if (!GROW(to->data, to->capacity, to->size + size))
        return error_no_memory(to->err);
    memcpy(to->data + to->size, data, size);
    to->size += size;
    return 0;
}

/* Inflates zlib data and appends the result, up to any damage. Returns -1 with *err set. */
static int inflate_to(struct expanded *to, struct proto data, struct import_stats *stats)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data.at, .avail_in = (uInt)(data.end - data.at)};
    uint8_t room[16 << 10];
    int result = Z_OK, code = 0;
    if ((uint64_t)(data.end - data.at) > UINT_MAX || inflateInit(&z) != Z_OK)
        return error_no_memory(to->err);
    to->packed += z.avail_in;
    while (code == 0 && result == Z_OK) {
        z.next_out = room;
        z.avail_out = sizeof room;
        result = inflate(&z, Z_NO_FLUSH);
        size_t size = sizeof room - z.avail_out;
        to->unpacked += size;
        code = source_limit(to->source, "zlib", to->packed, to->unpacked, to->err);
        if (code == 0)
            code = append(to, room, size);
    }
    if (code == 0 && result != Z_STREAM_END)
        import_count_bad(stats);
    (void)inflateEnd(&z);
    return code;
}

static int expand_packet(struct expanded *to, struct proto packet, const uint8_t *begin,
                         const uint8_t *end, struct import_stats *stats)
{
    struct proto_field field;
    if (proto_next(&packet, &field) && field.id == PACKET_COMPRESSED_PACKETS &&
        field.type == PROTO_BYTES)
        return inflate_to(to, field.bytes, stats);
    return append(to, begin, (size_t)(end - begin));
}

/* Replaces compressed packets. The rest behind the last good packet stays, to be counted. */
static int expand(struct expanded *to, struct proto trace, struct import_stats *stats)
{
    const uint8_t *begin = trace.at;
    struct proto packet;
    while (next_packet(&trace, &packet)) {
        if (expand_packet(to, packet, begin, trace.at, stats) < 0)
            return -1;
        begin = trace.at;
    }
    return append(to, begin, (size_t)(trace.end - begin));
}

static bool has_compressed(struct proto trace)
{
    struct proto packet;
    struct proto_field field;
    while (next_packet(&trace, &packet))
        if (proto_next(&packet, &field) && field.id == PACKET_COMPRESSED_PACKETS)
            return true;
    return false;
}

int import_perfetto(trail_source *source, struct import_model *model, trail_error *err)
{
    struct perfetto p = {.model = model, .stats = model->threads.stats};
    struct tracks tracks;
    const uint8_t *data;
    size_t size;
    int result = -1;
    if (!tracks_init(&tracks, model))
        return error_no_memory(err);
    struct expanded plain = {.source = source, .err = err};
    if (source_whole(source, &data, &size, err) == 0) {
        struct proto trace = {data, data + size, false};
        result = has_compressed(trace) ? expand(&plain, trace, p.stats) : 0;
        if (plain.data)
            trace = (struct proto){plain.data, plain.data + plain.size, false};
        if (result == 0 && !read_trace(&p, &tracks, trace))
            result = error_no_memory(err);
    }
    tracks_free(&tracks);
    free(plain.data);
    return result;
}

/*
 * Whether the part `seen` of a packet of `length` bytes consists of valid fields. A text may begin
 * with a line end, which is also the tag of a packet.
 */
static bool are_fields(struct proto seen, uint64_t length)
{
    while (seen.at < seen.end && length > 0) {
        const uint8_t *begin = seen.at;
        uint64_t tag, size = 0;
        if (!proto_next_number(&seen, &tag))
            return !seen.bad;
        if (tag >> 3 == 0 || tag >> 3 >= 1000)
            return false;
        if ((tag & 7) == PROTO_NUMBER || (tag & 7) == PROTO_BYTES) {
            if (!proto_next_number(&seen, &size))
                return !seen.bad;
            size = (tag & 7) == PROTO_BYTES ? size : 0;
        } else if ((tag & 7) == PROTO_FIXED64 || (tag & 7) == PROTO_FIXED32) {
            size = (tag & 7) == PROTO_FIXED64 ? 8 : 4;
        } else {
            return false;
        }
        uint64_t head = (uint64_t)(seen.at - begin);
        if (head > length || size > length - head)
            return false;
        length -= head + size;
        seen.at += size < (uint64_t)(seen.end - seen.at) ? size : (uint64_t)(seen.end - seen.at);
    }
    return true;
}

bool import_is_perfetto(const void *begin, size_t size)
{
    const uint8_t *data = begin;
    struct proto seen = {data, data + size, false};
    uint64_t tag, length;
    return proto_next_number(&seen, &tag) && tag == (TRACE_PACKET << 3 | PROTO_BYTES) &&
           proto_next_number(&seen, &length) && length > 0 && are_fields(seen, length);
}
