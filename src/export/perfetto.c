/*
 * Perfetto's trace format: a stream of TracePacket messages.
 *
 * A packet usually takes about twenty bytes: its time is the difference to the previous packet (a
 * clock of this sequence), and its name and stack are numbers defined by earlier packets. An event
 * that lies before the previous packet has an absolute time, on the trace's clock. Whole packets,
 * as many as the buffer holds, are then compressed into one.
 *
 * Tracks: a process; in it the goroutines, each with its states and below them its regions and
 * ranges; Ps; threads; the runtime; tasks; counters. Of a recording of threads: the processes, and
 * in each its threads with their states, as the system numbers them; and the scheduler's events on
 * the CPU slots, as the kernel would record them, of which Perfetto makes sched and thread_state.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/intern.h"
#include "base/text.h"
#include "base/varint.h"
#include "export/compressor.h"
#include "export/protobuf.h"
#include "timeline/timeline.h"
#include "wire/perfetto.h"

enum { SEQUENCE = 1 };
enum { CLOCK_REAL = 1, CLOCK_MONO = 3, CLOCK_TRACE = 6, CLOCK_DELTA = 64 };
enum { ORDER_CHRONOLOGICAL = 2, ORDER_EXPLICIT = 3 };
enum { UNIT_COUNT = 2, UNIT_BYTES = 3 };
enum { MAPPING = 1 }; /* Perfetto expects one: all frames are in it */

enum {
    TRACK_PROCESS = 1,
    TRACK_GOROUTINES,
    TRACK_PROCS,
    TRACK_RUNTIME,
    TRACK_GC,
    TRACK_STOPPED,
    TRACK_TASKS,
    TRACK_METRICS, /* one for each of TRAIL_METRICS */
    TRACK_FIRST = 16
};

/* IDs of event names: the low two bits are the kind of the number. */
enum name_kind { NAME_STATE, NAME_GOROUTINE, NAME_TEXT, NAME_REASON };
#define NAME_WAKE TIMELINE_STATES /* a pseudo-state after the real ones */

static inline uint64_t name_iid(enum name_kind kind, uint64_t number)
{
    return (number + 1) << 2 | kind;
}

/* Which numbers have been defined: one byte each. */
struct marks {
    uint8_t *items;
    size_t capacity;
};

/* A thread has left a CPU slot; its next state decides as what. */
struct left {
    struct timeline_lane *lane; /* NULL: none has */
    const struct timeline_goroutine *g;
    int64_t ns;
};

struct perfetto {
    struct timeline timeline;
    struct left left; /* of_threads */
    struct out out;
    struct protobuf packet, part, inner, leaf;
    uint64_t shift;   /* added to make times positive */
    uint64_t last_ns; /* of the previous packet */
    uint64_t last_track, flow, pending_flow;
    struct marks texts, reasons, functions, files, stacks;
    struct intern frames;   /* struct frame_key */
    struct idmap processes; /* for of_threads: the described ones, by PID */
    const trail_sink *sink;
    struct compressor *compressor; /* NULL: packets are written as they are */
    bool has_clocks;
    trail_clock_snapshot clocks;
};

struct frame_key {
    uint64_t pc, line;
    trail_name function, file;
};

/* Returns true the first time it is called for a number. */
static inline bool is_new(struct perfetto *p, struct marks *marks, size_t number)
{
    if (__builtin_expect(number < marks->capacity && marks->items[number], 1))
        return false;
    if (!GROW_ZEROED(marks->items, marks->capacity, number + 1)) {
        p->timeline.failed = true;
        return false;
    }
    marks->items[number] = 1;
    return true;
}

static uint64_t stamp(const struct perfetto *p, int64_t ns)
{
    return (uint64_t)ns + p->shift;
}

/* MARK: Compression */

/* Bytes of a packet's tag and size, with one of a field in it. */
#define HEAD_MOST (2 * (size_t)(2 + UVARINT_MAX_SIZE))
_Static_assert(HEAD_MOST <= COMPRESSOR_HEAD, "the head fits before a block");

/* Writes compressed packets as one packet, whose head is put before them. */
static bool write_compressed(void *context, uint8_t *data, size_t size)
{
    const struct perfetto *p = context;
    uint8_t field[HEAD_MOST], *end = field;
    end = protobuf_put_varint(end, PACKET_COMPRESSED_PACKETS << 3 | PROTOBUF_BYTES);
    end = protobuf_put_varint(end, size);
    uint8_t head[HEAD_MOST], *at = head;
    *at++ = TRACE_PACKET << 3 | PROTOBUF_BYTES;
    at = protobuf_put_varint(at, (uint64_t)(end - field) + size);
    memcpy(at, field, (size_t)(end - field));
    at += end - field;
    uint8_t *begin = data - (at - head);
    memcpy(begin, head, (size_t)(at - head));
    return p->sink->write(p->sink->context, begin, (size_t)(at - head) + size);
}

/* The sink of the buffer, which has whole packets. */
static bool write_packets(void *context, const void *data, size_t size)
{
    const struct perfetto *p = context;
    return p->compressor ? compressor_put(p->compressor, data, size)
                         : p->sink->write(p->sink->context, data, size);
}

/* Writes all packets so far. */
static void flush_packets(void *writer)
{
    struct perfetto *p = writer;
    out_flush(&p->out);
    if (p->compressor && !p->out.failed && !compressor_flush(p->compressor)) {
        p->out.failed = true;
        p->out.reason = errno;
    }
}

