/*
 * Interprets the events of programs. They have no states: a thread runs while it has a span, and
 * waits otherwise. Spans are regions, asynchronous ones are tasks, instants are logs.
 *
 * A flow from a span of one thread to a span of another is a wake-up if the other did nothing
 * between the flow's start and that span: it waited for it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"
#include "import/spans.h"

/* MARK: Passing on */

/* Whether the event is about when a thread runs. */
static bool is_state(enum import_kind kind)
{
    return kind == IMPORT_RUN || kind == IMPORT_PAUSE || kind == IMPORT_WAKING;
}

static void emit(struct import_spans *spans, enum import_kind kind, int64_t time_ns, int32_t tid,
                 int32_t other, const char *text, uint64_t number)
{
    struct import_event event = {.kind = (uint8_t)kind,
                                 .time_ns = time_ns,
                                 .cpu = IMPORT_NO_CPU,
                                 .tid = tid,
                                 .other = other,
                                 .number = number,
                                 .text = text ? strdup(text) : NULL};
    if (spans->has_states && is_state(kind))
        return;
    spans->failed |= (text && !event.text) || !import_model_put(spans->model, &event);
}

/* MARK: Spans */

static int by_time(const void *a, const void *b)
{
    const struct span_event *x = a, *y = b;
    return ORDER(x->time_ns, y->time_ns) ?: ORDER(x->order, y->order);
}

/* Outer spans first. */
static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return ORDER(x->begin_ns, y->begin_ns) ?: ORDER(y->end_ns, x->end_ns) ?:
           ORDER(x->order, y->order);
}

static void add_span(struct import_spans *spans, struct span_thread *thread,
                     const struct span_event *e, int64_t end_ns)
{
    if (!GROW(thread->spans, thread->span_room, thread->span_count + 1)) {
        spans->failed = true;
        return;
    }
    thread->spans[thread->span_count++] =
        (struct span){.begin_ns = e->time_ns, .end_ns = end_ns, .name = e->name, .order = e->order};
}

static void begin_span(struct import_spans *spans, struct span_thread *thread,
                       const struct span_event *e)
{
    if (!APPEND(thread->open, thread->open_room, thread->open_count, thread->span_count)) {
        spans->failed = true;
        return;
    }
    add_span(spans, thread, e, INT64_MAX);
}

static void end_span(struct import_spans *spans, struct span_thread *thread,
                     const struct span_event *e)
{
    if (thread->open_count == 0)
        import_count_bad(spans->stats);
    else
        thread->spans[thread->open[--thread->open_count]].end_ns = e->time_ns;
}

static void collect_spans(struct import_spans *spans)
{
    for (size_t i = 0; i < spans->event_count && !spans->failed; i++) {
        const struct span_event *e = &spans->events[i];
        struct span_thread *thread = &spans->threads[e->thread];
        if (e->phase == SPAN_COMPLETE)
            add_span(spans, thread, e, e->time_ns + e->duration_ns);
        else if (e->phase == SPAN_BEGIN)
            begin_span(spans, thread, e);
        else if (e->phase == SPAN_END)
            end_span(spans, thread, e);
    }
}

/* MARK: Regions */

/* Returns the innermost of the thread's spans that contain the current one; they are in `open`, by
 * their index in spans[]. */
static const struct span *innermost(const struct span_thread *thread)
{
    return thread->open_count > 0 ? &thread->spans[thread->open[thread->open_count - 1]] : NULL;
}

/* Ends all regions that end by `ns`; the thread pauses unless it continues at once. */
static void end_regions(struct import_spans *spans, struct span_thread *thread, int64_t ns)
{
    const struct span *span;
    while ((span = innermost(thread)) != NULL && span->end_ns <= ns && span->end_ns != INT64_MAX) {
        emit(spans, IMPORT_REGION_END, span->end_ns, thread->number, 0, span->name, 0);
        thread->open_count--;
        if (thread->open_count == 0 && span->end_ns < ns)
            emit(spans, IMPORT_PAUSE, span->end_ns, thread->number, 0, NULL, 0);
    }
}

/* Shortens a region so that it ends before those around it. */
static void fit(struct import_spans *spans, const struct span_thread *thread, struct span *span)
{
    const struct span *outer = innermost(thread);
    if (!outer || span->end_ns <= outer->end_ns)
        return;
    span->end_ns = outer->end_ns;
    spans->stats->cut++;
}

static void emit_regions(struct import_spans *spans, struct span_thread *thread)
{
    thread->open_count = 0;
    for (size_t i = 0; i < thread->span_count && !spans->failed; i++) {
        struct span *span = &thread->spans[i];
        end_regions(spans, thread, span->begin_ns);
        fit(spans, thread, span);
        if (!GROW(thread->open, thread->open_room, thread->open_count + 1)) {
            spans->failed = true;
            return;
        }
        if (thread->open_count == 0)
            emit(spans, IMPORT_RUN, span->begin_ns, thread->number, 0, NULL, 0);
        thread->open[thread->open_count++] = i;
        emit(spans, IMPORT_REGION_BEGIN, span->begin_ns, thread->number, 0, span->name, 0);
    }
    end_regions(spans, thread, INT64_MAX);
}

/*
 * Reduces spans[] to when the thread runs: outermost spans, joined if one follows another at once.
 */
