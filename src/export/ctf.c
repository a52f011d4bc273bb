/*
 * The Common Trace Format 1.8, as babeltrace2 and Trace Compass read it: a stream of packets of
 * binary events, and a text that describes them (TSDL). All fields are byte-aligned and
 * little-endian; texts end with a NUL byte.
 *
 *     packet   magic u32, stream u32, first and last time u64, size in bits u64 twice, events
 *     event    id u8, time u64, fields
 *
 * `events` describes each event; the function with the same name writes its fields in that order. A
 * stack is written once, before the first event that refers to it.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/text.h"
#include "base/utf8.h"
#include "timeline/timeline.h"

#define MAGIC        0xc1fc1fc1U
#define PACKET_BYTES ((size_t)128 << 10) /* a packet of at least this size is written out */
#define HEAD_BYTES   40

enum event_id {
    EVENT_STACK,
    EVENT_GOROUTINE,
    EVENT_STATE,
    EVENT_GOROUTINE_END,
    EVENT_WAKE,
    EVENT_RANGE_BEGIN,
    EVENT_RANGE_END,
    EVENT_REGION_BEGIN,
    EVENT_REGION_END,
    EVENT_TASK_BEGIN,
    EVENT_TASK_END,
    EVENT_LOG,
    EVENT_METRIC,
    EVENT_SAMPLE,
    EVENTS_COUNT
};

struct event_description {
    const char *name, *fields; /* NULL: unused */
};

static const struct event_description events[EVENTS_COUNT] = {
    [EVENT_STACK] = {"stack", "uint32_t stack; uint32_t length; struct frame frames[length];"},
    [EVENT_GOROUTINE] = {"goroutine", "int64_t goroutine; string name;"},
    [EVENT_STATE] = {"goroutine_state",
                     "int64_t goroutine; enum state state; uint64_t since; string reason; "
                     "uint32_t stack; int64_t proc; int64_t thread;"},
    [EVENT_GOROUTINE_END] = {"goroutine_end", "int64_t goroutine;"},
    [EVENT_WAKE] = {"wake", "int64_t waker; int64_t goroutine; uint32_t stack;"},
    [EVENT_RANGE_BEGIN] = {"range_begin",
                           "int64_t goroutine; int64_t proc; string name; uint32_t stack;"},
    [EVENT_RANGE_END] = {"range_end", "int64_t goroutine; int64_t proc; string name;"},
    [EVENT_REGION_BEGIN] = {"region_begin",
                            "int64_t goroutine; uint64_t task; string name; uint32_t stack;"},
    [EVENT_REGION_END] = {"region_end", "int64_t goroutine; uint64_t task; string name;"},
    [EVENT_TASK_BEGIN] = {"task_begin",
                          "int64_t goroutine; uint64_t task; uint64_t parent; string name; "
                          "uint32_t stack;"},
    [EVENT_TASK_END] = {"task_end", "int64_t goroutine; uint64_t task; string name;"},
    [EVENT_LOG] = {"log", "int64_t goroutine; uint64_t task; string category; string message;"},
    [EVENT_METRIC] = {"metric", "string name; uint64_t value;"},
    [EVENT_SAMPLE] = {"cpu_sample",
                      "int64_t goroutine; int64_t proc; int64_t thread; uint32_t stack;"},
};

/* For a recording of threads. `thread` is the number in the trace, which exists before `tid` is
 * known. */
static const struct event_description thread_events[EVENTS_COUNT] = {
    [EVENT_STACK] = {"stack", "uint32_t stack; uint32_t length; struct frame frames[length];"},
    [EVENT_GOROUTINE] = {"thread", "int64_t thread; string process; string name;"},
    [EVENT_STATE] = {"thread_state",
                     "int64_t thread; int64_t pid; int64_t tid; enum state state; uint64_t since; "
                     "string reason; string wait_kind; string wait_object; uint32_t stack;"},
    [EVENT_GOROUTINE_END] = {"thread_end", "int64_t thread;"},
    [EVENT_WAKE] = {"wake", "int64_t waker; int64_t thread; uint32_t stack;"},
    [EVENT_REGION_BEGIN] = {"region_begin",
                            "int64_t thread; uint64_t task; string name; uint32_t stack;"},
    [EVENT_REGION_END] = {"region_end", "int64_t thread; uint64_t task; string name;"},
    [EVENT_TASK_BEGIN] = {"task_begin",
                          "int64_t thread; uint64_t task; uint64_t parent; string name; "
                          "uint32_t stack;"},
    [EVENT_TASK_END] = {"task_end", "int64_t thread; uint64_t task; string name;"},
    [EVENT_LOG] = {"log", "int64_t thread; uint64_t task; string category; string message;"},
    [EVENT_METRIC] = {"metric", "string name; uint64_t value;"},
    [EVENT_SAMPLE] = {"cpu_sample", "int64_t thread; int64_t tid; uint32_t stack;"},
};

