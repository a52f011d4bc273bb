/*
 * Chrome's trace event format: one JSON object with an array of events. Goroutines, Ps, threads and
 * the runtime are four "processes"; each goroutine is a "thread" of the first. A recording of
 * threads shows its processes and threads, with the numbers that the system gave them.
 *
 *     ph X      a span: ts, dur (us); sf and esf are the stacks at its start and end
 *     ph b, e   regions, tasks and ranges, which do not nest with the goroutine's states
 *     ph s, f   wake-ups: from the waker's current span to the span that begins then
 *     ph C, i, P, M   counters, logs, samples, names
 *
 * Stacks form a tree of frames (stackFrames), written at the end; each node refers to its caller.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/goroutines.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/text.h"
#include "timeline/timeline.h"

enum { GOROUTINES = 1, PROCS, THREADS, RUNTIME };
enum { LANE_GC = 1, LANE_STOPPED };

struct frame_node {
    uint64_t parent; /* 0: outermost */
    uint64_t line;
    trail_name function, file;
};

struct chrome {
    struct timeline timeline;
    struct out out;
    bool comma;
    uint64_t flows;
    struct intern frames;     /* struct frame_node */
    struct frame_node *nodes; /* by number - 1 */
    size_t node_count, node_capacity;
    uint32_t *by_stack; /* by trail_stack: node of the innermost frame; 0: not looked up */
    size_t stack_capacity;
    struct slab threads;    /* for of_threads */
    struct idmap processes; /* for of_threads: the described ones, by PID */
};

/* A goroutine's or thread's time in a state. */
struct state_span {
    int64_t begin_ns, end_ns;
    enum timeline_state state;
    trail_name reason; /* 0: none */
    trail_stack stack, end_stack;
};

/* A thread of a recording; the writer's data for a goroutine. */
struct chrome_thread {
    bool settled; /* its numbers are known, or will not be */
    int64_t pid, tid;
    struct state_span *spans; /* until it is settled */
    size_t count, capacity;
};

#define PUT(c, literal) out_bytes(&(c)->out, (literal), sizeof(literal) - 1)

/* MARK: Parts of an event */

/*
 * Times are integral numbers of 1/4096 us, at or at most 0.25 ns after the nanosecond that they
 * stand for. Readers add ts and dur as doubles, and some subtract the first ts of a thread from
 * both. Decimal fractions do not survive this: an end would lie after the beginning of the next
 * span, which would then be taken for nested. With binary fractions all of these numbers are exact
 * (up to 2^53 / 4096 us, 25 days), so an end equals the next span's start, and both rounding and
 * truncating restore the nanosecond.
 */
typedef __int128 ticks;
#define TICKS_PER_US 4096
#define TICK_DIGITS  12 /* 1 / 4096 as decimal fraction: 0.000244140625 */
#define TICK_VALUE   UINT64_C(244140625)

static ticks ticks_of(int64_t ns)
{
    int64_t us = ns / 1000, rest = ns % 1000;
    return (ticks)us * TICKS_PER_US + (rest * TICKS_PER_US + (rest > 0 ? 999 : 0)) / 1000;
}

static void put_ticks(struct chrome *c, ticks time)
{
    if (time < 0)
        out_char(&c->out, '-');
    ticks size = time < 0 ? -time : time;
    uint64_t digits = (uint64_t)(size % TICKS_PER_US) * TICK_VALUE;
    unsigned count = TICK_DIGITS;
    out_u64(&c->out, (uint64_t)(size / TICKS_PER_US));
    if (digits == 0)
        return;
    for (; digits % 10 == 0; digits /= 10)
        count--;
    out_char(&c->out, '.');
    out_u64_padded(&c->out, digits, count);
}

/* Begins an event with its place and time. */
static void put_event(struct chrome *c, const char *phase, int64_t process, int64_t thread,
                      int64_t ns)
{
    if (c->comma)
        PUT(c, ",\n");
    c->comma = true;
    PUT(c, "{\"ph\":\"");
    out_str(&c->out, phase);
    PUT(c, "\",\"pid\":");
    out_i64(&c->out, process);
    PUT(c, ",\"tid\":");
    out_i64(&c->out, thread);
    PUT(c, ",\"ts\":");
    put_ticks(c, ticks_of(ns_between(c->timeline.origin_ns, ns)));
}