/* Writes a packet that the buffer cannot hold, which stays as it is. */
static void put_large(struct perfetto *p, const uint8_t *head, size_t head_size)
{
    flush_packets(p);
    if (!p->out.failed && !(p->sink->write(p->sink->context, head, head_size) &&
                            p->sink->write(p->sink->context, p->packet.data, p->packet.size))) {
        p->out.failed = true;
        p->out.reason = errno;
    }
}

/* MARK: Packets of any size */

/* Writes the message in `packet`, with the fields that every packet has. */
static void put_packet(struct perfetto *p, unsigned flags)
{
    uint8_t head[1 + UVARINT_MAX_SIZE], *at = head;
    protobuf_number(&p->packet, PACKET_SEQUENCE_ID, SEQUENCE);
    protobuf_number(&p->packet, PACKET_SEQUENCE_FLAGS, flags);
    *at++ = TRACE_PACKET << 3 | PROTOBUF_BYTES;
    at = protobuf_put_varint(at, p->packet.size);
    if (p->packet.size > OUT_BUFFER_SIZE - sizeof head) {
        put_large(p, head, (size_t)(at - head));
    } else {
        out_room(&p->out, (size_t)(at - head) + p->packet.size);
        out_bytes(&p->out, head, (size_t)(at - head));
        out_bytes(&p->out, p->packet.data, p->packet.size);
    }
    p->timeline.failed |= p->packet.failed;
    p->packet.size = 0;
}

/* Sets the time of the packet under construction. */
static void put_time(struct perfetto *p, int64_t ns)
{
    protobuf_number(&p->packet, PACKET_TIMESTAMP, stamp(p, ns));
    protobuf_number(&p->packet, PACKET_CLOCK_ID, CLOCK_TRACE);
}

static void put_descriptor(struct perfetto *p)
{
    protobuf_part(&p->packet, PACKET_TRACK_DESCRIPTOR, &p->part);
    put_packet(p, SEQUENCE_NEEDS_STATE);
}

/* Begins a track descriptor; `order` is its child_ordering, or 0. */
static void begin_track(struct perfetto *p, uint64_t track, uint64_t parent, trail_string name,
                        unsigned order)
{
    protobuf_number(&p->part, DESCRIPTOR_UUID, track);
    protobuf_text(&p->part, DESCRIPTOR_NAME, name);
    protobuf_number(&p->part, DESCRIPTOR_PARENT, parent);
    protobuf_number(&p->part, DESCRIPTOR_CHILD_ORDERING, order);
}

/* Describes the process that the track stands for. */
static void add_process(struct perfetto *p, uint64_t pid, trail_string name)
{
    protobuf_number(&p->inner, PROCESS_PID, pid);
    protobuf_text(&p->inner, PROCESS_NAME, name);
    protobuf_part(&p->part, DESCRIPTOR_PROCESS, &p->inner);
}

static void add_thread(struct perfetto *p, uint64_t pid, uint64_t tid, trail_string name)
{
    protobuf_number(&p->inner, THREAD_PID, pid);
    protobuf_number(&p->inner, THREAD_TID, tid);
    protobuf_text(&p->inner, THREAD_NAME, name);
    protobuf_part(&p->part, DESCRIPTOR_THREAD, &p->inner);
}

static void put_track(struct perfetto *p, uint64_t track, uint64_t parent, const char *name,
                      unsigned order)
{
    begin_track(p, track, parent, text_from(name), order);
    put_descriptor(p);
}

/* Defines a name: an EventName or InternedString. */
static void put_interned(struct perfetto *p, unsigned field, uint64_t iid, trail_string text)
{
    protobuf_number(&p->inner, NAMED_IID, iid);
    protobuf_text(&p->inner, NAMED_TEXT, text);
    protobuf_part(&p->part, field, &p->inner);
}

static void put_interned_data(struct perfetto *p)
{
    protobuf_part(&p->packet, PACKET_INTERNED_DATA, &p->part);
    put_packet(p, SEQUENCE_NEEDS_STATE);
}

/* MARK: Names and stacks by number */

static uint64_t text_iid(struct perfetto *p, trail_name name)
{
    if (is_new(p, &p->texts, name)) {
        put_interned(p, INTERNED_EVENT_NAMES, name_iid(NAME_TEXT, name),
                     timeline_text(&p->timeline, name));
        put_interned_data(p);
    }
    return name_iid(NAME_TEXT, name);
}

/* "waiting (chan receive)"; the reason may have any bytes, NUL included. */
static void define_reason(struct perfetto *p, trail_name reason)
{
    char text[TIMELINE_LABEL] = "waiting (";
    trail_string name = timeline_text(&p->timeline, reason);
    size_t at = strlen(text), size = name.size < sizeof text - 16 ? name.size : sizeof text - 16;
    memcpy(text + at, name.data, size);
    text[at + size] = ')';
    put_interned(p, INTERNED_EVENT_NAMES, name_iid(NAME_REASON, reason),
                 (trail_string){text, at + size + 1});
    put_interned_data(p);
}

static uint64_t state_iid(struct perfetto *p, const struct timeline_goroutine *g)
{
    if (!timeline_has_reason(g))
        return name_iid(NAME_STATE, timeline_state_of(g));
    if (is_new(p, &p->reasons, g->reason))
        define_reason(p, g->reason);
    return name_iid(NAME_REASON, g->reason);
}