struct ctf {
    struct timeline timeline;
    struct out out;
    uint8_t *packet; /* its events; the header is built when the packet is written */
    size_t size, capacity;
    int64_t first_ns, last_ns; /* of its events */
    uint64_t shift;            /* added to make times positive */
    uint8_t *written;          /* by trail_stack: whether it has been written */
    size_t written_capacity;
    bool has_clock;
    trail_clock_snapshot clock;
};

/* MARK: Bytes */

static uint8_t *put_number(uint8_t *to, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

static bool room(struct ctf *c, size_t size)
{
    if (GROW(c->packet, c->capacity, c->size + size))
        return true;
    c->timeline.failed = true;
    return false;
}

static void put(struct ctf *c, uint64_t value, unsigned bytes)
{
    if (!room(c, bytes))
        return;
    (void)put_number(c->packet + c->size, value, bytes);
    c->size += bytes;
}

static void put_i64(struct ctf *c, int64_t value)
{
    put(c, (uint64_t)value, 8);
}

static void put_u64(struct ctf *c, uint64_t value)
{
    put(c, value, 8);
}

static void put_u32(struct ctf *c, uint64_t value)
{
    put(c, value, 4);
}

/*
 * Writes UTF-8; invalid bytes, and NUL, which would end the text, become U+FFFD. An empty text
 * becomes "-", because babeltrace2 2.0 shows an earlier text in place of an empty one.
 */
static void put_string(struct ctf *c, trail_string text)
{
    if (text.size == 0)
        text = text_from("-");
    if (!room(c, 3 * text.size + 1))
        return;
    c->size += utf8_repair(c->packet + c->size, text, UTF8_NUL_REPLACED);
    c->packet[c->size++] = 0;
}

static void put_name(struct ctf *c, trail_name name)
{
    put_string(c, timeline_text(&c->timeline, name));
}

/* MARK: Packets */

static uint64_t stamp(const struct ctf *c, int64_t ns)
{
    return (uint64_t)ns + c->shift;
}

static void end_packet(void *writer)
{
    struct ctf *c = writer;
    uint8_t head[HEAD_BYTES], *at = head;
    uint64_t bits = 8 * (uint64_t)(c->size + HEAD_BYTES);
    if (c->size == 0)
        return;
    at = put_number(at, MAGIC, 4);
    at = put_number(at, 0, 4);
    at = put_number(at, stamp(c, c->first_ns), 8);
    at = put_number(at, stamp(c, c->last_ns), 8);
    at = put_number(at, bits, 8);
    at = put_number(at, bits, 8);
    out_bytes(&c->out, head, (size_t)(at - head));
    out_bytes(&c->out, c->packet, c->size);
    c->size = 0;
}

/* Begins an event at the current time of the trace. */
static void begin_event(struct ctf *c, enum event_id id)
{
    int64_t now = c->timeline.last_ns;
    if (c->size >= PACKET_BYTES)
        end_packet(c);
    if (c->size == 0)
        c->first_ns = now;
    c->last_ns = now;
    put(c, id, 1);
    put_u64(c, stamp(c, now));
}

/* Writes the stack if that has not been done. Must be called before the event that refers to it
 * begins. */
static void define_stack(struct ctf *c, trail_stack stack)
{
    if (!GROW_ZEROED(c->written, c->written_capacity, (size_t)stack + 1)) {
        c->timeline.failed = true;
        return;
    }
    if (stack == 0 || c->written[stack])
        return;
    c->written[stack] = 1;
    struct stack_row row = stacks_get(&c->timeline.stacks, stack);
    begin_event(c, EVENT_STACK);
    put_u32(c, stack);
    put_u32(c, row.count);
    for (size_t i = 0; i < row.count; i++) {
        put_u64(c, row.places[i].pc);
        put_name(c, row.places[i].function);
        put_name(c, row.places[i].file);
        put_u64(c, row.places[i].line);
    }
}

/* MARK: Events */

static void ctf_begin(void *writer, int64_t begin_ns)
{
    struct ctf *c = writer;
    int64_t origin = c->timeline.origin_ns;
    (void)begin_ns;
    c->shift = origin > 0 ? 0 : 1 - (uint64_t)origin;
}

static void ctf_goroutine(void *writer, struct timeline_goroutine *g)
{
    struct ctf *c = writer;
    struct timeline_thread thread;
    begin_event(c, EVENT_GOROUTINE);
    put_i64(c, g->id);
    if (!c->timeline.of_threads) {
        put_name(c, g->name);
        return;
    }
    (void)timeline_thread_of(&c->timeline, g, &thread);
    put_string(c, thread.process);
    put_string(c, thread.name);
}

static void put_thread_state(struct ctf *c, const struct timeline_goroutine *g)
{
    struct timeline_thread thread;
    const struct wait_facts *facts = wait_facts_of(&c->timeline.names, g->reason);
    (void)timeline_thread_of(&c->timeline, g, &thread);
    put_i64(c, g->id);
    put_i64(c, thread.pid);
    put_i64(c, thread.tid);
    put(c, timeline_state_of(g), 1);
    put_u64(c, stamp(c, g->since_ns));
    put_name(c, timeline_state_of(g) == TIMELINE_WAITING ? g->reason : 0);
    put_name(c, facts ? facts->kind_name : 0);
    put_name(c, facts ? facts->object : 0);
    put_u32(c, g->stack);
}

static void ctf_enter(void *writer, struct timeline_goroutine *g)
{
    struct ctf *c = writer;
    define_stack(c, g->stack);
    begin_event(c, EVENT_STATE);
    if (c->timeline.of_threads) {
        put_thread_state(c, g);
        return;
    }
    put_i64(c, g->id);
    put(c, timeline_state_of(g), 1);
    put_u64(c, stamp(c, g->since_ns));
    put_name(c, timeline_state_of(g) == TIMELINE_WAITING ? g->reason : 0);
    put_u32(c, g->stack);
    put_i64(c, g->on_proc);
    put_i64(c, g->on_thread);
}

static void ctf_gone(void *writer, struct timeline_goroutine *g, int64_t now)
{
    (void)now;
    begin_event(writer, EVENT_GOROUTINE_END);
    put_i64(writer, g->id);
}

static void ctf_wake(void *writer, struct timeline_goroutine *waker, struct timeline_goroutine *g,
                     int64_t now, trail_stack stack)
{
    (void)now;
    define_stack(writer, stack);
    begin_event(writer, EVENT_WAKE);
    put_i64(writer, waker->id);
    put_i64(writer, g->id);
    put_u32(writer, stack);
}

static bool has_event(const struct ctf *c, enum event_id id)
{
    return !c->timeline.of_threads || thread_events[id].name;
}

/* Writes the fields of the three kinds of spans, up to the name. */
static void put_span(struct ctf *c, const struct timeline_span *span, bool begins)
{
    put_i64(c, span->goroutine);
    if (span->kind == TIMELINE_RANGE)
        put_i64(c, span->proc);
    else
        put_u64(c, span->task);
    if (span->kind == TIMELINE_TASK && begins)
        put_u64(c, span->parent);
    put_name(c, span->name);
}

static void ctf_open(void *writer, struct timeline_span *span)
{
    static const enum event_id ids[] = {EVENT_RANGE_BEGIN, EVENT_REGION_BEGIN, EVENT_TASK_BEGIN};
    if (!has_event(writer, ids[span->kind]))
        return;
    define_stack(writer, span->stack);
    begin_event(writer, ids[span->kind]);
    put_span(writer, span, true);
    put_u32(writer, span->stack);
}

static void ctf_close(void *writer, struct timeline_span *span, int64_t now)
{
    static const enum event_id ids[] = {EVENT_RANGE_END, EVENT_REGION_END, EVENT_TASK_END};
    (void)now;
    if (!has_event(writer, ids[span->kind]))
        return;
    begin_event(writer, ids[span->kind]);
    put_span(writer, span, false);
}

static void ctf_log(void *writer, const trail_event *event)
{
    struct ctf *c = writer;
    begin_event(c, EVENT_LOG);
    put_i64(c, event->goroutine);
    put_u64(c, event->log.task);
    put_string(c, trail_reader_string(c->timeline.reader, event->log.category));
    put_string(c, trail_reader_string(c->timeline.reader, event->log.message));
}

static void ctf_metric(void *writer, const trail_event *event)
{
    const char *name = trail_metric_name(event->metric.metric);
    const struct ctf *c = writer;
    if (c->timeline.of_threads && event->metric.metric != TRAIL_METRIC_HEAP_LIVE)
        return; /* threads have no Ps and no collector */
    begin_event(writer, EVENT_METRIC);
    put_string(writer, text_from(name));
    put_u64(writer, event->metric.value);
}

static void ctf_sample(void *writer, const trail_event *event, trail_stack stack)
{
    const struct ctf *c = writer;
    define_stack(writer, stack);
    begin_event(writer, EVENT_SAMPLE);
    put_i64(writer, event->goroutine);
    if (!c->timeline.of_threads)
        put_i64(writer, event->proc);
    put_i64(writer, event->thread);
    put_u32(writer, stack);
}

static void ctf_clocks(void *writer, const trail_clock_snapshot *clocks)
{
    struct ctf *c = writer;
    if (c->has_clock || clocks->wall_s <= 0)
        return;
    c->has_clock = true;
    c->clock = *clocks;
}

/* MARK: The description */

static void put_types(struct out *out)
{
    static const struct {
        const char *name;
        unsigned size;
        bool is_signed;
    } types[] = {
        {"uint8_t", 8, false},
        {"uint32_t", 32, false},
        {"uint64_t", 64, false},
        {"int64_t", 64, true},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        out_format(out, "typealias integer { size = %u; align = 8; signed = %s; } := %s;\n",
                   types[i].size, types[i].is_signed ? "true" : "false", types[i].name);
}

/* Writes seconds and nanoseconds since 1970 at time 0 of the stream. */
static void put_clock(const struct ctf *c, struct out *out)
{
    int64_t s = 0, ns = 0;
    if (c->has_clock) {
        /* About 1.7e18 ns, which fits. */
        int64_t zero = (int64_t)((uint64_t)c->clock.wall_s * 1000000000U + c->clock.wall_ns -
                                 stamp(c, c->clock.trace_ns));
        s = zero / 1000000000;
        ns = zero % 1000000000;
        if (ns < 0) {
            s--;
            ns += 1000000000;
        }
    }
    out_format(out,
               "clock {\n\tname = trace;\n\tdescription = \"the clock of the trace\";\n"
               "\tfreq = 1000000000;\n\toffset_s = %" PRId64 ";\n\toffset = %" PRId64 ";\n};\n",
               s, ns);
    out_str(out, "typealias integer { size = 64; align = 8; signed = false; "
                 "map = clock.trace.value; } := time_t;\n");
}

static const struct event_description *description_of(const struct ctf *c, unsigned event)
{
    return c->timeline.of_threads ? &thread_events[event] : &events[event];
}

static void put_description(const struct ctf *c, struct out *out)
{
    out_str(out, "/* CTF 1.8 */\n");
    put_types(out);
    out_str(out, "trace {\n\tmajor = 1;\n\tminor = 8;\n\tbyte_order = le;\n"
                 "\tpacket.header := struct { uint32_t magic; uint32_t stream_id; };\n};\n"
                 "env {\n\ttracer_name = \"trail\";\n};\n");
    put_clock(c, out);
    out_str(out, "stream {\n\tid = 0;\n"
                 "\tevent.header := struct { uint8_t id; time_t timestamp; };\n"
                 "\tpacket.context := struct { time_t timestamp_begin; time_t timestamp_end; "
                 "uint64_t content_size; uint64_t packet_size; };\n};\n"
                 "struct frame { uint64_t pc; string function; string file; uint64_t line; };\n"
                 "enum state : uint8_t {\n");
    for (unsigned i = 0; i < TIMELINE_STATES; i++)
        out_format(out, "\t\"%s\" = %u,\n",
                   timeline_state_name(&c->timeline, (enum timeline_state)i), i);
    out_str(out, "};\n");
    for (unsigned i = 0; i < EVENTS_COUNT; i++)
        if (description_of(c, i)->name)
            out_format(out,
                       "event {\n\tname = \"%s\";\n\tid = %u;\n\tstream_id = 0;\n"
                       "\tfields := struct { %s };\n};\n",
                       description_of(c, i)->name, i, description_of(c, i)->fields);
}

static const struct timeline_ops ops = {
    .begin = ctf_begin,
    .goroutine = ctf_goroutine,
    .enter = ctf_enter,
    .gone = ctf_gone,
    .wake = ctf_wake,
    .open = ctf_open,
    .close = ctf_close,
    .log = ctf_log,
    .metric = ctf_metric,
    .sample = ctf_sample,
    .clocks = ctf_clocks,
    .tail = end_packet,
};

static int write_description(const struct ctf *c, const trail_sink *sink, trail_error *err)
{
    struct out out;
    if (!out_init(&out, sink->write, sink->context))
        return error_no_memory(err);
    put_description(c, &out);
    return out_finish(&out, err);
}

int trail_export_ctf(trail_reader *reader, const trail_export_options *options,
                     const trail_sink *stream, const trail_sink *metadata,
                     trail_export_stats *stats, trail_error *err)
{
    struct ctf c = {0};
    c.timeline = (struct timeline){.reader = reader, .options = options, .ops = &ops, .writer = &c};
    int result = timeline_run(&c.timeline, &c.out, stream, stats, err);
    if (!c.out.failed && write_description(&c, metadata, err) < 0)
        result = -1;
    free(c.packet);
    free(c.written);
    return result;
}