static inline void put_text(struct chrome *c, const char *key, trail_string text)
{
    out_str(&c->out, key);
    (void)json_put_text(&c->out, text);
}

static void put_name(struct chrome *c, trail_name name)
{
    put_text(c, ",\"name\":", timeline_text(&c->timeline, name));
}

static void put_duration(struct chrome *c, int64_t begin_ns, int64_t end_ns)
{
    ticks begin = ticks_of(ns_between(c->timeline.origin_ns, begin_ns));
    PUT(c, ",\"dur\":");
    put_ticks(c, ticks_of(ns_between(c->timeline.origin_ns, end_ns)) - begin);
}

/* MARK: Stacks */

static uint64_t put_node(struct chrome *c, const struct frame_node *node)
{
    bool fresh;
    uint64_t number = intern_put(&c->frames, node, sizeof *node, &fresh);
    if (number == 0 || (fresh && !GROW(c->nodes, c->node_capacity, (size_t)number))) {
        c->timeline.failed = true;
        return 0;
    }
    if (fresh)
        c->nodes[c->node_count++] = *node;
    return number;
}

/* Returns the node of a stack's innermost frame. */
static uint32_t stack_node(struct chrome *c, trail_stack stack)
{
    struct stack_row row = stacks_get(&c->timeline.stacks, stack);
    uint64_t node = 0;
    for (size_t i = row.count; i-- > 0;) {
        struct frame_node key = {.parent = node,
                                 .line = row.places[i].line,
                                 .function = row.places[i].function,
                                 .file = row.places[i].file};
        node = put_node(c, &key);
    }
    return (uint32_t)node;
}

static void put_stack(struct chrome *c, const char *key, trail_stack stack)
{
    if (stack == 0)
        return;
    if (!GROW_ZEROED(c->by_stack, c->stack_capacity, (size_t)stack + 1)) {
        c->timeline.failed = true;
        return;
    }
    if (c->by_stack[stack] == 0)
        c->by_stack[stack] = stack_node(c, stack);
    out_str(&c->out, key);
    out_u64(&c->out, c->by_stack[stack]);
}

/* Writes all frames that were used, with their names. */
static void put_frames(void *writer)
{
    struct chrome *c = writer;
    PUT(c, "\n],\"stackFrames\":{");
    for (size_t i = 0; i < c->node_count; i++) {
        const struct frame_node *node = &c->nodes[i];
        out_str(&c->out, i ? ",\n\"" : "\n\"");
        out_u64(&c->out, i + 1);
        put_text(c, "\":{\"category\":", timeline_text(&c->timeline, node->file));
        put_name(c, node->function);
        PUT(c, ",\"line\":");
        out_u64(&c->out, node->line);
        if (node->parent) {
            PUT(c, ",\"parent\":");
            out_u64(&c->out, node->parent);
        }
        PUT(c, "}");
    }
    PUT(c, "}}\n");
}

/* MARK: Goroutines */

/* Writes a "process_name" or "thread_name". */
static void put_title(struct chrome *c, int64_t process, int64_t thread, const char *what,
                      trail_string name)
{
    put_event(c, "M", process, thread, c->timeline.origin_ns);
    PUT(c, ",\"name\":\"");
    out_str(&c->out, what);
    put_text(c, "\",\"args\":{\"name\":", name);
    PUT(c, "}}");
}

static void put_thread(struct chrome *c, int64_t process, int64_t thread, trail_string name)
{
    put_title(c, process, thread, "thread_name", name);
}

static void put_process(struct chrome *c, int process, const char *name)
{
    put_title(c, process, 0, "process_name", text_from(name));
    put_event(c, "M", process, 0, c->timeline.origin_ns);
    PUT(c, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":");
    out_u64(&c->out, (uint64_t)process);
    PUT(c, "}}");
}