static uint64_t frame_iid(struct perfetto *p, const trail_place *place)
{
    struct frame_key key = {place->pc, place->line, place->function, place->file};
    bool fresh;
    uint64_t iid = intern_put(&p->frames, &key, sizeof key, &fresh);
    p->timeline.failed |= iid == 0;
    if (!fresh)
        return iid;
    if (place->function && is_new(p, &p->functions, place->function))
        put_interned(p, INTERNED_FUNCTION_NAMES, place->function,
                     timeline_text(&p->timeline, place->function));
    if (place->file && is_new(p, &p->files, place->file))
        put_interned(p, INTERNED_SOURCE_PATHS, place->file,
                     timeline_text(&p->timeline, place->file));
    protobuf_number(&p->inner, FRAME_IID, iid);
    protobuf_number(&p->inner, FRAME_FUNCTION_NAME_ID, place->function);
    protobuf_number(&p->inner, FRAME_MAPPING_ID, MAPPING);
    protobuf_number(&p->inner, FRAME_REL_PC, place->pc ? place->pc : 1);
    protobuf_number(&p->inner, FRAME_SOURCE_PATH_IID, place->file);
    protobuf_number(&p->inner, FRAME_LINE_NUMBER, place->line <= UINT32_MAX ? place->line : 0);
    protobuf_part(&p->part, INTERNED_FRAMES, &p->inner);
    return iid;
}

/* Frames are written outermost first. */
static void define_stack(struct perfetto *p, trail_stack stack)
{
    struct stack_row row = stacks_get(&p->timeline.stacks, stack);
    protobuf_number(&p->leaf, CALLSTACK_IID, stack);
    for (size_t i = row.count; i-- > 0;)
        protobuf_number(&p->leaf, CALLSTACK_FRAME_IDS, frame_iid(p, &row.places[i]));
    protobuf_part(&p->part, INTERNED_CALLSTACKS, &p->leaf);
    put_interned_data(p);
}

static inline uint64_t stack_iid(struct perfetto *p, trail_stack stack)
{
    if (stack != 0 && is_new(p, &p->stacks, stack))
        define_stack(p, stack);
    return stack;
}

/* MARK: Events */

/* The fields of an event besides its type and track; 0: absent. */
struct event_fields {
    uint64_t name, stack, flow, flow_end;
};

#define EVENT_MOST 128 /* bytes: every size in it fits into one varint byte */

/*
 * Writes a TracePacket with a TrackEvent, at most EVENT_MOST bytes, directly into the output
 * buffer; sizes are filled in last. Nothing may be interned between out_room and the end.
 */
static void put_event(struct perfetto *p, int64_t ns, unsigned type, uint64_t track,
                      struct event_fields fields)
{
    uint64_t now = stamp(p, ns);
    out_room(&p->out, EVENT_MOST);
    uint8_t *packet = (uint8_t *)p->out.at, *at = packet + 2;
    packet[0] = TRACE_PACKET << 3 | PROTOBUF_BYTES;
    if (__builtin_expect(now >= p->last_ns, 1)) {
        at = protobuf_put_number(at, PACKET_TIMESTAMP, now - p->last_ns);
        p->last_ns = now;
    } else {
        at = protobuf_put_number(at, PACKET_TIMESTAMP, now);
        at = protobuf_put_number(at, PACKET_CLOCK_ID, CLOCK_TRACE);
    }
    /* clang-format off */
    static const uint8_t middle[] = {
        PACKET_SEQUENCE_ID << 3 | PROTOBUF_VARINT, SEQUENCE,
        PACKET_SEQUENCE_FLAGS << 3 | PROTOBUF_VARINT, SEQUENCE_NEEDS_STATE,
        PACKET_TRACK_EVENT << 3 | PROTOBUF_BYTES, /* its size */ 0,
        EVENT_TYPE << 3 | PROTOBUF_VARINT, /* type */ 0};
    /* clang-format on */
    memcpy(at, middle, sizeof middle);
    uint8_t *event = at + 5;
    at += sizeof middle;
    at[-1] = (uint8_t)type;
    at = protobuf_put_number(at, EVENT_TRACK, track);
    if (fields.name)
        at = protobuf_put_number(at, EVENT_NAME_IID, fields.name);
    if (fields.flow)
        at = protobuf_put_fixed64(at, EVENT_FLOW_IDS, fields.flow);
    if (fields.flow_end)
        at = protobuf_put_fixed64(at, EVENT_TERMINATING_FLOW_IDS, fields.flow_end);
    if (fields.stack)
        at = protobuf_put_number(at, EVENT_CALLSTACK_IID, fields.stack);
    *event = (uint8_t)(at - event - 1);
    packet[1] = (uint8_t)(at - packet - 2);
    p->out.at = (char *)at;
}

/* MARK: Events with other fields */

static void begin_event(struct perfetto *p, unsigned type, uint64_t track)
{
    protobuf_number(&p->part, EVENT_TYPE, type);
    protobuf_number(&p->part, EVENT_TRACK, track);
}

static void begin_slice(struct perfetto *p, uint64_t track, uint64_t name, uint64_t stack)
{
    begin_event(p, TYPE_SLICE_BEGIN, track);
    protobuf_number(&p->part, EVENT_NAME_IID, name);
    protobuf_number(&p->part, EVENT_CALLSTACK_IID, stack);
}

