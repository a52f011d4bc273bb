/*
 * OTLP, the span format of OpenTelemetry, as lines of JSON: each line is one TracesData message with
 * up to LINE_SPANS spans, as the collector's file exporter writes it.
 *
 * A task is a span. A region is a child span of the region or task that contains it. Tasks with the
 * same root form one OTLP trace; a region without a task is an OTLP trace of its own. IDs derive from
 * the trace's identity and the task's number (or the region's index), so that exporting again gives
 * the same IDs. Logs are events of their task, or else of the region that contains them.
 *
 * Spans are written when they end; an open span has a note that collects its logs.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/json.h"
#include "timeline/timeline.h"

#define LINE_SPANS  256
#define MOST_LEVELS 64 /* of nested tasks, up to the root */

struct log_note {
    struct log_note *next;
    int64_t time_ns, goroutine;
    size_t category_size, message_size;
    char text[]; /* the category, then the message */
};

/* The writer's data for an open span. */
struct span_note {
    uint64_t trace;  /* low half of the OTLP trace ID */
    uint64_t id;     /* span ID */
    uint64_t parent; /* 0: none */
    struct log_note *logs, **end;
};

struct otlp {
    struct timeline timeline;
    struct out out;
    struct slab notes;
    uint64_t identity; /* of the trace */
    unsigned in_line;
    bool has_clock;
    uint64_t clock; /* Unix time minus trace time, in ns */
};

#define PUT(o, literal) out_bytes(&(o)->out, (literal), sizeof(literal) - 1)

/* MARK: IDs */

/* A bijective mix of the bits (splitmix64), except that 0, which is no valid ID, becomes 1. */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x ? x : 1;
}

static uint64_t task_id(const struct otlp *o, uint64_t task)
{
    return mixed(task ^ mixed(o->identity ^ 1));
}

static uint64_t region_id(const struct otlp *o, uint64_t number)
{
    return mixed(number ^ mixed(o->identity ^ 2));
}

/* The outermost known task. */
static uint64_t root_of(const struct otlp *o, uint64_t task)
{
    for (int i = 0; i < MOST_LEVELS; i++) {
        const struct timeline_span *span = idmap_find(&o->timeline.tasks, task);
        if (!span || span->parent == TRAIL_NO_TASK || span->parent == TRAIL_BACKGROUND_TASK)
            break;
        task = span->parent;
    }
    return task;
}

static bool is_task(uint64_t task)
{
    return task != TRAIL_BACKGROUND_TASK && task != TRAIL_NO_TASK;
}

/* MARK: Open spans */

static struct span_note *note_of(const struct timeline_span *span)
{
    return (struct span_note *)(uintptr_t)span->writer;
}

/* The innermost enclosing region, if it belongs to the same task, or `span` has no task. */
static const struct span_note *region_around(const struct timeline_span *span)
{
    for (const struct timeline_span *at = span->next; at; at = at->next)
        if (at->kind == TIMELINE_REGION && at->writer)
            return !is_task(span->task) || at->task == span->task ? note_of(at) : NULL;
    return NULL;
}

static void place_task(struct otlp *o, const struct timeline_span *span, struct span_note *note)
{
    bool has_parent = is_task(span->parent);
    note->id = task_id(o, span->task);
    note->parent = has_parent ? task_id(o, span->parent) : 0;
    note->trace = task_id(o, has_parent ? root_of(o, span->parent) : span->task);
}

static void place_region(struct otlp *o, const struct timeline_span *span, struct span_note *note)
{
    const struct span_note *around = region_around(span);
    note->id = region_id(o, span->number);
    if (around) {
        note->parent = around->id;
        note->trace = around->trace;
    } else if (is_task(span->task)) {
        note->parent = task_id(o, span->task);
        note->trace = task_id(o, root_of(o, span->task));
    } else {
        note->trace = note->id;
    }
}

static void otlp_open(void *writer, struct timeline_span *span)
{
    struct otlp *o = writer;
    if (span->kind == TIMELINE_RANGE)
        return;
    struct span_note *note = slab_get(&o->notes);
    if (!note) {
        o->timeline.failed = true;
        return;
    }
    note->end = &note->logs;
    if (span->kind == TIMELINE_TASK)
        place_task(o, span, note);
    else
        place_region(o, span, note);
    span->writer = (uintptr_t)note;
}