static void chrome_begin(void *writer, int64_t begin_ns)
{
    struct chrome *c = writer;
    (void)begin_ns;
    if (c->timeline.of_threads)
        return;
    put_process(c, GOROUTINES, "goroutines");
    put_process(c, PROCS, "Ps");
    put_process(c, THREADS, "threads");
    put_process(c, RUNTIME, "runtime");
    put_thread(c, RUNTIME, LANE_GC, text_from("GC"));
    put_thread(c, RUNTIME, LANE_STOPPED, text_from("stop-the-world"));
}

static void chrome_goroutine(void *writer, struct timeline_goroutine *g)
{
    struct chrome *c = writer;
    char buf[TIMELINE_LABEL];
    if (!c->timeline.of_threads)
        put_thread(c, GOROUTINES, g->id, timeline_label(&c->timeline, g, buf));
}

/* Writes what a recording shows about a wait. */
static void put_wait(struct chrome *c, const struct wait_facts *facts)
{
    if (!facts)
        return;
    put_text(c, ",\"wait.kind\":", timeline_text(&c->timeline, facts->kind_name));
    if (facts->object)
        put_text(c, ",\"wait.object\":", timeline_text(&c->timeline, facts->object));
}

/* The category is the state. The name of a wait is its reason: viewers show names, and DevTools and
 * speedscope choose colors by them. */
static void put_state(struct chrome *c, enum timeline_state state, trail_name reason)
{
    const char *name = timeline_state_name(&c->timeline, state);
    PUT(c, ",\"cat\":\"");
    out_str(&c->out, name);
    PUT(c, "\"");
    if (state == TIMELINE_WAITING && reason) {
        put_name(c, reason);
    } else {
        PUT(c, ",\"name\":\"");
        out_str(&c->out, name);
        PUT(c, "\"");
    }
    if (reason) {
        put_text(c, ",\"args\":{\"reason\":", timeline_text(&c->timeline, reason));
        put_wait(c, wait_facts_of(&c->timeline.names, reason));
        PUT(c, "}");
    }
}

/* MARK: Threads of recordings */

/* Describes the process when its first thread is described. */
static void describe_process(struct chrome *c, const struct timeline_thread *thread)
{
    if (idmap_find(&c->processes, (uint64_t)thread->pid))
        return;
    c->timeline.failed |= !idmap_put(&c->processes, (uint64_t)thread->pid, c);
    put_title(c, thread->pid, 0, "process_name",
              thread->process.size > 0 ? thread->process : timeline_title(c->timeline.options));
}

static struct chrome_thread *thread_of(struct chrome *c, struct timeline_goroutine *g)
{
    struct chrome_thread *thread = (struct chrome_thread *)(uintptr_t)g->writer;
    if (thread)
        return thread;
    thread = slab_get(&c->threads);
    c->timeline.failed |= !thread;
    g->writer = (uintptr_t)thread;
    return thread;
}

static void put_state_span(struct chrome *c, int64_t process, int64_t thread,
                           const struct state_span *span)
{
    put_event(c, "X", process, thread, span->begin_ns);
    put_duration(c, span->begin_ns, span->end_ns);
    put_state(c, span->state, span->reason);
    put_stack(c, ",\"sf\":", span->stack);
    put_stack(c, ",\"esf\":", span->end_stack);
    PUT(c, "}");
}

/*
 * Places the thread when its numbers are known, or at the end without them: it then has its number
 * in the trace and PID 0. Writes what it did until then.
 */
static void settle_thread(struct chrome *c, struct timeline_goroutine *g, bool at_end)
{
    struct timeline_thread known;
    struct chrome_thread *thread = thread_of(c, g);
    if (!thread || thread->settled || (!timeline_thread_of(&c->timeline, g, &known) && !at_end))
        return;
    thread->settled = true;
    thread->pid = known.pid;
    thread->tid = known.tid > 0 ? known.tid : g->id;
    describe_process(c, &known);
    put_thread(c, thread->pid, thread->tid, known.name);
    for (size_t i = 0; i < thread->count; i++)
        put_state_span(c, thread->pid, thread->tid, &thread->spans[i]);
    free(thread->spans);
    thread->spans = NULL;
    thread->count = thread->capacity = 0;
}

