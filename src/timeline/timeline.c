/* Turns events into starts and ends of spans, and calls a writer for them. */
#include "timeline/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/goroutines.h"
#include "base/error.h"
#include "wire/wire.h"
#include "words/process_name.h"

#define FIRST_THREAD 1

const char *timeline_state_name(const struct timeline *timeline, enum timeline_state state)
{
    static const char *const names[TIMELINE_STATES] = {
        [TIMELINE_RUNNING] = "running",           [TIMELINE_RUNNABLE] = "runnable",
        [TIMELINE_WAITING] = "waiting",           [TIMELINE_SYSCALL] = "syscall",
        [TIMELINE_BLOCKED] = "syscall without P",
    };
    return timeline->of_threads && state == TIMELINE_BLOCKED ? "waiting in the kernel"
                                                             : names[state];
}

/* Calls the writer's function, if it has one. */
#define TELL(t, what, ...)                                                                         \
    do {                                                                                           \
        if ((t)->counting && (t)->ops->what)                                                       \
            (t)->ops->what((t)->writer, __VA_ARGS__);                                              \
    } while (0)

/* MARK: Ps and threads */

static struct timeline_lane *lane_get(struct timeline *t, int64_t id, bool is_thread)
{
    struct objects *lanes = is_thread ? &t->threads : &t->procs;
    if (id < 0)
        return NULL;
    struct timeline_lane *lane = objects_find(lanes, (uint64_t)id);
    if (__builtin_expect(lane != NULL, 1))
        return lane;
    lane = objects_get(lanes, (uint64_t)id);
    if (!lane) {
        t->failed = true;
        return NULL;
    }
    lane->id = id;
    lane->is_thread = is_thread;
    return lane;
}

/* Removes the goroutine on it, if any. */
static void lane_leave(struct timeline *t, struct timeline_lane *lane, int64_t now)
{
    struct timeline_goroutine *g = lane->g;
    if (!g)
        return;
    if (g->wanted)
        TELL(t, lane_leave, lane, now);
    *(lane->is_thread ? &g->thread : &g->proc) = NULL;
    lane->g = NULL;
}

static void lane_enter(struct timeline *t, struct timeline_lane *lane, struct timeline_goroutine *g,
                       int64_t now)
{
    if (!lane)
        return;
    lane_leave(t, lane, now);
    lane->g = g;
    lane->state = timeline_state_of(g);
    lane->since_ns = now;
    *(lane->is_thread ? &g->thread : &g->proc) = lane;
    if (g->wanted)
        TELL(t, lane_enter, lane);
}

static void leave_lanes(struct timeline *t, struct timeline_goroutine *g, int64_t now)
{
    if (g->proc)
        lane_leave(t, g->proc, now);
    if (g->thread)
        lane_leave(t, g->thread, now);
}

/* MARK: Spans */

static struct timeline_span *span_open(struct timeline *t, struct timeline_span **place,
                                       struct timeline_span fields, bool wanted)
{
    struct timeline_span *span = slab_get(&t->span_slab);
    if (!span) {
        t->failed = true;
        return NULL;
    }
    *span = fields;
    span->number = ++t->span_count;
    span->wanted = wanted;
    if (place) {
        span->next = *place;
        *place = span;
    }
    if (wanted)
        TELL(t, open, span);
    return span;
}

static void span_close(struct timeline *t, struct timeline_span *span, int64_t now)
{
    if (span->wanted)
        TELL(t, close, span, now);
    slab_put(&t->span_slab, span);
}

static bool is_wanted(const struct timeline *t, int64_t goroutine)
{
    if (t->options->goroutine_count == 0 && !t->options->name)
        return true;
    const struct timeline_goroutine *g = timeline_goroutine_find(t, goroutine);
    return g && g->wanted;
}

/* Closes all spans of a place, innermost first, which do not end in the trace. */
static void close_all(struct timeline *t, struct timeline_span **place, int64_t now)
{
    while (*place) {
        struct timeline_span *span = *place;
        *place = span->next;
        span->after = true;
        span_close(t, span, now);
    }
}

/* Removes the innermost span with that kind and name from its place. The reader looks no deeper. */
static struct timeline_span *take_out(struct timeline_span **place, enum timeline_span_kind kind,
                                      trail_name name, uint64_t task)
{
    struct timeline_span **at = place, *none = NULL;
    for (unsigned i = 0;
         *at && !((*at)->kind == kind && (*at)->name == name && (*at)->task == task); i++)
        at = i < WIRE_REGION_DEPTH ? &(*at)->next : &none;
    struct timeline_span *span = *at;
    if (span)
        *at = span->next;
    return span;
}