static void annotate(struct perfetto *p, const char *key, uint64_t value)
{
    protobuf_word(&p->inner, ANNOTATION_NAME, key);
    protobuf_present_number(&p->inner, ANNOTATION_UINT_VALUE, value);
    protobuf_part(&p->part, EVENT_ANNOTATIONS, &p->inner);
}

static void annotate_text(struct perfetto *p, const char *key, trail_string value)
{
    protobuf_word(&p->inner, ANNOTATION_NAME, key);
    protobuf_text(&p->inner, ANNOTATION_STRING_VALUE, value);
    protobuf_part(&p->part, EVENT_ANNOTATIONS, &p->inner);
}

static void end_event(struct perfetto *p, int64_t ns)
{
    put_time(p, ns);
    protobuf_part(&p->packet, PACKET_TRACK_EVENT, &p->part);
    put_packet(p, SEQUENCE_NEEDS_STATE);
}

static void put_counter(struct perfetto *p, int64_t ns, uint64_t track, uint64_t value)
{
    begin_event(p, TYPE_COUNTER, track);
    protobuf_present_number(&p->part, EVENT_COUNTER_VALUE, value);
    end_event(p, ns);
}

/* MARK: Goroutines */

/* A goroutine has two tracks: one for its states, the next one for its regions and ranges. */
static uint64_t new_track(struct perfetto *p)
{
    p->last_track += 2;
    return p->last_track;
}

static uint64_t label_iid(const struct timeline_goroutine *g)
{
    return name_iid(NAME_GOROUTINE, g->writer + g->relabelled);
}

/* Describes a process of the recording; 0 stands for the unknown process of other threads. */
static void describe_process(struct perfetto *p, const struct timeline_thread *thread)
{
    if (thread->pid == 0 || idmap_find(&p->processes, (uint64_t)thread->pid))
        return;
    trail_string name =
        thread->process.size > 0 ? thread->process : timeline_title(p->timeline.options);
    p->timeline.failed |= !idmap_put(&p->processes, (uint64_t)thread->pid, p);
    begin_track(p, new_track(p), 0, name, 0);
    add_process(p, (uint64_t)thread->pid, name);
    put_descriptor(p);
}

/*
 * Describes the track of a thread when its numbers are known, or at the end without them. A track
 * is described once, possibly after its first events.
 */
static void describe_thread(struct perfetto *p, struct timeline_goroutine *g, bool at_end)
{
    struct timeline_thread thread;
    bool known = timeline_thread_of(&p->timeline, g, &thread);
    if (g->described || !g->writer || (!known && !at_end))
        return;
    g->described = true;
    describe_process(p, &thread);
    begin_track(p, g->writer, known && thread.pid > 0 ? 0 : TRACK_GOROUTINES, thread.name, 0);
    if (known && thread.pid > 0 && thread.tid <= INT32_MAX)
        add_thread(p, (uint64_t)thread.pid, (uint64_t)thread.tid, thread.name);
    put_descriptor(p);
}

static void perfetto_goroutine(void *writer, struct timeline_goroutine *g)
{
    struct perfetto *p = writer;
    char buf[TIMELINE_LABEL];
    trail_string label = timeline_label(&p->timeline, g, buf);
    uint64_t track = g->writer ? g->writer : new_track(p);
    if (p->timeline.of_threads) {
        g->writer = track;
        return;
    }
    begin_track(p, track, TRACK_GOROUTINES, label, 0);
    put_descriptor(p);
    /* A name is never redefined: a renamed goroutine uses the ID of its second track. */
    g->relabelled = g->writer != 0;
    g->writer = track;
    put_interned(p, INTERNED_EVENT_NAMES, label_iid(g), label);
    put_interned_data(p);
}

/* Begins a wait that a recording describes. */
static void put_wait(struct perfetto *p, const struct timeline_goroutine *g,
                     const struct wait_facts *facts)
{
    uint64_t name = state_iid(p, g), stack = stack_iid(p, g->stack);
    begin_slice(p, g->writer, name, stack);
    annotate_text(p, "wait.kind", timeline_text(&p->timeline, facts->kind_name));
    if (facts->object)
        annotate_text(p, "wait.object", timeline_text(&p->timeline, facts->object));
    end_event(p, g->since_ns);
}

/* MARK: The scheduler's events */

enum { SCHED_PRIORITY = 120 }; /* Linux's of a thread without another one */

/* prev_state: TASK_REPORT of Linux. */
enum { LEFT_READY = 0, LEFT_SLEEPING = 1, LEFT_BLOCKED = 2, LEFT_DEAD = 16 };

/* A thread by its ID and name; the ID 0 is the idle thread. */
struct sched_thread {
    uint64_t tid;
    trail_string name;
};

static struct sched_thread sched_thread_of(const struct perfetto *p,
                                           const struct timeline_goroutine *g)
{
    struct timeline_thread thread;
    (void)timeline_thread_of(&p->timeline, g, &thread);
    return (struct sched_thread){(uint64_t)g->tid, thread.name};
}

static bool is_known_thread(const struct timeline_goroutine *g)
{
    return g && g->tid > 0 && g->tid <= INT32_MAX;
}

/* Writes the event in `inner`, which happened in the context of a thread. Readers require numbers
 * that are 0, too. */