/* MARK: Spans and wake-ups */

/* Finds where a goroutine's events are shown; false: nowhere yet. */
static bool place_of(struct chrome *c, struct timeline_goroutine *g, int64_t *process,
                     int64_t *thread)
{
    *process = GOROUTINES;
    *thread = g ? g->id : 0;
    if (!c->timeline.of_threads)
        return true;
    struct chrome_thread *own = g ? thread_of(c, g) : NULL;
    if (own && !own->settled)
        settle_thread(c, g, false);
    *process = own ? own->pid : 0;
    *thread = own ? own->tid : 0;
    return !own || own->settled;
}

static void chrome_gone(void *writer, struct timeline_goroutine *g, int64_t now)
{
    struct chrome *c = writer;
    (void)now;
    if (!c->timeline.of_threads)
        return;
    settle_thread(c, g, true);
    slab_put(&c->threads, thread_of(c, g));
    g->writer = 0;
}

static void chrome_leave(void *writer, struct timeline_goroutine *g, int64_t now, trail_stack stack)
{
    struct chrome *c = writer;
    int64_t process, thread;
    struct state_span span = {
        .begin_ns = g->since_ns,
        .end_ns = now,
        .state = timeline_state_of(g),
        .reason = timeline_has_reason(g) ? g->reason : 0,
        .stack = g->stack,
        .end_stack = timeline_state_of(g) == TIMELINE_RUNNING ? stack : 0,
    };
    if (span.begin_ns == now)
        return; /* an empty span does not nest */
    if (place_of(c, g, &process, &thread)) {
        put_state_span(c, process, thread, &span);
        return;
    }
    struct chrome_thread *own = thread_of(c, g);
    if (GROW(own->spans, own->capacity, own->count + 1))
        own->spans[own->count++] = span;
    else
        c->timeline.failed = true;
}

static void chrome_lane_leave(void *writer, struct timeline_lane *lane, int64_t now)
{
    struct chrome *c = writer;
    char buf[TIMELINE_LABEL];
    int process = lane->is_thread ? THREADS : PROCS;
    if (c->timeline.of_threads)
        return; /* threads are shown instead; the slots do not belong to the program */
    if (!lane->known) {
        char name[32];
        (void)snprintf(name, sizeof name, lane->is_thread ? "M%" PRId64 : "P%" PRId64, lane->id);
        put_thread(c, process, lane->id, text_from(name));
        lane->known = true;
    }
    if (lane->since_ns == now)
        return;
    put_event(c, "X", process, lane->id, lane->since_ns);
    put_duration(c, lane->since_ns, now);
    put_text(c, ",\"name\":", timeline_label(&c->timeline, lane->g, buf));
    PUT(c, ",\"cat\":\"");
    out_str(&c->out, timeline_state_name(&c->timeline, lane->state));
    PUT(c, "\",\"args\":{\"goroutine\":");
    out_i64(&c->out, lane->g->id);
    PUT(c, "}}");
}

/* Writes one end of the current flow; flows are numbered from 1. */
static void put_flow(struct chrome *c, const char *phase, int64_t process, int64_t thread,
                     int64_t now, trail_stack stack)
{
    put_event(c, phase, process, thread, now);
    PUT(c, ",\"cat\":\"wake\",\"name\":\"wake\",\"id\":");
    out_u64(&c->out, c->flows);
    put_stack(c, ",\"sf\":", stack);
    PUT(c, "}");
}

/* The flow ends at the woken goroutine's next span, which begins at this time. */
static void chrome_wake(void *writer, struct timeline_goroutine *waker,
                        struct timeline_goroutine *g, int64_t now, trail_stack stack)
{
    struct chrome *c = writer;
    int64_t from, from_thread, to, to_thread;
    /* A thread that has not run yet cannot take the end of an arrow. */
    if (!place_of(c, waker, &from, &from_thread) || !place_of(c, g, &to, &to_thread))
        return;
    c->flows++;
    put_flow(c, "s", from, from_thread, now, stack);
    put_flow(c, "f", to, to_thread, now, 0);
}