/* MARK: Goroutines */

static void emit_goroutine(struct timeline *t, struct timeline_goroutine *g)
{
    if (!g->wanted || !t->counting)
        return;
    if (!g->emitted)
        t->stats.goroutines++;
    g->emitted = true;
    TELL(t, goroutine, g);
}

static void emit_enter(struct timeline *t, struct timeline_goroutine *g)
{
    if (g->wanted)
        TELL(t, enter, g);
}

static bool wants_id(const struct timeline *t, int64_t id)
{
    for (size_t i = 0; i < t->options->goroutine_count; i++)
        if (t->options->goroutines[i] == id)
            return true;
    return t->options->goroutine_count == 0;
}

/* The name decides whether the goroutine is selected. If it already has a state, the writer gets
 * the state, too. */
static bool named(void *context, struct followed *followed, const trail_frame *start)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    bool wanted = g->wanted;
    (void)start;
    g->wanted = wants_id(t, g->id) && (!t->options->name || g->name == t->wanted_name);
    if (g->name == 0 || g->state == TRAIL_GO_UNDETERMINED)
        return true;
    emit_goroutine(t, g);
    if (wanted || !g->wanted)
        return true;
    emit_enter(t, g);
    if (g->proc)
        TELL(t, lane_enter, g->proc);
    if (g->thread)
        TELL(t, lane_enter, g->thread);
    return true;
}

/* Ends the open span. */
static void leave(struct timeline *t, struct timeline_goroutine *g, int64_t now, trail_stack stack)
{
    if (g->wanted)
        TELL(t, leave, g, now, stack);
    leave_lanes(t, g, now);
}

/* Enters its new state, at `since`. */
static void enter(struct timeline *t, struct timeline_goroutine *g, const trail_event *event,
                  trail_name reason, int64_t since)
{
    g->since_ns = since;
    g->reason = reason;
    bool on_thread = g->state == TRAIL_GO_RUNNING || g->state == TRAIL_GO_SYSCALL;
    g->on_proc = on_thread ? event->proc : TRAIL_NONE;
    g->on_thread = on_thread ? event->thread : TRAIL_NONE;
    if (g->on_thread >= 0)
        g->tid = g->on_thread;
    if (t->main_tid == 0 && g->id == FIRST_THREAD && g->tid > 0)
        t->main_tid = g->tid;
    emit_enter(t, g);
    if (on_thread) {
        lane_enter(t, lane_get(t, event->proc, false), g, since);
        lane_enter(t, lane_get(t, event->thread, true), g, since);
    }
}

/* Passes the waker and its stack to the writer. */
static void wake(struct timeline *t, struct timeline_goroutine *g, const trail_event *event)
{
    g->waker = event->goroutine;
    if (!t->ops->wake || !g->wanted || event->goroutine < 0 || event->goroutine == g->id)
        return;
    struct timeline_goroutine *waker = timeline_goroutine_find(t, event->goroutine);
    if (waker && waker->wanted)
        TELL(t, wake, waker, g, event->time_ns, stacks_of(&t->stacks, event->stack));
}

static trail_stack stack_of(struct timeline *t, trail_stack_handle handle)
{
    return stacks_of(&t->stacks, handle);
}

/* MARK: Following */

static struct followed *make(void *context)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = slab_get(&t->goroutine_slab);
    if (!g)
        return NULL;
    g->waker = g->on_proc = g->on_thread = g->tid = TRAIL_NONE;
    return &g->followed;
}

static bool begins(void *context, struct followed *g, const trail_event *event, int64_t since_ns)
{
    struct timeline *t = context;
    (void)event, (void)since_ns;
    if (!t->options->name)
        timeline_goroutine_of(g)->wanted = wants_id(t, g->id);
    return true;
}

static inline bool leaves(void *context, struct followed *followed, const trail_event *event)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    trail_stack stack = stack_of(t, event->transition.stack);
    if (g->state != TRAIL_GO_UNDETERMINED)
        leave(t, g, event->time_ns, stack);
    g->stack = stack;
    return true;
}

/* Enters its first state. */
static void appear(struct timeline *t, struct timeline_goroutine *g, const trail_event *event)
{
    g->stack = stack_of(t, event->transition.stack);
    emit_goroutine(t, g);
}