static void put_sched(struct perfetto *p, int64_t cpu, int64_t ns, uint64_t tid, unsigned kind)
{
    protobuf_number(&p->leaf, FTRACE_TIMESTAMP, stamp(p, ns));
    protobuf_present_number(&p->leaf, FTRACE_PID, tid);
    protobuf_part(&p->leaf, kind, &p->inner);
    protobuf_present_number(&p->part, BUNDLE_CPU, (uint64_t)cpu);
    protobuf_part(&p->part, BUNDLE_EVENT, &p->leaf);
    protobuf_part(&p->packet, PACKET_FTRACE_EVENTS, &p->part);
    put_packet(p, SEQUENCE_NEEDS_STATE);
}

static void put_switch(struct perfetto *p, const struct timeline_lane *lane, int64_t ns,
                       struct sched_thread prev, unsigned prev_state, struct sched_thread next)
{
    protobuf_text(&p->inner, SWITCH_PREV_COMM, prev.name);
    protobuf_present_number(&p->inner, SWITCH_PREV_PID, prev.tid);
    protobuf_number(&p->inner, SWITCH_PREV_PRIO, SCHED_PRIORITY);
    protobuf_present_number(&p->inner, SWITCH_PREV_STATE, prev_state);
    protobuf_text(&p->inner, SWITCH_NEXT_COMM, next.name);
    protobuf_present_number(&p->inner, SWITCH_NEXT_PID, next.tid);
    protobuf_number(&p->inner, SWITCH_NEXT_PRIO, SCHED_PRIORITY);
    put_sched(p, lane->id, ns, prev.tid, FTRACE_SCHED_SWITCH);
}

static void put_waking(struct perfetto *p, const struct timeline_goroutine *g)
{
    const struct timeline_goroutine *waker = timeline_goroutine_find(&p->timeline, g->waker);
    struct sched_thread woken = sched_thread_of(p, g);
    int64_t cpu = waker && waker->on_proc > 0 ? waker->on_proc : 0;
    bool by_thread = is_known_thread(waker) && waker != g; /* else an interrupt */
    protobuf_text(&p->inner, WAKING_COMM, woken.name);
    protobuf_number(&p->inner, WAKING_PID, woken.tid);
    protobuf_number(&p->inner, WAKING_PRIO, SCHED_PRIORITY);
    protobuf_number(&p->inner, WAKING_SUCCESS, 1);
    put_sched(p, cpu, g->since_ns, by_thread ? (uint64_t)waker->tid : 0, FTRACE_SCHED_WAKING);
}

static void sched_enters_slot(struct perfetto *p, struct timeline_lane *lane)
{
    if (!is_known_thread(lane->g) || lane->writer == (uint64_t)lane->g->tid)
        return;
    put_switch(p, lane, lane->since_ns, (struct sched_thread){.tid = lane->writer}, LEFT_READY,
               sched_thread_of(p, lane->g));
    lane->writer = (uint64_t)lane->g->tid;
}

/* Writes that a thread has left its CPU slot if it has, in this state. */
static void sched_leaves_slot(struct perfetto *p, const struct timeline_goroutine *g,
                              unsigned state)
{
    struct left left = p->left;
    p->left.lane = NULL;
    if (left.g != g || !is_known_thread(g) || left.lane->writer != (uint64_t)g->tid)
        return;
    put_switch(p, left.lane, left.ns, sched_thread_of(p, g), state, (struct sched_thread){0});
    left.lane->writer = 0;
}

/* A thread has entered a state. */
static void sched_enters_state(struct perfetto *p, const struct timeline_goroutine *g)
{
    static const unsigned as[TIMELINE_STATES] = {
        [TIMELINE_RUNNABLE] = LEFT_READY,
        [TIMELINE_WAITING] = LEFT_SLEEPING,
        [TIMELINE_BLOCKED] = LEFT_BLOCKED,
    };
    enum timeline_state state = timeline_state_of(g);
    bool leaves = p->left.lane && p->left.g == g;
    if (leaves && g->on_proc == p->left.lane->id)
        p->left.lane = NULL; /* it continues there, in or after a system call */
    else if (leaves)
        sched_leaves_slot(p, g, as[state]);
    else if (state == TIMELINE_RUNNABLE && is_known_thread(g))
        put_waking(p, g);
}

static void perfetto_enter(void *writer, struct timeline_goroutine *g)
{
    struct perfetto *p = writer;
    if (p->timeline.of_threads) {
        sched_enters_state(p, g);
        describe_thread(p, g, false);
        const struct wait_facts *facts =
            g->reason ? wait_facts_of(&p->timeline.names, g->reason) : NULL;
        if (facts && p->pending_flow == 0) {
            put_wait(p, g, facts);
            return;
        }
    }
    struct event_fields fields = {
        .name = state_iid(p, g),
        .stack = stack_iid(p, g->stack),
        .flow_end = p->pending_flow,
    };
    p->pending_flow = 0;
    put_event(p, g->since_ns, TYPE_SLICE_BEGIN, g->writer, fields);
}

static void perfetto_leave(void *writer, struct timeline_goroutine *g, int64_t now,
                           trail_stack stack)
{
    (void)stack;
    put_event(writer, now, TYPE_SLICE_END, g->writer, (struct event_fields){0});
}

