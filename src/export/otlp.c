/*
 * OTLP, the span format of OpenTelemetry: messages TracesData with up to MESSAGE_SPANS spans, as
 * protocol buffers or as lines of JSON, as the collector's file exporter writes them
 * (otlp_message.h).
 *
 * A task is a span. A region is a child span of the region or task that contains it. Tasks with the
 * same root form one OTLP trace; a region without a task is an OTLP trace of its own. IDs derive
 * from the trace's identity and the task's number (or the region's index), so that exporting again
 * gives the same IDs. Logs are events of their task, or else of the region that contains them;
 * waits are events, too (otlp_waits.h). A log of the category "traceparent" makes its task or
 * region a part of the trace that the program itself sends to a collector.
 *
 * Spans are written when they end; an open span has a note that collects its logs.
 */
#include <stdlib.h>

#include "analyze/wait_names.h"
#include "base/text.h"
#include "export/otlp_clock.h"
#include "export/otlp_message.h"
#include "export/otlp_waits.h"

#define MESSAGE_SPANS 256
#define MOST_LEVELS   64 /* of nested tasks, up to the root */

struct log_note {
    struct log_note *next;
    int64_t time_ns, goroutine;
    size_t category_size, message_size;
    char text[]; /* the category, then the message */
};

/* The OTLP trace of a span. */
struct trace_id {
    uint64_t high, low;
};

/* The writer's data for an open span. */
struct span_note {
    const struct timeline_span *span;
    struct trace_id trace;
    uint64_t id;     /* span ID */
    uint64_t parent; /* 0: none */
    struct log_note *logs, **end;
    struct otlp_times times;
    int64_t before[TIMELINE_STATES]; /* the times of its goroutine when it began */
    struct open_goroutine *owner; /* the goroutine whose times count for it; NULL: none, or ended */
    /* Of a task: the others that the owner began and that are still open. */
    struct span_note *previous, *next;
};

/* The writer's data for a live goroutine. */
struct open_goroutine {
    int64_t ns[TIMELINE_STATES]; /* in each state, up to counted_ns */
    int64_t counted_ns;
    struct span_note *tasks; /* that it began, the latest first */
    struct otlp_wait wait;   /* ended with the current transition; `what` 0: none */
};

struct otlp {
    struct timeline timeline;
    struct out out;
    struct slab notes, goroutines;
    uint64_t identity; /* of the trace */
    struct otlp_message message;
    unsigned in_message; /* spans */
    struct otlp_clock clock;
};

/* Span.SpanKind */
enum { KIND_INTERNAL = 1 };

/* MARK: IDs */

/* Mixes the bits bijectively (splitmix64), except that 0, which is not a valid ID, becomes 1. */
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

/* Returns the outermost known task. */
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

/* Returns the innermost enclosing region, if it belongs to the same task or `span` has no task. */
static const struct span_note *region_around(const struct timeline_span *span)
{
    for (const struct timeline_span *at = span->next; at; at = at->next)
        if (at->kind == TIMELINE_REGION && at->writer)
            return !is_task(span->task) || at->task == span->task ? note_of(at) : NULL;
    return NULL;
}

/* Returns the trace of a task: while its span is open, the span's. */
static struct trace_id trace_of_task(const struct otlp *o, uint64_t task)
{
    const struct timeline_span *span = idmap_find(&o->timeline.tasks, task);
    if (span && span->writer)
        return note_of(span)->trace;
    return (struct trace_id){o->identity, task_id(o, root_of(o, task))};
}

static void place_task(struct otlp *o, const struct timeline_span *span, struct span_note *note)
{
    note->id = task_id(o, span->task);
    note->trace = (struct trace_id){o->identity, note->id};
    if (is_task(span->parent)) {
        note->parent = task_id(o, span->parent);
        note->trace = trace_of_task(o, span->parent);
    }
}

/* From now on no times of its goroutine count for the span. */
static void disown(struct span_note *note)
{
    struct open_goroutine *own = note->owner;
    if (!own)
        return;
    for (size_t i = 0; i < TIMELINE_STATES; i++)
        note->times.ns[i] += own->ns[i] - note->before[i];
    if (note->next)
        note->next->previous = note->previous;
    if (note->previous)
        note->previous->next = note->next;
    else if (own->tasks == note)
        own->tasks = note->next;
    note->owner = NULL;
}

/* A region in a goroutine other than the one that began its task takes over the times from the
 * task. */