static inline bool enters(void *context, struct followed *followed, const trail_event *event,
                          trail_name reason)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    bool created = event->transition.from == TRAIL_GO_NOT_EXIST;
    g->found = g->lost = false;
    if (created)
        appear(t, g, event);
    if (created || g->state == TRAIL_GO_RUNNABLE)
        wake(t, g, event);
    enter(t, g, event, reason, event->time_ns);
    return !t->failed;
}

static bool found(void *context, struct followed *followed, const trail_event *event,
                  trail_name reason, int64_t since)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    g->found = true;
    appear(t, g, event);
    if (g->lost)
        since = event->time_ns; /* before, its state is unknown */
    g->lost = false;
    if (t->counting && since < t->from_ns)
        since = t->from_ns;
    if (g->state != TRAIL_GO_SYSCALL || event->proc >= 0) {
        enter(t, g, event, reason, since);
        return !t->failed;
    }
    /* Its P is unknown since then. */
    g->p_released = true;
    g->since_ns = since;
    emit_enter(t, g);
    leave(t, g, event->time_ns, 0);
    g->p_released = false;
    enter(t, g, event, reason, event->time_ns);
    return !t->failed;
}

static bool loses_proc(void *context, struct followed *followed, const trail_event *event)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    if (g->wanted)
        TELL(t, leave, g, event->time_ns, 0);
    if (g->proc)
        lane_leave(t, g->proc, event->time_ns);
    g->p_released = true;
    g->since_ns = event->time_ns;
    g->on_proc = TRAIL_NONE;
    emit_enter(t, g);
    return !t->failed;
}

static bool ends(void *context, struct followed *followed, const trail_event *event)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    if (g->state > TRAIL_GO_NOT_EXIST)
        leave(t, g, event->time_ns, 0);
    close_all(t, &g->spans, event->time_ns);
    leave_lanes(t, g, event->time_ns);
    if (g->wanted && g->state != TRAIL_GO_UNDETERMINED)
        TELL(t, gone, g, event->time_ns);
    slab_put(&t->goroutine_slab, g);
    return true;
}

static const struct follow_ops ops;

/* Writers without `lost` have the goroutine end there; it begins anew if it is seen again. */
static bool lost(void *context, struct followed *followed, const trail_event *event)
{
    struct timeline *t = context;
    struct timeline_goroutine *g = timeline_goroutine_of(followed);
    if (!t->ops->lost) {
        g->state = TRAIL_GO_NOT_EXIST;
        return follow_over(&t->follow, &ops, t, followed, event);
    }
    close_all(t, &g->spans, event->time_ns);
    g->lost = true;
    g->p_released = false;
    if (g->wanted)
        TELL(t, lost, g, event->time_ns);
    return !t->failed;
}

static const struct follow_ops ops = {
    .make = make,
    .named = named,
    .begins = begins,
    .leaves = leaves,
    .enters = enters,
    .found = found,
    .loses_proc = loses_proc,
    .lost = lost,
    .ends = ends,
};

/* MARK: Ranges, regions, tasks */

/* Returns the list with the range's spans; NULL: none. */
static struct timeline_span **range_place(struct timeline *t, const trail_event *event)
{
    if (event->range.scope == TRAIL_RESOURCE_GOROUTINE) {
        struct timeline_goroutine *g =
            timeline_goroutine_of(follow_find(&t->follow, event->range.scope_id));
        return g ? &g->spans : NULL;
    }
    if (event->range.scope == TRAIL_RESOURCE_PROC) {
        struct timeline_lane *lane = lane_get(t, event->range.scope_id, false);
        return lane ? &lane->spans : NULL;
    }
    return &t->spans;
}