static void perfetto_gone(void *writer, struct timeline_goroutine *g, int64_t now)
{
    struct perfetto *p = writer;
    (void)now;
    if (!p->timeline.of_threads)
        return;
    if (p->left.lane)
        sched_leaves_slot(p, g, LEFT_DEAD);
    describe_thread(p, g, true);
}

static void perfetto_wake(void *writer, struct timeline_goroutine *waker,
                          struct timeline_goroutine *g, int64_t now, trail_stack stack)
{
    struct perfetto *p = writer;
    (void)g;
    p->pending_flow = ++p->flow;
    put_event(p, now, TYPE_INSTANT, waker->writer,
              (struct event_fields){.name = name_iid(NAME_STATE, NAME_WAKE),
                                    .stack = stack_iid(p, stack),
                                    .flow = p->flow});
}

/* MARK: Ps and threads */

static void describe_lane(struct perfetto *p, struct timeline_lane *lane)
{
    char text[32];
    int size = snprintf(text, sizeof text, lane->is_thread ? "M%" PRId64 : "P%" PRId64, lane->id);
    trail_string name = {text, (size_t)size};
    lane->known = true;
    lane->writer = new_track(p);
    begin_track(p, lane->writer, lane->is_thread ? TRACK_PROCESS : TRACK_PROCS, name, 0);
    if (lane->is_thread && lane->id > 0 && lane->id <= INT32_MAX)
        add_thread(p, 1, (uint64_t)lane->id, name);
    else if (!lane->is_thread && lane->id <= INT32_MAX)
        protobuf_number(&p->part, DESCRIPTOR_SIBLING_ORDER_RANK, (uint64_t)lane->id);
    put_descriptor(p);
}

static void perfetto_lane_enter(void *writer, struct timeline_lane *lane)
{
    struct perfetto *p = writer;
    if (p->timeline.of_threads) {
        /* The threads have tracks of their own, and the slots do not belong to the program. */
        if (!lane->is_thread)
            sched_enters_slot(p, lane);
        return;
    }
    if (!lane->known)
        describe_lane(p, lane);
    uint64_t name =
        lane->state == TIMELINE_RUNNING ? label_iid(lane->g) : name_iid(NAME_STATE, lane->state);
    put_event(p, lane->since_ns, TYPE_SLICE_BEGIN, lane->writer,
              (struct event_fields){.name = name});
}

static void perfetto_lane_leave(void *writer, struct timeline_lane *lane, int64_t now)
{
    struct perfetto *p = writer;
    if (p->timeline.of_threads) {
        if (!lane->is_thread)
            p->left = (struct left){lane, lane->g, now};
        return;
    }
    put_event(writer, now, TYPE_SLICE_END, lane->writer, (struct event_fields){0});
}

/* MARK: Ranges, regions, tasks */

/* Returns the second track of a goroutine or P, describing it on first use. */
static uint64_t second_track(struct perfetto *p, uint64_t first, bool *known, const char *name)
{
    if (!*known)
        put_track(p, first + 1, first, name, 0);
    *known = true;
    return first + 1;
}

static uint64_t span_track(struct perfetto *p, const struct timeline_span *span)
{
    if (span->kind == TIMELINE_TASK)
        return new_track(p);
    if (span->kind == TIMELINE_RANGE && span->range == TRAIL_RANGE_GC)
        return TRACK_GC;
    if (span->kind == TIMELINE_RANGE && span->range == TRAIL_RANGE_STW)
        return TRACK_STOPPED;
    if (span->proc >= 0) {
        struct timeline_lane *lane = objects_find(&p->timeline.procs, (uint64_t)span->proc);
        if (!lane->known)
            describe_lane(p, lane);
        return second_track(p, lane->writer, &lane->described, "ranges");
    }
    struct timeline_goroutine *g =
        timeline_goroutine_of(follow_find(&p->timeline.follow, span->goroutine));
    return g ? second_track(p, g->writer, &g->known,
                            p->timeline.of_threads ? "regions" : "regions and ranges")
             : TRACK_RUNTIME;
}

static void perfetto_open(void *writer, struct timeline_span *span)
{
    struct perfetto *p = writer;
    uint64_t name = text_iid(p, span->name), stack = stack_iid(p, span->stack);
    span->writer = span_track(p, span);
    if (span->kind == TIMELINE_TASK) {
        begin_track(p, span->writer, TRACK_TASKS, timeline_text(&p->timeline, span->name), 0);
        put_descriptor(p);
    }
    begin_slice(p, span->writer, name, stack);
    const struct timeline_goroutine *g = timeline_goroutine_find(&p->timeline, span->goroutine);
    if (p->timeline.of_threads && g && g->tid > 0)
        annotate(p, "thread.id", (uint64_t)g->tid);
    else if (!p->timeline.of_threads && span->goroutine >= 0)
        annotate(p, "goroutine", (uint64_t)span->goroutine);
    if (span->kind != TIMELINE_RANGE && span->task != 0 && span->task != TRAIL_NO_TASK)
        annotate(p, "task", span->task);
    if (span->parent != 0 && span->parent != TRAIL_NO_TASK)
        annotate(p, "parent task", span->parent);
    end_event(p, span->begin_ns);
}

static void perfetto_close(void *writer, struct timeline_span *span, int64_t now)
{
    put_event(writer, now, TYPE_SLICE_END, span->writer, (struct event_fields){0});
}