static void take_times(struct otlp *o, const struct timeline_span *region)
{
    struct timeline_span *task =
        is_task(region->task) ? idmap_find(&o->timeline.tasks, region->task) : NULL;
    if (!task || !task->writer || task->goroutine == region->goroutine)
        return;
    disown(note_of(task));
    note_of(task)->times = (struct otlp_times){0};
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
        note->trace = trace_of_task(o, span->task);
    } else {
        note->trace = (struct trace_id){o->identity, note->id};
    }
}

/* Returns the writer's data for a goroutine; NULL if out of memory. */
static struct open_goroutine *open_goroutine(struct otlp *o, struct timeline_goroutine *g)
{
    struct open_goroutine *own = (struct open_goroutine *)(uintptr_t)g->writer;
    if (own)
        return own;
    own = slab_get(&o->goroutines);
    o->timeline.failed |= !own;
    g->writer = (uintptr_t)own;
    return own;
}

/* Counts the goroutine's present state up to `now`. */
static void count_state(struct open_goroutine *own, const struct timeline_goroutine *g, int64_t now)
{
    int64_t since = g->since_ns > own->counted_ns ? g->since_ns : own->counted_ns;
    if (g->state <= TRAIL_GO_NOT_EXIST || now <= since)
        return;
    own->ns[timeline_state_of(g)] += now - since;
    own->counted_ns = now;
}

/* From now on the times of the goroutine that began the span count for it. */
static void own_span(struct otlp *o, const struct timeline_span *span, struct span_note *note)
{
    struct timeline_goroutine *g = timeline_goroutine_find(&o->timeline, span->goroutine);
    struct open_goroutine *own = g ? open_goroutine(o, g) : NULL;
    if (!own)
        return;
    count_state(own, g, span->begin_ns);
    note->owner = own;
    memcpy(note->before, own->ns, sizeof note->before);
    if (span->kind != TIMELINE_TASK)
        return;
    note->next = own->tasks;
    if (note->next)
        note->next->previous = note;
    own->tasks = note;
}

static void otlp_open_span(void *writer, struct timeline_span *span)
{
    struct otlp *o = writer;
    if (span->kind == TIMELINE_RANGE)
        return;
    struct span_note *note = slab_get(&o->notes);
    if (!note) {
        o->timeline.failed = true;
        return;
    }
    note->span = span;
    note->end = &note->logs;
    if (span->kind == TIMELINE_TASK) {
        place_task(o, span, note);
    } else {
        place_region(o, span, note);
        take_times(o, span);
    }
    if (span->kind == TIMELINE_REGION || !span->before)
        own_span(o, span, note);
    span->writer = (uintptr_t)note;
}

/* MARK: Goroutines and threads */

static bool is_of_threads(const struct otlp *o)
{
    return o->timeline.of_threads;
}

/* Returns a goroutine's number, or a thread's system ID; TRAIL_NONE if that is not known. */
static int64_t number_of(const struct otlp *o, int64_t goroutine)
{
    const struct timeline_goroutine *g = timeline_goroutine_find(&o->timeline, goroutine);
    if (!is_of_threads(o))
        return goroutine;
    return g ? g->tid : TRAIL_NONE;
}

/* MARK: Times and waits */

/* Returns the innermost span that is open on the goroutine; NULL: none. */
static struct span_note *innermost(const struct timeline_goroutine *g)
{
    const struct open_goroutine *own = (const struct open_goroutine *)(uintptr_t)g->writer;
    for (const struct timeline_span *at = g->spans; at; at = at->next)
        if (at->writer && at->kind != TIMELINE_RANGE)
            return note_of(at);
    return own ? own->tasks : NULL;
}

/* Keeps the part of a wait that is within the span; NULL: no span. */
static void keep_wait(struct span_note *note, struct otlp_wait wait, int64_t end)
{
    if (note && wait.begin_ns < note->span->begin_ns)
        wait.begin_ns = note->span->begin_ns;
    wait.ns = end - wait.begin_ns;
    if (note && wait.ns > 0)
        otlp_times_keep(&note->times, &wait);
}

static void otlp_leave(void *writer, struct timeline_goroutine *g, int64_t now, trail_stack stack)
{
    struct open_goroutine *own = (struct open_goroutine *)(uintptr_t)g->writer;
    (void)writer, (void)stack;
    if (!own)
        return;
    count_state(own, g, now);
    /* A wait in a system call continues when its P is released. */
    if (otlp_is_wait(g) && own->wait.what == 0)
        own->wait = (struct otlp_wait){
            .begin_ns = g->since_ns, .waker = TRAIL_NONE, .what = g->reason, .stack = g->stack};
}