static void range_event(struct timeline *t, const trail_event *event)
{
    bool of_goroutine = event->range.scope == TRAIL_RESOURCE_GOROUTINE;
    int64_t goroutine = of_goroutine ? event->range.scope_id : event->goroutine;
    bool wanted = event->range.range == TRAIL_RANGE_GC || is_wanted(t, goroutine);
    trail_name name = names_of(&t->names, event->range.name);
    struct timeline_span **place = range_place(t, event);
    if (!place)
        return;
    struct timeline_span *span = take_out(place, TIMELINE_RANGE, name, 0);
    if (event->kind == TRAIL_RANGE_END) {
        if (span)
            span_close(t, span, event->time_ns);
        return;
    }
    if (span) { /* repeated: it is already open */
        span->next = *place;
        *place = span;
        return;
    }
    bool found = event->kind == TRAIL_RANGE_ACTIVE;
    struct timeline_span fields = {
        .kind = TIMELINE_RANGE,
        .range = event->range.range,
        .name = name,
        .stack = stack_of(t, event->stack),
        .begin_ns = found ? t->follow.sync_ns : event->time_ns,
        .goroutine = goroutine,
        .proc = event->range.scope == TRAIL_RESOURCE_PROC ? event->range.scope_id : TRAIL_NONE,
        .parent = TRAIL_NO_TASK,
        .before = found,
    };
    if (t->counting && fields.begin_ns < t->from_ns)
        fields.begin_ns = t->from_ns;
    (void)span_open(t, place, fields, wanted);
}

/* Returns the fields of a region or task from its event. */
static struct timeline_span fields_of(struct timeline *t, const trail_event *event,
                                      enum timeline_span_kind kind, trail_string_handle name)
{
    struct timeline_span fields = {.kind = kind,
                                   .begin_ns = event->time_ns,
                                   .goroutine = event->goroutine,
                                   .proc = TRAIL_NONE};
    fields.name = names_of(&t->names, name);
    fields.stack = stack_of(t, event->stack);
    return fields;
}

/* Closes a span that ends; one without an open span began before the trace. */
static void end_span(struct timeline *t, struct timeline_span *span, struct timeline_span fields,
                     bool wanted, int64_t now)
{
    if (!span) {
        fields.before = true;
        fields.begin_ns = t->counting ? t->from_ns : t->origin_ns;
        span = span_open(t, NULL, fields, wanted);
    }
    if (span)
        span_close(t, span, now);
}

static void region_event(struct timeline *t, const trail_event *event)
{
    struct timeline_goroutine *g = timeline_goroutine_find(t, event->goroutine);
    if (!g)
        return;
    struct timeline_span fields = fields_of(t, event, TIMELINE_REGION, event->region.type);
    fields.task = event->region.task;
    fields.parent = TRAIL_NO_TASK;
    if (event->kind == TRAIL_REGION_BEGIN) {
        (void)span_open(t, &g->spans, fields, g->wanted);
        return;
    }
    struct timeline_span *span = take_out(&g->spans, TIMELINE_REGION, fields.name, fields.task);
    if (span || !(event->flags & TRAIL_EVENT_MISUSED)) /* one that never began is not shown */
        end_span(t, span, fields, g->wanted, event->time_ns);
}

static void task_event(struct timeline *t, const trail_event *event)
{
    struct timeline_span *span = idmap_remove(&t->tasks, event->task.id);
    struct timeline_span fields = fields_of(t, event, TIMELINE_TASK, event->task.type);
    fields.task = event->task.id;
    fields.parent = event->task.parent;
    if (event->kind == TRAIL_TASK_END) {
        end_span(t, span, fields, true, event->time_ns);
        return;
    }
    if (span) { /* another task with its ID */
        span->after = true;
        span_close(t, span, event->time_ns);
    }
    span = span_open(t, NULL, fields, true);
    if (span && !idmap_put(&t->tasks, event->task.id, span))
        t->failed = true;
}

/* MARK: Events */

static void other_event(struct timeline *t, const trail_event *event)
{
    trail_clock_snapshot clocks;
    switch (event->kind) {
    case TRAIL_SYNC:
        follow_sync(&t->follow, event->time_ns);
        if (t->ops->clocks && trail_reader_wall_clock(t->reader, event, &clocks))
            t->ops->clocks(t->writer, &clocks);
        break;
    case TRAIL_METRIC:
        TELL(t, metric, event);
        break;
    case TRAIL_STACK_SAMPLE:
        if (t->ops->sample && is_wanted(t, event->goroutine))
            TELL(t, sample, event, stack_of(t, event->stack));
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        range_event(t, event);
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        task_event(t, event);
        break;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        region_event(t, event);
        break;
    case TRAIL_LOG:
        t->failed |= !follow_log(&t->follow, event);
        if (t->ops->log && is_wanted(t, event->goroutine))
            TELL(t, log, event);
        break;
    default:
        break;
    }
}