/* The open span that a log belongs to; NULL: none. */
static struct span_note *note_for_log(const struct otlp *o, const trail_event *event)
{
    const struct timeline_span *task =
        is_task(event->log.task) ? idmap_find(&o->timeline.tasks, event->log.task) : NULL;
    if (task && task->writer)
        return note_of(task);
    const struct timeline_goroutine *g = timeline_goroutine_find(&o->timeline, event->goroutine);
    for (const struct timeline_span *at = g ? g->spans : NULL; at; at = at->next)
        if (at->kind == TIMELINE_REGION && at->writer)
            return note_of(at);
    return NULL;
}

static void otlp_log(void *writer, const trail_event *event)
{
    struct otlp *o = writer;
    struct span_note *note = note_for_log(o, event);
    if (!note)
        return;
    trail_string category = trail_reader_string(o->timeline.reader, event->log.category);
    trail_string message = trail_reader_string(o->timeline.reader, event->log.message);
    struct log_note *log = malloc(sizeof *log + category.size + message.size);
    if (!log) {
        o->timeline.failed = true;
        return;
    }
    *log = (struct log_note){
        .time_ns = event->time_ns,
        .goroutine = event->goroutine,
        .category_size = category.size,
        .message_size = message.size,
    };
    if (category.size > 0)
        memcpy(log->text, category.data, category.size);
    if (message.size > 0)
        memcpy(log->text + category.size, message.data, message.size);
    *note->end = log;
    note->end = &log->next;
}

/* MARK: JSON */

static void put_time(struct otlp *o, const char *key, int64_t ns)
{
    out_str(&o->out, key);
    out_u64(&o->out, (uint64_t)ns + o->clock);
    PUT(o, "\"");
}

static void put_text_attribute(struct otlp *o, const char *key, trail_string text)
{
    out_str(&o->out, "{\"key\":\"");
    out_str(&o->out, key);
    PUT(o, "\",\"value\":{\"stringValue\":");
    (void)json_put_text(&o->out, text);
    PUT(o, "}}");
}

static void put_number_attribute(struct otlp *o, const char *key, uint64_t value)
{
    out_str(&o->out, ",{\"key\":\"");
    out_str(&o->out, key);
    PUT(o, "\",\"value\":{\"intValue\":\"");
    out_i64(&o->out, (int64_t)value);
    PUT(o, "\"}}");
}

static void put_flag_attribute(struct otlp *o, const char *key)
{
    out_str(&o->out, ",{\"key\":\"");
    out_str(&o->out, key);
    PUT(o, "\",\"value\":{\"boolValue\":true}}");
}

static void put_logs(struct otlp *o, struct span_note *note)
{
    if (!note->logs)
        return;
    PUT(o, ",\"events\":[");
    for (struct log_note *next, *log = note->logs; log; log = next) {
        next = log->next;
        put_time(o, "{\"timeUnixNano\":\"", log->time_ns);
        PUT(o, ",\"name\":");
        (void)json_put_text(&o->out,
                            (trail_string){log->text + log->category_size, log->message_size});
        PUT(o, ",\"attributes\":[");
        put_text_attribute(o, "log.category", (trail_string){log->text, log->category_size});
        put_number_attribute(o, "go.goroutine.id", (uint64_t)log->goroutine);
        out_str(&o->out, next ? "]}," : "]}");
        free(log);
    }
    PUT(o, "]");
}

static void put_attributes(struct otlp *o, const struct timeline_span *span)
{
    trail_name function = stacks_function(&o->timeline.stacks, span->stack);
    PUT(o, ",\"attributes\":[");
    const char *kind = span->kind == TIMELINE_TASK ? "task" : "region";
    put_text_attribute(o, "go.trace.kind", (trail_string){kind, strlen(kind)});
    if (span->goroutine >= 0)
        put_number_attribute(o, "go.goroutine.id", (uint64_t)span->goroutine);
    if (is_task(span->task))
        put_number_attribute(o, "go.task.id", span->task);
    if (function) {
        PUT(o, ",");
        put_text_attribute(o, "code.function.name", timeline_text(&o->timeline, function));
    }
    if (span->before)
        put_flag_attribute(o, "go.began_before_trace");
    if (span->after)
        put_flag_attribute(o, "go.goes_on_after_trace");
    PUT(o, "]");
}