static void otlp_enter(void *writer, struct timeline_goroutine *g)
{
    struct open_goroutine *own = (struct open_goroutine *)(uintptr_t)g->writer;
    if (!own || own->wait.what == 0 || timeline_state_of(g) == TIMELINE_BLOCKED)
        return;
    if (timeline_state_of(g) == TIMELINE_RUNNABLE)
        own->wait.waker = number_of(writer, g->waker);
    keep_wait(innermost(g), own->wait, g->since_ns);
    own->wait.what = 0;
}

static void otlp_gone(void *writer, struct timeline_goroutine *g, int64_t now)
{
    struct otlp *o = writer;
    struct open_goroutine *own = (struct open_goroutine *)(uintptr_t)g->writer;
    (void)now;
    if (!own)
        return;
    while (own->tasks)
        disown(own->tasks);
    slab_put(&o->goroutines, own);
    g->writer = 0;
}

/* Adds the goroutine's state at the end of the span, and a wait without an end. */
static void end_times(struct otlp *o, struct span_note *note, int64_t now)
{
    const struct timeline_span *span = note->span;
    const struct timeline_goroutine *g =
        note->owner ? timeline_goroutine_find(&o->timeline, span->goroutine) : NULL;
    if (g && g->state > TRAIL_GO_NOT_EXIST) {
        count_state(note->owner, g, now);
        if (otlp_is_wait(g) && g->reason != 0 && span->after)
            keep_wait(note,
                      (struct otlp_wait){.begin_ns = g->since_ns,
                                         .waker = TRAIL_NONE,
                                         .what = g->reason,
                                         .stack = g->stack},
                      now);
    }
    disown(note);
}

/* MARK: Logs */

/* Returns the open span that a log belongs to; NULL: none. */
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

/* Parses `digits` hexadecimal digits. Returns false if they are not digits, or all 0. */
static bool parse_hex(const char *at, size_t digits, uint64_t *value)
{
    static const char letters[] = "0123456789abcdef";
    *value = 0;
    for (size_t i = 0; i < digits; i++) {
        const char *letter = at[i] ? strchr(letters, at[i]) : NULL;
        if (!letter)
            return false;
        *value = *value << 4 | (uint64_t)(letter - letters);
    }
    return true;
}

/*
 * Takes a log "traceparent", in the form of the header with that name (W3C, Trace Context, 3.2):
 * version, trace ID, the parent's span ID and flags. Returns false if it is another log.
 */
static bool take_parent(struct span_note *note, trail_string category, trail_string message)
{
    struct trace_id trace;
    uint64_t version, parent;
    const char *at = message.data;
    if (!text_is(category, "traceparent") || message.size < 55 || at[2] != '-' || at[35] != '-' ||
        at[52] != '-' || !parse_hex(at, 2, &version) || version == 0xff ||
        !parse_hex(at + 3, 16, &trace.high) || !parse_hex(at + 19, 16, &trace.low) ||
        !parse_hex(at + 36, 16, &parent) || (trace.high | trace.low) == 0 || parent == 0)
        return false;
    note->trace = trace;
    note->parent = parent;
    return true;
}