static inline void take_event(struct timeline *t, const trail_event *event)
{
    if (event->kind != TRAIL_STATE_TRANSITION) {
        other_event(t, event);
        return;
    }
    /* Writers number texts in order of use: the reason precedes the texts of the event's stacks. */
    if (event->transition.resource == TRAIL_RESOURCE_GOROUTINE &&
        event->transition.to == TRAIL_GO_WAITING && event->transition.from != TRAIL_GO_WAITING)
        (void)names_of(&t->names, event->transition.reason);
    if (!follow_transition(&t->follow, &ops, t, event))
        t->failed = true;
}

/* MARK: The window */

/* Passes on the spans of a place, outermost first. */
static void emit_spans(struct timeline *t, struct timeline_span *span)
{
    struct timeline_span *reversed = NULL;
    while (span) { /* reversed, and reversed back while they are passed on */
        struct timeline_span *next = span->next;
        span->next = reversed;
        reversed = span;
        span = next;
    }
    for (struct timeline_span *inner = NULL; reversed; inner = span) {
        span = reversed;
        reversed = span->next;
        span->next = inner;
        span->before = true;
        span->begin_ns = t->from_ns;
        if (span->wanted)
            TELL(t, open, span);
    }
}

static void emit_lane(struct timeline *t, struct timeline_lane *lane)
{
    lane->since_ns = t->from_ns;
    if (lane->g && lane->g->wanted)
        TELL(t, lane_enter, lane);
    emit_spans(t, lane->spans);
}

static void emit_alive(struct timeline *t, struct timeline_goroutine *g)
{
    g->since_ns = t->from_ns;
    g->found = true;
    g->waker = TRAIL_NONE;
    emit_goroutine(t, g);
    if (!g->lost)
        emit_enter(t, g);
    emit_spans(t, g->spans);
}

/* Calls `f` for each object, by ID. */
#define EACH_BY_ID(t, map, f)                                                                      \
    do {                                                                                           \
        struct idmap_slot *all_ = idmap_sorted(map);                                               \
        (t)->failed |= !all_;                                                                      \
        for (size_t i_ = 0; all_ && i_ < (map)->count; i_++)                                       \
            f((t), all_[i_].value);                                                                \
        free(all_);                                                                                \
    } while (0)

/* Starts calling the writer. Everything alive now begins at the start of the window. */
static void count_from(struct timeline *t, int64_t ns)
{
    t->counting = true;
    t->from_ns = ns;
    t->last_ns = ns;
    TELL(t, begin, ns);
    EACH_BY_ID(t, &t->follow.alive, emit_alive);
    EACH_BY_ID(t, &t->procs.map, emit_lane);
    EACH_BY_ID(t, &t->threads.map, emit_lane);
    emit_spans(t, t->spans);
    EACH_BY_ID(t, &t->tasks, emit_spans);
}

static void finish_alive(struct timeline *t, struct timeline_goroutine *g)
{
    close_all(t, &g->spans, t->last_ns);
    if (g->wanted && !g->lost)
        TELL(t, leave, g, t->last_ns, 0);
    leave_lanes(t, g, t->last_ns);
}

static void finish_lane(struct timeline *t, struct timeline_lane *lane)
{
    close_all(t, &lane->spans, t->last_ns);
}

static void finish_task(struct timeline *t, struct timeline_span *span)
{
    close_all(t, &span, t->last_ns);
}

/* Open spans end with the window. */
static void finish(struct timeline *t)
{
    if (!t->counting)
        return;
    t->last_ns = t->over ? t->to_ns : t->last_ns;
    EACH_BY_ID(t, &t->follow.alive, finish_alive);
    EACH_BY_ID(t, &t->procs.map, finish_lane);
    close_all(t, &t->spans, t->last_ns);
    EACH_BY_ID(t, &t->tasks, finish_task);
}

static void start(struct timeline *t, int64_t origin)
{
    const trail_export_options *o = t->options;
    trail_made_by made_by = trail_reader_maker(t->reader)->made_by;
    t->started = true;
    t->of_threads = made_by == TRAIL_MADE_BY_RECORD || made_by == TRAIL_MADE_BY_IMPORT;
    t->origin_ns = origin;
    follow_sync(&t->follow, origin);
    t->from_ns = o->has_from ? ns_behind(origin, o->from_ns) : origin;
    t->to_ns = o->has_to ? ns_behind(origin, o->to_ns) : INT64_MAX;
    if (!o->has_from)
        count_from(t, origin);
}