/* MARK: Ranges, regions, tasks */

static bool is_of_runtime(const struct timeline_span *span)
{
    return span->kind == TIMELINE_RANGE &&
           (span->range == TRAIL_RANGE_GC || span->range == TRAIL_RANGE_STW);
}

/* Finds the process and thread that show a span which is not the runtime's. */
static int64_t span_place(struct chrome *c, const struct timeline_span *span, int64_t *process)
{
    if (c->timeline.of_threads) {
        *process = (int64_t)(span->writer >> 32);
        return (int64_t)(span->writer & UINT32_MAX);
    }
    *process = span->kind == TIMELINE_TASK ? RUNTIME : span->proc >= 0 ? PROCS : GOROUTINES;
    return *process == RUNTIME ? 0 : *process == PROCS ? span->proc : span->goroutine;
}

static const char *span_category(const struct timeline_span *span)
{
    static const char *const categories[] = {"range", "region", "task"};
    return categories[span->kind];
}

static void put_span(struct chrome *c, const struct timeline_span *span, const char *phase,
                     int64_t ns)
{
    int64_t process, thread = span_place(c, span, &process);
    put_event(c, phase, process, thread, ns);
    PUT(c, ",\"cat\":\"");
    out_str(&c->out, span_category(span));
    PUT(c, "\",\"id\":\"0x");
    out_hex(&c->out, span->number, 1);
    PUT(c, "\"");
    put_name(c, span->name);
}

static void put_u64_text(struct chrome *c, const char *key, uint64_t value)
{
    out_str(&c->out, key);
    out_u64(&c->out, value);
    PUT(c, "\"");
}

/* Writes the attribute that identifies the goroutine or thread; `args` remains open. */
static void put_who(struct chrome *c, int64_t goroutine)
{
    const struct timeline_goroutine *g = timeline_goroutine_find(&c->timeline, goroutine);
    if (c->timeline.of_threads) {
        PUT(c, ",\"args\":{\"thread.id\":");
        out_i64(&c->out, g ? g->tid : TRAIL_NONE);
        return;
    }
    PUT(c, ",\"args\":{\"goroutine\":");
    out_i64(&c->out, goroutine);
}

static void chrome_open(void *writer, struct timeline_span *span)
{
    struct chrome *c = writer;
    int64_t process, thread;
    if (is_of_runtime(span))
        return;
    if (c->timeline.of_threads) { /* its thread may have ended when it ends */
        (void)place_of(c, timeline_goroutine_find(&c->timeline, span->goroutine), &process,
                       &thread);
        span->writer = (uint64_t)process << 32 | (uint32_t)thread;
    }
    put_span(c, span, "b", span->begin_ns);
    put_who(c, span->goroutine);
    if (span->kind != TIMELINE_RANGE && span->task != 0 && span->task != TRAIL_NO_TASK)
        put_u64_text(c, ",\"task\":\"", span->task);
    if (span->parent != TRAIL_NO_TASK && span->parent != 0)
        put_u64_text(c, ",\"parent\":\"", span->parent);
    if (span->before)
        PUT(c, ",\"began_before\":true");
    PUT(c, "}");
    put_stack(c, ",\"sf\":", span->stack);
    PUT(c, "}");
}

static void chrome_close(void *writer, struct timeline_span *span, int64_t now)
{
    struct chrome *c = writer;
    if (!is_of_runtime(span)) {
        put_span(c, span, "e", now);
        if (span->after)
            PUT(c, ",\"args\":{\"goes_on\":true}");
        PUT(c, "}");
        return;
    }
    put_event(c, "X", RUNTIME, span->range == TRAIL_RANGE_GC ? LANE_GC : LANE_STOPPED,
              span->begin_ns);
    put_duration(c, span->begin_ns, now);
    put_name(c, span->name);
    PUT(c, ",\"args\":{\"goroutine\":");
    out_i64(&c->out, span->goroutine);
    PUT(c, "}}");
}