static void otlp_log(void *writer, const trail_event *event)
{
    struct otlp *o = writer;
    struct span_note *note = note_for_log(o, event);
    if (!note)
        return;
    trail_string category = trail_reader_string(o->timeline.reader, event->log.category);
    trail_string message = trail_reader_string(o->timeline.reader, event->log.message);
    if (take_parent(note, category, message) || log_is_recorders(category, message))
        return;
    struct log_note *log = malloc(sizeof *log + category.size + message.size);
    if (!log) {
        o->timeline.failed = true;
        return;
    }
    *log = (struct log_note){
        .time_ns = event->time_ns,
        .goroutine = number_of(o, event->goroutine),
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

/* MARK: Messages */

static void put_time(struct otlp *o, enum otlp_field field, int64_t ns)
{
    otlp_number(&o->message, field, otlp_clock_time(&o->clock, ns));
}

static void open_event(struct otlp *o, int64_t time_ns, trail_string name)
{
    otlp_open(&o->message, OTLP_EVENTS);
    put_time(o, OTLP_EVENT_TIME, time_ns);
    otlp_text(&o->message, OTLP_EVENT_NAME, name);
}

static void put_log(struct otlp *o, const struct log_note *log)
{
    open_event(o, log->time_ns, (trail_string){log->text + log->category_size, log->message_size});
    otlp_attribute_text(&o->message, OTLP_EVENT_ATTRIBUTES, "log.category",
                        (trail_string){log->text, log->category_size});
    otlp_attribute_number(&o->message, OTLP_EVENT_ATTRIBUTES,
                          is_of_threads(o) ? "thread.id" : "go.goroutine.id", log->goroutine);
    otlp_close(&o->message);
}

static void put_wait(struct otlp *o, const struct otlp_wait *wait)
{
    trail_name function = stacks_function(&o->timeline.stacks, wait->stack);
    open_event(o, wait->begin_ns, text_from("wait"));
    const struct wait_facts *facts = wait_facts_of(&o->timeline.names, wait->what);
    otlp_attribute_text(&o->message, OTLP_EVENT_ATTRIBUTES, "wait.for",
                        timeline_text(&o->timeline, wait->what));
    if (facts)
        otlp_attribute_text(&o->message, OTLP_EVENT_ATTRIBUTES, "wait.kind",
                            timeline_text(&o->timeline, facts->kind_name));
    if (facts && facts->object)
        otlp_attribute_text(&o->message, OTLP_EVENT_ATTRIBUTES, "wait.object",
                            timeline_text(&o->timeline, facts->object));
    otlp_attribute_number(&o->message, OTLP_EVENT_ATTRIBUTES, "wait.ns", wait->ns);
    if (function)
        otlp_attribute_text(&o->message, OTLP_EVENT_ATTRIBUTES, "code.function.name",
                            timeline_text(&o->timeline, function));
    if (wait->waker >= 0)
        otlp_attribute_number(&o->message, OTLP_EVENT_ATTRIBUTES, "wait.waker.id", wait->waker);
    otlp_close(&o->message);
}

/* Writes logs and waits in order of time. */
static void put_events(struct otlp *o, struct span_note *note)
{
    struct otlp_times *times = &note->times;
    size_t i = 0;
    otlp_times_sort(times);
    for (struct log_note *next, *log = note->logs; log || i < times->count;) {
        if (!log || (i < times->count && times->waits[i].begin_ns <= log->time_ns)) {
            put_wait(o, &times->waits[i++]);
            continue;
        }
        put_log(o, log);
        next = log->next;
        free(log);
        log = next;
    }
    if (times->dropped > 0)
        otlp_number(&o->message, OTLP_DROPPED_EVENTS,
                    times->dropped < UINT32_MAX ? times->dropped : UINT32_MAX);
}

/* Writes how long the span's goroutine was in each state. */
static void put_times(struct otlp *o, const struct otlp_times *times)
{
    const int64_t *ns = times->ns;
    const struct {
        const char *go, *threads;
        int64_t ns;
    } sums[] = {
        {"go.running.ns", "thread.running.ns", ns[TIMELINE_RUNNING]},
        {"go.ready.ns", "thread.ready.ns", ns[TIMELINE_RUNNABLE]},
        {"go.waiting.ns", "thread.waiting.ns", ns[TIMELINE_WAITING]},
        {"go.syscall.ns", "thread.syscall.ns", ns[TIMELINE_SYSCALL] + ns[TIMELINE_BLOCKED]},
    };
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        if (sums[i].ns > 0)
            otlp_attribute_number(&o->message, OTLP_SPAN_ATTRIBUTES,
                                  is_of_threads(o) ? sums[i].threads : sums[i].go, sums[i].ns);
}

/* Writes the goroutine, or the thread as named by OpenTelemetry's conventions. */
static void put_who(struct otlp *o, int64_t goroutine)
{
    const enum otlp_field list = OTLP_SPAN_ATTRIBUTES;
    const struct timeline_goroutine *g = timeline_goroutine_find(&o->timeline, goroutine);
    struct timeline_thread thread;
    if (!is_of_threads(o) && goroutine >= 0)
        otlp_attribute_number(&o->message, list, "go.goroutine.id", goroutine);
    if (!is_of_threads(o) || !g)
        return;
    (void)timeline_thread_of(&o->timeline, g, &thread);
    if (thread.tid > 0)
        otlp_attribute_number(&o->message, list, "thread.id", thread.tid);
    if (thread.name.size > 0)
        otlp_attribute_text(&o->message, list, "thread.name", thread.name);
    if (thread.pid > 0)
        otlp_attribute_number(&o->message, list, "process.pid", thread.pid);
}

static void put_attributes(struct otlp *o, const struct timeline_span *span,
                           const struct otlp_times *times)
{
    const enum otlp_field list = OTLP_SPAN_ATTRIBUTES;
    trail_name function = stacks_function(&o->timeline.stacks, span->stack);
    bool threads = is_of_threads(o);
    otlp_attribute_text(&o->message, list, threads ? "trail.kind" : "go.trace.kind",
                        text_from(span->kind == TIMELINE_TASK ? "task" : "region"));
    put_who(o, span->goroutine);
    if (is_task(span->task))
        otlp_attribute_number(&o->message, list, threads ? "trail.task.id" : "go.task.id",
                              (int64_t)span->task);
    if (function)
        otlp_attribute_text(&o->message, list, "code.function.name",
                            timeline_text(&o->timeline, function));
    if (span->before)
        otlp_attribute_true(&o->message, list,
                            threads ? "trail.began_before_trace" : "go.began_before_trace");
    if (span->after)
        otlp_attribute_true(&o->message, list,
                            threads ? "trail.goes_on_after_trace" : "go.goes_on_after_trace");
    put_times(o, times);
}

/* Begins a message of many spans. */
static void begin_message(struct otlp *o)
{
    otlp_open(&o->message, OTLP_RESOURCE_SPANS);
    otlp_resource(&o->message, o->timeline.options);
    otlp_open_scope(&o->message, OTLP_SCOPE_SPANS);
}

static void end_message(void *writer)
{
    struct otlp *o = writer;
    if (o->in_message > 0 && !otlp_write(&o->message, &o->out))
        o->timeline.failed = true;
    o->in_message = 0;
}

static void put_span(struct otlp *o, const struct timeline_span *span, struct span_note *note,
                     int64_t now)
{
    otlp_open(&o->message, OTLP_SPANS);
    otlp_trace_id(&o->message, OTLP_TRACE_ID, note->trace.high, note->trace.low);
    otlp_span_id(&o->message, OTLP_SPAN_ID, note->id);
    if (note->parent)
        otlp_span_id(&o->message, OTLP_PARENT_SPAN_ID, note->parent);
    otlp_text(&o->message, OTLP_SPAN_NAME, timeline_text(&o->timeline, span->name));
    otlp_number(&o->message, OTLP_KIND, KIND_INTERNAL);
    put_time(o, OTLP_START_TIME, span->begin_ns);
    put_time(o, OTLP_END_TIME, now);
    put_attributes(o, span, &note->times);
    put_events(o, note);
    otlp_close(&o->message);
}

static void otlp_close_span(void *writer, struct timeline_span *span, int64_t now)
{
    struct otlp *o = writer;
    struct span_note *note = note_of(span);
    if (!note)
        return;
    if (o->in_message == MESSAGE_SPANS)
        end_message(o);
    if (o->in_message++ == 0)
        begin_message(o);
    end_times(o, note, now);
    put_span(o, span, note, now);
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

static void otlp_head(void *writer)
{
    struct otlp *o = writer;
    o->timeline.failed |= !otlp_message_init(&o->message, o->timeline.options->otlp_protobuf);
}

static void otlp_begin(void *writer, int64_t begin_ns)
{
    struct otlp *o = writer;
    int64_t origin = o->timeline.origin_ns;
    trail_string title = timeline_title(o->timeline.options);
    (void)begin_ns;
    otlp_clock_begin(&o->clock, origin);
    o->identity = hashed(hashed(1, title.data, title.size), &origin, sizeof origin);
}

static void otlp_clocks(void *writer, const trail_clock_snapshot *clocks)
{
    struct otlp *o = writer;
    if (o->timeline.stats.spans == 0)
        otlp_clock_take(&o->clock, clocks);
}

static const struct timeline_ops ops = {
    .head = otlp_head,
    .begin = otlp_begin,
    .enter = otlp_enter,
    .leave = otlp_leave,
    .gone = otlp_gone,
    .open = otlp_open_span,
    .close = otlp_close_span,
    .log = otlp_log,
    .clocks = otlp_clocks,
    .tail = end_message,
};

int trail_export_otlp(trail_reader *reader, const trail_export_options *options,
                      const trail_sink *sink, trail_export_stats *stats, trail_error *err)
{
    struct otlp o = {
        .notes = {.object_size = sizeof(struct span_note)},
        .goroutines = {.object_size = sizeof(struct open_goroutine)},
    };
    o.timeline = (struct timeline){.reader = reader, .options = options, .ops = &ops, .writer = &o};
    int result = timeline_run(&o.timeline, &o.out, sink, stats, err);
    otlp_message_free(&o.message);
    slab_free(&o.notes);
    slab_free(&o.goroutines);
    return result;
}