static void begin_line(struct otlp *o)
{
    const char *title = o->timeline.options->title ? o->timeline.options->title : "trail";
    PUT(o, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    put_text_attribute(o, "service.name", (trail_string){title, strlen(title)});
    PUT(o, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"trail\"},\"spans\":[");
}

static void end_line(struct otlp *o)
{
    if (o->in_line > 0)
        PUT(o, "]}]}]}\n");
    o->in_line = 0;
}

static void put_ids(struct otlp *o, const struct span_note *note)
{
    PUT(o, "{\"traceId\":\"");
    out_hex(&o->out, o->identity, 16);
    out_hex(&o->out, note->trace, 16);
    PUT(o, "\",\"spanId\":\"");
    out_hex(&o->out, note->id, 16);
    if (note->parent) {
        PUT(o, "\",\"parentSpanId\":\"");
        out_hex(&o->out, note->parent, 16);
    }
    PUT(o, "\"");
}

static void otlp_close(void *writer, struct timeline_span *span, int64_t now)
{
    struct otlp *o = writer;
    struct span_note *note = note_of(span);
    if (!note)
        return;
    if (o->in_line == LINE_SPANS)
        end_line(o);
    if (o->in_line++ == 0)
        begin_line(o);
    else
        PUT(o, ",");
    put_ids(o, note);
    PUT(o, ",\"name\":");
    (void)json_put_text(&o->out, timeline_text(&o->timeline, span->name));
    PUT(o, ",\"kind\":1");
    put_time(o, ",\"startTimeUnixNano\":\"", span->begin_ns);
    put_time(o, ",\"endTimeUnixNano\":\"", now);
    put_attributes(o, span);
    put_logs(o, note);
    PUT(o, "}");
    o->timeline.stats.spans++;
    slab_put(&o->notes, note);
}

/* MARK: Begin and end */

static uint64_t hashed(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = mixed(hash ^ bytes[i]);
    return hash;
}

/* Without a wall clock, trace times are used as Unix times. */
static void otlp_begin(void *writer, int64_t begin_ns)
{
    struct otlp *o = writer;
    int64_t origin = o->timeline.origin_ns;
    const char *title = o->timeline.options->title ? o->timeline.options->title : "trail";
    (void)begin_ns;
    if (!o->has_clock)
        o->clock = origin > 0 ? 0 : 1 - (uint64_t)origin;
    o->identity = hashed(hashed(1, title, strlen(title)), &origin, sizeof origin);
}

static void otlp_clocks(void *writer, const trail_clock_snapshot *clocks)
{
    struct otlp *o = writer;
    if (o->has_clock || clocks->wall_s <= 0 || o->timeline.stats.spans > 0)
        return;
    o->has_clock = true;
    o->clock =
        (uint64_t)clocks->wall_s * 1000000000U + clocks->wall_ns - (uint64_t)clocks->trace_ns;
}

static const struct timeline_ops ops = {
    .begin = otlp_begin,
    .open = otlp_open,
    .close = otlp_close,
    .log = otlp_log,
    .clocks = otlp_clocks,
};

int trail_export_otlp(trail_reader *reader, const trail_export_options *options,
                      const trail_sink *sink, trail_export_stats *stats, trail_error *err)
{
    struct otlp o = {.notes = {.object_size = sizeof(struct span_note)}};
    o.timeline = (struct timeline){.reader = reader, .options = options, .ops = &ops, .writer = &o};
    if (stats)
        *stats = (trail_export_stats){0};
    if (!out_init(&o.out, sink->write, sink->context))
        return error_set(err, TRAIL_NO_MEMORY, "no memory for the export");
    int result = timeline_run(&o.timeline, &o.out, err);
    end_line(&o);
    if (out_finish(&o.out, err) < 0)
        result = -1;
    if (stats)
        *stats = o.timeline.stats;
    timeline_free(&o.timeline);
    slab_free(&o.notes);
    return result;
}