/* MARK: Logs, metrics, samples */

static void chrome_log(void *writer, const trail_event *event)
{
    struct chrome *c = writer;
    const trail_reader *reader = c->timeline.reader;
    int64_t process = GOROUTINES, thread = event->goroutine;
    if (c->timeline.of_threads)
        (void)place_of(c, timeline_goroutine_find(&c->timeline, event->goroutine), &process,
                       &thread);
    put_event(c, "i", process, thread, event->time_ns);
    put_text(c, ",\"s\":\"t\",\"cat\":\"log\",\"name\":",
             trail_reader_string(reader, event->log.message));
    put_text(c, ",\"args\":{\"category\":", trail_reader_string(reader, event->log.category));
    if (event->log.task != 0 && event->log.task != TRAIL_NO_TASK)
        put_u64_text(c, ",\"task\":\"", event->log.task);
    PUT(c, "}}");
}

static void chrome_metric(void *writer, const trail_event *event)
{
    static const char *const names[TRAIL_METRICS] = {"GOMAXPROCS", "heap in use", "heap goal"};
    struct chrome *c = writer;
    if ((unsigned)event->metric.metric >= TRAIL_METRICS ||
        (c->timeline.of_threads && event->metric.metric != TRAIL_METRIC_HEAP_LIVE))
        return;
    put_event(c, "C", c->timeline.of_threads ? c->timeline.main_tid : RUNTIME, 0, event->time_ns);
    PUT(c, ",\"name\":\"");
    out_str(&c->out, names[event->metric.metric]);
    PUT(c, "\",\"args\":{\"value\":");
    out_u64(&c->out, event->metric.value);
    PUT(c, "}}");
}

static void chrome_sample(void *writer, const trail_event *event, trail_stack stack)
{
    struct chrome *c = writer;
    bool on_thread = event->thread >= 0;
    int64_t process = on_thread ? THREADS : GOROUTINES;
    int64_t thread = on_thread ? event->thread : event->goroutine;
    if (c->timeline.of_threads)
        (void)place_of(c, timeline_goroutine_find(&c->timeline, event->goroutine), &process,
                       &thread);
    put_event(c, "P", process, thread, event->time_ns);
    PUT(c, ",\"cat\":\"sample\",\"name\":\"CPU\"");
    put_who(c, event->goroutine);
    PUT(c, "}");
    put_stack(c, ",\"sf\":", stack);
    PUT(c, "}");
}

/* MARK: Begin and end */

static void chrome_head(void *writer)
{
    struct chrome *c = writer;
    put_text(c, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"trail\",\"title\":",
             timeline_title(c->timeline.options));
    PUT(c, "},\"traceEvents\":[\n");
}

static void chrome_alive(void *writer, struct timeline_goroutine *g)
{
    chrome_gone(writer, g, 0);
}

static const struct timeline_ops ops = {
    .head = chrome_head,
    .begin = chrome_begin,
    .goroutine = chrome_goroutine,
    .leave = chrome_leave,
    .gone = chrome_gone,
    .lane_leave = chrome_lane_leave,
    .wake = chrome_wake,
    .open = chrome_open,
    .close = chrome_close,
    .log = chrome_log,
    .metric = chrome_metric,
    .sample = chrome_sample,
    .alive = chrome_alive,
    .tail = put_frames,
};

int trail_export_chrome(trail_reader *reader, const trail_export_options *options,
                        const trail_sink *sink, trail_export_stats *stats, trail_error *err)
{
    struct chrome c = {.threads = {.object_size = sizeof(struct chrome_thread)}};
    c.timeline = (struct timeline){.reader = reader, .options = options, .ops = &ops, .writer = &c};
    int result = timeline_run(&c.timeline, &c.out, sink, stats, err);
    intern_free(&c.frames);
    idmap_free(&c.processes);
    slab_free(&c.threads);
    free(c.nodes);
    free(c.by_stack);
    return result;
}