/* MARK: Logs, metrics, samples */

static void perfetto_log(void *writer, const trail_event *event)
{
    struct perfetto *p = writer;
    const trail_reader *reader = p->timeline.reader;
    struct timeline_goroutine *g = timeline_goroutine_find(&p->timeline, event->goroutine);
    begin_event(p, TYPE_INSTANT, g ? g->writer : TRACK_RUNTIME);
    protobuf_text(&p->part, EVENT_NAME, trail_reader_string(reader, event->log.message));
    annotate_text(p, "category", trail_reader_string(reader, event->log.category));
    if (event->log.task != 0 && event->log.task != TRAIL_NO_TASK)
        annotate(p, "task", event->log.task);
    end_event(p, event->time_ns);
}

/* A recording of threads has no Ps and no collector, only the heap in use. */
static bool has_metric(const struct perfetto *p, trail_metric metric)
{
    return !p->timeline.of_threads || metric == TRAIL_METRIC_HEAP_LIVE;
}

static void perfetto_metric(void *writer, const trail_event *event)
{
    const struct perfetto *p = writer;
    if ((unsigned)event->metric.metric < TRAIL_METRICS && has_metric(p, event->metric.metric))
        put_counter(writer, event->time_ns, TRACK_METRICS + (uint64_t)event->metric.metric,
                    event->metric.value);
}

/* A sample belongs to a thread; if that is not known, it is an instant event of its goroutine. */
static void perfetto_sample(void *writer, const trail_event *event, trail_stack stack)
{
    struct perfetto *p = writer;
    uint64_t iid = stack_iid(p, stack);
    struct timeline_goroutine *g = timeline_goroutine_find(&p->timeline, event->goroutine);
    uint64_t pid = 1;
    if (p->timeline.of_threads) {
        struct timeline_thread thread = {0};
        pid = g && timeline_thread_of(&p->timeline, g, &thread) ? (uint64_t)thread.pid : 0;
    }
    if (event->thread > 0 && event->thread <= INT32_MAX && pid > 0) {
        if (!p->timeline.of_threads)
            protobuf_number(&p->part, SAMPLE_CPU, event->proc > 0 ? (uint64_t)event->proc : 0);
        protobuf_number(&p->part, SAMPLE_PID, pid);
        protobuf_number(&p->part, SAMPLE_TID, (uint64_t)event->thread);
        protobuf_number(&p->part, SAMPLE_CALLSTACK_IID, iid);
        put_time(p, event->time_ns);
        protobuf_part(&p->packet, PACKET_PERF_SAMPLE, &p->part);
        put_packet(p, SEQUENCE_NEEDS_STATE);
    } else if (g && g->writer) {
        put_event(p, event->time_ns, TYPE_INSTANT, g->writer,
                  (struct event_fields){.name = name_iid(NAME_STATE, NAME_WAKE + 1), .stack = iid});
    }
}

/* MARK: Begin and end */

static void put_clock(struct perfetto *p, unsigned clock, uint64_t ns)
{
    protobuf_number(&p->inner, CLOCK_ID, clock);
    protobuf_number(&p->inner, CLOCK_TIMESTAMP, ns);
    protobuf_number(&p->inner, CLOCK_IS_INCREMENTAL, clock == CLOCK_DELTA);
    protobuf_part(&p->part, SNAPSHOT_CLOCKS, &p->inner);
}

/* Writes the clocks of the traced machine at one time of the trace. */
static void put_wall_clocks(struct perfetto *p, const trail_clock_snapshot *clocks)
{
    put_clock(p, CLOCK_TRACE, stamp(p, clocks->trace_ns));
    put_clock(p, CLOCK_REAL, (uint64_t)clocks->wall_s * 1000000000U + clocks->wall_ns);
    put_clock(p, CLOCK_MONO, clocks->mono_ns);
    protobuf_part(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->part);
    put_packet(p, SEQUENCE_NEEDS_STATE);
}

/* Writes the clocks once, when they are known and the export has begun. */
static void put_first_clocks(struct perfetto *p)
{
    if (p->has_clocks || !p->timeline.counting || p->clocks.wall_s <= 0)
        return;
    put_wall_clocks(p, &p->clocks);
    p->has_clocks = true;
}

static void perfetto_clocks(void *writer, const trail_clock_snapshot *clocks)
{
    struct perfetto *p = writer;
    p->clocks = *clocks;
    put_first_clocks(p);
}

static void put_process(struct perfetto *p)
{
    begin_track(p, TRACK_PROCESS, 0, timeline_title(p->timeline.options), 0);
    if (!p->timeline.of_threads)
        add_process(p, 1, timeline_title(p->timeline.options));
    put_descriptor(p);
    put_interned(p, INTERNED_MAPPING_PATHS, MAPPING, timeline_title(p->timeline.options));
    protobuf_number(&p->inner, MAPPING_IID, MAPPING);
    protobuf_number(&p->inner, MAPPING_PATH_IDS, MAPPING);
    protobuf_part(&p->part, INTERNED_MAPPINGS, &p->inner);
    for (unsigned i = 0; i < TIMELINE_STATES; i++)
        put_interned(p, INTERNED_EVENT_NAMES, name_iid(NAME_STATE, i),
                     text_from(timeline_state_name(&p->timeline, (enum timeline_state)i)));
    put_interned(p, INTERNED_EVENT_NAMES, name_iid(NAME_STATE, NAME_WAKE), text_from("wake"));
    put_interned(p, INTERNED_EVENT_NAMES, name_iid(NAME_STATE, NAME_WAKE + 1),
                 text_from("CPU sample"));
    put_interned_data(p);
}