static void keep_runs(struct span_thread *thread)
{
    size_t kept = 0;
    for (size_t i = 0; i < thread->span_count; i++) {
        struct span *last = kept > 0 ? &thread->spans[kept - 1] : NULL;
        if (!last || thread->spans[i].begin_ns > last->end_ns)
            thread->spans[kept++] = thread->spans[i];
        else if (thread->spans[i].end_ns > last->end_ns)
            last->end_ns = thread->spans[i].end_ns;
    }
    thread->span_count = kept;
}

/* MARK: Flows */

/* Returns when the waker acts: within its run, if the flow begins where that ends. */
static int64_t act_time(const struct span_thread *thread, int64_t ns)
{
    size_t behind = SEARCH(i, 0, thread->span_count, thread->spans[i].begin_ns <= ns);
    const struct span *run = behind > 0 ? &thread->spans[behind - 1] : NULL;
    return run && run->end_ns == ns && run->begin_ns < ns ? ns - 1 : ns;
}

/* Whether the thread waits from `ns` until a run that contains, or follows, the flow's end at
 * `end_ns`. */
static bool waits_for(const struct span_thread *thread, int64_t ns, int64_t end_ns)
{
    size_t next = SEARCH(i, 0, thread->span_count, thread->spans[i].end_ns < end_ns);
    if (next == thread->span_count || thread->spans[next].begin_ns <= ns)
        return false;
    return next == 0 || thread->spans[next - 1].end_ns <= ns;
}

static void do_flow(struct import_spans *spans, const struct span_event *from,
                    const struct span_event *to)
{
    const struct span_thread *waker = &spans->threads[from->thread];
    const struct span_thread *woken = &spans->threads[to->thread];
    int64_t ns = act_time(waker, from->time_ns);
    if (waker == woken || !waits_for(woken, from->time_ns, to->time_ns))
        spans->stats->flows_unused++;
    else
        emit(spans, IMPORT_WAKING, ns, waker->number, woken->number, NULL, 0);
}

/* MARK: Tasks */

/* An open asynchronous span; those with the same ID nest. */
struct open_task {
    struct open_task *outer;
    uint64_t number;
};

static void begin_task(struct import_spans *spans, struct idmap *tasks, const struct span_event *e,
                       uint64_t number)
{
    struct open_task *task = arena_alloc(&spans->arena, sizeof *task);
    if (!task) {
        spans->failed = true;
        return;
    }
    *task = (struct open_task){.outer = idmap_find(tasks, e->id), .number = number};
    spans->failed |= !idmap_put(tasks, e->id, task);
    emit(spans, IMPORT_TASK_BEGIN, e->time_ns, spans->threads[e->thread].number, 0, e->name,
         number);
}

static void end_task(struct import_spans *spans, struct idmap *tasks, const struct span_event *e)
{
    const struct open_task *task = idmap_remove(tasks, e->id);
    if (!task) {
        import_count_bad(spans->stats);
        return;
    }
    spans->failed |= task->outer && !idmap_put(tasks, e->id, task->outer);
    emit(spans, IMPORT_TASK_END, e->time_ns, spans->threads[e->thread].number, 0, NULL,
         task->number);
}

/* MARK: All */

/* Passes on events that need no spans, and flows, which need the spans of both threads. */
static void emit_others(struct import_spans *spans)
{
    struct idmap tasks = {0}, flows = {0}; /* by ID */
    uint64_t number = 0;
    for (size_t i = 0; i < spans->event_count && !spans->failed; i++) {
        struct span_event *e = &spans->events[i];
        const struct span_event *from;
        switch ((enum span_phase)e->phase) {
        case SPAN_INSTANT:
            emit(spans, IMPORT_LOG, e->time_ns, spans->threads[e->thread].number, 0, e->name, 0);
            break;
        case SPAN_ASYNC_BEGIN:
            begin_task(spans, &tasks, e, ++number);
            break;
        case SPAN_ASYNC_END:
            end_task(spans, &tasks, e);
            break;
        case SPAN_FLOW_STEP:
        case SPAN_FLOW_END:
            from = idmap_find(&flows, e->id);
            if (from)
                do_flow(spans, from, e);
            else
                import_count_bad(spans->stats);
            spans->failed |= e->phase == SPAN_FLOW_STEP && !idmap_put(&flows, e->id, e);
            break;
        case SPAN_FLOW:
        case SPAN_FLOW_LAST:
            from = idmap_remove(&flows, e->id);
            if (from)
                do_flow(spans, from, e);
            spans->failed |= e->phase == SPAN_FLOW && !idmap_put(&flows, e->id, e);
            break;
        case SPAN_FLOW_BEGIN:
            spans->failed |= !idmap_put(&flows, e->id, e);
            break;
        case SPAN_BEGIN:
        case SPAN_END:
        case SPAN_COMPLETE:
            break;
        }
    }
    idmap_free(&tasks);
    idmap_free(&flows);
}

void import_spans_mean(struct import_spans *spans)
{
    if (spans->event_count == 0)
        return;
    qsort(spans->events, spans->event_count, sizeof *spans->events, by_time);
    collect_spans(spans);
    for (size_t i = 0; i < spans->thread_count && !spans->failed; i++) {
        struct span_thread *thread = &spans->threads[i];
        if (thread->span_count > 0)
            qsort(thread->spans, thread->span_count, sizeof *thread->spans, by_begin);
        emit_regions(spans, thread);
        keep_runs(thread);
    }
    emit_others(spans);
}