void timeline_feed(struct timeline *t, const trail_event *event, long count)
{
    wait_names_begin_batch(&t->names);
    stacks_begin_batch(&t->stacks);
    if (!t->started)
        start(t, event->time_ns);
    for (const trail_event *end = event + count; event < end; event++) {
        if (__builtin_expect(event->time_ns > t->to_ns, 0)) {
            t->over = true;
            break;
        }
        if (__builtin_expect(!t->counting && event->time_ns >= t->from_ns, 0))
            count_from(t, t->from_ns);
        if (t->counting) {
            t->last_ns = event->time_ns;
            t->stats.events++;
        }
        take_event(t, event);
    }
    t->failed |= t->names.failed || t->stacks.failed;
}

trail_string timeline_label(const struct timeline *timeline, const struct timeline_goroutine *g,
                            char buf[TIMELINE_LABEL])
{
    trail_string name = timeline_text(timeline, g->name);
    size_t size = (size_t)snprintf(buf, 32, "G%" PRId64 "%s", g->id, name.size ? " " : "");
    size_t more = name.size < TIMELINE_LABEL - size ? name.size : TIMELINE_LABEL - size;
    memcpy(buf + size, name.data, more);
    return (trail_string){buf, size + more};
}

/*
 * trail record gives a process's main thread the number 1, and names threads after their processes
 * if there are several. In Linux the main thread's ID is the PID. Traces of trail import have no
 * processes.
 */
bool timeline_thread_of(const struct timeline *t, const struct timeline_goroutine *g,
                        struct timeline_thread *thread)
{
    trail_string name = timeline_text(t, g->name);
    struct process_name process;
    bool recorded = trail_reader_maker(t->reader)->made_by == TRAIL_MADE_BY_RECORD;
    *thread = (struct timeline_thread){.tid = g->tid, .name = name};
    if (recorded && process_name_of(name, &process)) {
        thread->pid = (int64_t)process.pid;
        thread->process = process.name;
        thread->name = process.thread;
    } else if (recorded) {
        thread->pid = t->main_tid;
    }
    return thread->tid > 0 && (thread->pid > 0 || !recorded);
}

/* MARK: Running */

void timeline_begin(struct timeline *t)
{
    t->names.reader = t->reader;
    t->stacks.names = &t->names;
    t->goroutine_slab.object_size = sizeof(struct timeline_goroutine);
    t->procs = t->threads = OBJECTS_OF(struct timeline_lane);
    t->span_slab.object_size = sizeof(struct timeline_span);
    follow_init(&t->follow, t->reader, &t->names);
    if (t->options->name)
        t->wanted_name = names_of_text(&t->names, t->options->name);
}

void timeline_free(struct timeline *t)
{
    names_free(&t->names);
    stacks_free(&t->stacks);
    follow_free(&t->follow);
    objects_free(&t->procs);
    objects_free(&t->threads);
    idmap_free(&t->tasks);
    slab_free(&t->goroutine_slab);
    slab_free(&t->span_slab);
}

static int read_all(struct timeline *t, const struct out *out, trail_error *err)
{
    const trail_event *events;
    long count = 0;
    while (!t->over && !t->failed && !out->failed &&
           (count = trail_reader_next_batch(t->reader, &events)) > 0) {
        timeline_feed(t, events, count);
        if (t->options->progress)
            t->options->progress(t->options->progress_context);
    }
    if (count >= 0 || t->over)
        return 0;
    if (err)
        *err = *trail_reader_error(t->reader);
    return -1;
}

static void pass_alive(struct timeline *t, struct timeline_goroutine *g)
{
    t->ops->alive(t->writer, g);
}

int timeline_run(struct timeline *t, struct out *out, const trail_sink *sink,
                 trail_export_stats *stats, trail_error *err)
{
    if (stats)
        *stats = (trail_export_stats){0};
    if (!out_init(out, sink->write, sink->context))
        return error_no_memory(err);
    timeline_begin(t);
    if (t->ops->head)
        t->ops->head(t->writer);
    int result = read_all(t, out, err);
    finish(t);
    if (t->ops->alive)
        EACH_BY_ID(t, &t->follow.alive, pass_alive);
    if (t->ops->tail)
        t->ops->tail(t->writer);
    if (t->failed || t->names.failed || t->stacks.failed)
        result = error_no_memory(err);
    if (out_finish(out, err) < 0)
        result = -1;
    if (stats)
        *stats = t->stats;
    timeline_free(t);
    return result;
}