static void put_metric_track(struct perfetto *p, trail_metric metric, const char *name,
                             unsigned unit)
{
    begin_track(p, TRACK_METRICS + (uint64_t)metric, TRACK_PROCESS, text_from(name), 0);
    protobuf_number(&p->inner, COUNTER_UNIT, unit);
    protobuf_part(&p->part, DESCRIPTOR_COUNTER, &p->inner);
    put_descriptor(p);
}

/* Describes the tracks that only Go programs have. */
static void put_runtime_tracks(struct perfetto *p)
{
    put_track(p, TRACK_GOROUTINES, TRACK_PROCESS, "goroutines", ORDER_CHRONOLOGICAL);
    put_track(p, TRACK_PROCS, TRACK_PROCESS, "Ps", ORDER_EXPLICIT);
    put_track(p, TRACK_RUNTIME, TRACK_PROCESS, "runtime", 0);
    put_track(p, TRACK_GC, TRACK_RUNTIME, "GC", 0);
    put_track(p, TRACK_STOPPED, TRACK_RUNTIME, "stop-the-world", 0);
}

static void perfetto_begin(void *writer, int64_t begin_ns)
{
    static const struct {
        const char *name;
        unsigned unit;
    } metrics[TRAIL_METRICS] = {
        [TRAIL_METRIC_GOMAXPROCS] = {"GOMAXPROCS", UNIT_COUNT},
        [TRAIL_METRIC_HEAP_LIVE] = {"heap in use", UNIT_BYTES},
        [TRAIL_METRIC_HEAP_GOAL] = {"heap goal", UNIT_BYTES},
    };
    struct perfetto *p = writer;
    p->shift = p->timeline.origin_ns > 0 ? 0 : 1 - (uint64_t)p->timeline.origin_ns;
    p->last_ns = stamp(p, begin_ns);
    put_clock(p, CLOCK_TRACE, p->last_ns);
    put_clock(p, CLOCK_DELTA, p->last_ns);
    protobuf_part(&p->packet, PACKET_CLOCK_SNAPSHOT, &p->part);
    put_packet(p, SEQUENCE_STATE_CLEARED);
    protobuf_number(&p->part, DEFAULTS_CLOCK_ID, CLOCK_DELTA);
    protobuf_part(&p->packet, PACKET_DEFAULTS, &p->part);
    put_packet(p, SEQUENCE_NEEDS_STATE);
    put_process(p);
    if (p->timeline.of_threads)
        put_track(p, TRACK_GOROUTINES, TRACK_PROCESS, "threads without number",
                  ORDER_CHRONOLOGICAL);
    else
        put_runtime_tracks(p);
    put_track(p, TRACK_TASKS, TRACK_PROCESS, "tasks", ORDER_CHRONOLOGICAL);
    for (unsigned i = 0; i < TRAIL_METRICS; i++)
        if (has_metric(p, (trail_metric)i))
            put_metric_track(p, (trail_metric)i, metrics[i].name, metrics[i].unit);
    put_first_clocks(p);
}

static void perfetto_alive(void *writer, struct timeline_goroutine *g)
{
    const struct perfetto *p = writer;
    if (p->timeline.of_threads)
        describe_thread(writer, g, true);
}

static const struct timeline_ops ops = {
    .begin = perfetto_begin,
    .goroutine = perfetto_goroutine,
    .enter = perfetto_enter,
    .leave = perfetto_leave,
    .gone = perfetto_gone,
    .lane_enter = perfetto_lane_enter,
    .lane_leave = perfetto_lane_leave,
    .wake = perfetto_wake,
    .open = perfetto_open,
    .close = perfetto_close,
    .log = perfetto_log,
    .metric = perfetto_metric,
    .sample = perfetto_sample,
    .clocks = perfetto_clocks,
    .alive = perfetto_alive,
    .tail = flush_packets,
};

static void perfetto_free(struct perfetto *p)
{
    intern_free(&p->frames);
    idmap_free(&p->processes);
    protobuf_free(&p->packet);
    protobuf_free(&p->part);
    protobuf_free(&p->inner);
    protobuf_free(&p->leaf);
    free(p->texts.items);
    free(p->reasons.items);
    free(p->functions.items);
    free(p->files.items);
    free(p->stacks.items);
    compressor_close(p->compressor);
}

int trail_export_perfetto(trail_reader *reader, const trail_export_options *options,
                          const trail_sink *sink, trail_export_stats *stats, trail_error *err)
{
    struct perfetto p = {.last_track = TRACK_FIRST};
    p.timeline = (struct timeline){.reader = reader, .options = options, .ops = &ops, .writer = &p};
    p.sink = sink;
    if (options->perfetto_compressed)
        p.compressor =
            compressor_open(OUT_BUFFER_SIZE, options->perfetto_threads, write_compressed, &p);
    p.timeline.failed = options->perfetto_compressed && !p.compressor;
    int result = timeline_run(&p.timeline, &p.out,
                              &(trail_sink){.write = write_packets, .context = &p}, stats, err);
    perfetto_free(&p);
    return result;
}
