#include "analyze/activity.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/text.h"
#include "wire/waits.h"

/* Shorter stretches are the normal cost of a wake-up. */
#define STRETCH_LEAST_NS 1000000

/* Shorter stretches in which one goroutine alone has work are ordinary. */
#define ALONE_LEAST_NS 5000000

/* A P that stops later than this after the request for a stop-the-world pause has delayed it. */
#define LATE_NS 1000000

/* An open task. */
struct open_task {
    int64_t begin_ns;
    trail_task_kind *kind;
    int64_t goroutine;        /* that began it */
    struct task_spent before; /* of that goroutine, up to then */
};

/* MARK: Time passes */

static void merge_slices(struct activity *a)
{
    for (size_t i = 0; i < ACTIVITY_SLICES; i += 2) {
        trail_activity_slice sum = a->slices[i];
        ns_add(&sum.running_ns, a->slices[i + 1].running_ns);
        ns_add(&sum.runnable_ns, a->slices[i + 1].runnable_ns);
        ns_add(&sum.procs_ns, a->slices[i + 1].procs_ns);
        a->slices[i / 2] = sum;
    }
    memset(&a->slices[ACTIVITY_SLICES / 2], 0, sizeof a->slices / 2);
    a->slice = ACTIVITY_SLICES / 2 - 1;
    a->slice_end_ns = a->last_ns;
    if (__builtin_mul_overflow(a->sums.slice_ns, 2, &a->sums.slice_ns))
        a->sums.slice_ns = INT64_MAX;
}

static void next_slice(struct activity *a)
{
    if (a->slice + 1 == ACTIVITY_SLICES)
        merge_slices(a);
    a->slice++;
    if (__builtin_add_overflow(a->slice_end_ns, a->sums.slice_ns, &a->slice_end_ns))
        a->slice_end_ns = INT64_MAX;
}

/*
 * Nanoseconds of `count` goroutines or Ps. Sums that exceed 64 bits come from damaged clocks, and
 * wrap.
 */
static inline void add_many(int64_t *sum, int64_t count, int64_t ns)
{
    ns_add(sum, (int64_t)((uint64_t)count * (uint64_t)ns));
}

/*
 * No more goroutines run than there are Ps: where a recording of threads has more, their states are
 * inferred, and the others are ready.
 */
static __attribute__((noinline)) void correct_inferred(struct activity *a,
                                                       trail_activity_slice *slice, int64_t ns)
{
    int64_t more = a->max_procs > 0 && a->running > a->max_procs ? a->running - a->max_procs : 0;
    int64_t procs = more && a->procs_running > a->max_procs ? a->procs_running - a->max_procs : 0;
    add_many(&slice->running_ns, -more, ns);
    add_many(&slice->runnable_ns, more, ns);
    add_many(&slice->procs_ns, -procs, ns);
    if (a->inferred)
        ns_add(&a->sums.inferred_ns, ns);
}

/* Counts up to `ns`, which is not after the end of the slice. */
static void count_slice(struct activity *a, int64_t ns)
{
    trail_activity_slice *slice = &a->slices[a->slice];
    add_many(&slice->running_ns, a->running, ns);
    add_many(&slice->runnable_ns, a->runnable, ns);
    add_many(&slice->procs_ns, a->procs_running, ns);
    if (__builtin_expect(a->running > a->most_known, 0))
        correct_inferred(a, slice, ns);
}

static void count_idle(struct activity *a, int64_t procs, int64_t ns)
{
    int64_t idle = procs - a->procs_running;
    if (idle <= 0)
        return;
    int64_t work = a->runnable < idle ? a->runnable : idle;
    add_many(&a->sums.idle_work_ns, work, ns);
    add_many(a->lock_waiters > 0 ? &a->sums.idle_lock_ns : &a->sums.idle_nothing_ns, idle - work,
             ns);
}

static inline int64_t procs_now(const struct activity *a)
{
    return a->max_procs > 0 ? a->max_procs : a->most_running;
}

/* Counts time in which all states are known. */
static inline __attribute__((always_inline)) void count_known(struct activity *a, int64_t ns)
{
    int64_t procs = procs_now(a);
    add_many(&a->sums.available_ns, procs, ns);
    count_idle(a, procs, ns);
    if (a->running <= 1 && a->runnable <= 1 && procs > 1)
        ns_add(&a->serial_ns, ns);
    if (a->runnable > 0 && a->procs_running >= procs)
        ns_add(&a->queue_ns, ns);
    if (a->runnable > 0 && a->running < procs)
        add_many(&a->unused_ns, a->runnable < procs - a->running ? a->runnable : procs - a->running,
                 ns);
}

static inline __attribute__((always_inline)) void advance(struct activity *a, int64_t now)
{
    int64_t ns = ns_between(a->last_ns, now);
    if (ns <= 0)
        return;
    if (__builtin_expect(a->lost, 0))
        ns_add(&a->sums.lost_ns, ns);
    else
        count_known(a, ns);
    while (__builtin_expect(now > a->slice_end_ns, 0)) {
        count_slice(a, ns_between(a->last_ns, a->slice_end_ns));
        a->last_ns = a->slice_end_ns;
        next_slice(a);
    }
    count_slice(a, ns_between(a->last_ns, now));
    a->last_ns = now;
}

/* MARK: Stretches */

/* Whether all states are known since then. */
static bool is_known(const struct activity *a, int64_t since_ns)
{
    return !a->lost && since_ns >= a->known_since_ns;
}

static enum stretch stretch_now(const struct activity *a)
{
    /* While the world is stopped, or is to stop, Ps are idle on purpose. */
    if (a->runnable == 0 || a->stopping || a->procs_running >= procs_now(a))
        return STRETCH_NONE;
    return a->running == 1 ? STRETCH_LONE : STRETCH_QUEUE;
}

static void stretch_end(struct activity *a, int64_t now, uint64_t lone)
{
    struct stretch_sum *sum = &a->stretches[a->stretch];
    int64_t ns = ns_between(a->stretch_since_ns, now);
    if (a->stretch == STRETCH_NONE || ns < STRETCH_LEAST_NS || !is_known(a, a->stretch_since_ns))
        return;
    sum->count++;
    ns_add(&sum->ns, ns);
    longest_note(&sum->longest, ns, a->stretch_since_ns, (int64_t)lone);
}

static inline void stretch_check(struct activity *a, int64_t now, uint64_t lone_before)
{
    enum stretch stretch = stretch_now(a);
    if (stretch == a->stretch)
        return;
    stretch_end(a, now, lone_before);
    a->stretch = stretch;
    a->stretch_since_ns = now;
}

/* MARK: Alone */

static __attribute__((noinline)) bool alone_count(struct activity *a, int64_t goroutine, int64_t ns)
{
    const struct goroutine *g = goroutines_find(&a->analysis->goroutines, goroutine);
    trail_name name = g ? names_kind(&a->analysis->names, g->name) : 0;
    struct alone_sum *sum = NULL;
    for (size_t i = 0; i < a->alone_count && !sum; i++)
        if (a->alone_sums[i].name == name)
            sum = &a->alone_sums[i];
    if (!g)
        return true;
    if (!sum) {
        if (!GROW(a->alone_sums, a->alone_capacity, a->alone_count + 1))
            return false;
        sum = &a->alone_sums[a->alone_count++];
        *sum = (struct alone_sum){.name = name, .last = TRAIL_NONE};
    }
    sum->count++;
    sum->goroutines += sum->last != goroutine;
    sum->last = goroutine;
    ns_add(&sum->ns, ns);
    longest_note(&sum->longest, ns, a->alone_since_ns, goroutine);
    return true;
}

/*
 * The number of goroutines with work may have changed; no single event passes being alone from one
 * goroutine to another. `lone` is the XOR of the IDs of those that ran before the event: the ID of
 * the one that had work alone, except while it was only ready. Returns false if out of memory.
 */
static inline bool alone_check(struct activity *a, int64_t now, uint64_t lone)
{
    bool alone = a->running + a->runnable == 1;
    if (alone == a->alone)
        return true;
    int64_t ns = ns_between(a->alone_since_ns, now);
    a->alone = alone;
    if (__builtin_expect(!alone && ns >= ALONE_LEAST_NS, 0) && is_known(a, a->alone_since_ns))
        return alone_count(a, (int64_t)lone, ns);
    a->alone_since_ns = now;
    return true;
}

/* MARK: Transitions */

static inline void change(int64_t *count, bool more, bool less)
{
    *count += (int64_t)more - (int64_t)less;
    if (*count < 0)
        *count = 0;
}

static bool take_transition(void *part, struct goroutine *g, const trail_event *event)
{
    struct activity *a = part;
    unsigned from = g->state, to = event->transition.to;
    uint64_t lone = a->lone;
    advance(a, event->time_ns);
    change(&a->running, to == TRAIL_GO_RUNNING, from == TRAIL_GO_RUNNING);
    change(&a->runnable, to == TRAIL_GO_RUNNABLE, from == TRAIL_GO_RUNNABLE);
    if ((to == TRAIL_GO_RUNNING) != (from == TRAIL_GO_RUNNING))
        a->lone ^= (uint64_t)g->id;
    if (to == TRAIL_GO_RUNNING && event->proc >= 0 && event->proc < ACTIVITY_PROCS)
        a->queue_at[event->proc] = a->queue_ns;
    if (a->stopping && from == TRAIL_GO_RUNNING && g->id != a->stop_owner) {
        a->stop_left_ns = event->time_ns;
        a->stop_left_by = g->id;
    }
    stretch_check(a, event->time_ns, lone);
    return alone_check(a, event->time_ns, lone);
}

static bool take_proc(void *part, const trail_event *event)
{
    struct activity *a = part;
    if (event->transition.from == event->transition.to)
        return true;
    advance(a, event->time_ns);
    if (event->transition.to == TRAIL_PROC_UNDETERMINED)
        a->lost = true;
    change(&a->procs_running, event->transition.to == TRAIL_PROC_RUNNING,
           event->transition.from == TRAIL_PROC_RUNNING);
    if (a->procs_running > a->most_running)
        a->most_running = a->procs_running;
    stretch_check(a, event->time_ns, a->lone);
    return true;
}

/* MARK: Stop-the-world pauses */

static void stop_event(struct activity *a, const trail_event *event)
{
    if (event->kind != TRAIL_RANGE_END) {
        a->stopping = event->kind == TRAIL_RANGE_BEGIN;
        a->stop_since_ns = a->stop_left_ns = event->time_ns;
        a->stop_owner = event->range.scope_id;
        stretch_check(a, event->time_ns, a->lone);
        return;
    }
    int64_t late = ns_between(a->stop_since_ns, a->stop_left_ns);
    if (!a->stopping || event->range.scope_id != a->stop_owner)
        return;
    a->stopping = false;
    stretch_check(a, event->time_ns, a->lone);
    if (late < LATE_NS)
        return;
    a->late.count++;
    ns_add(&a->late.ns, late);
    if (late > a->late.longest.ns) {
        const struct goroutine *g = goroutines_find(&a->analysis->goroutines, a->stop_left_by);
        a->late.pause_ns = ns_between(a->stop_since_ns, event->time_ns);
        a->late.name = g ? g->name : 0;
    }
    longest_note(&a->late.longest, late, a->stop_since_ns, a->stop_left_by);
}

/* MARK: Metrics */

static void metric(struct activity *a, const trail_event *event)
{
    uint64_t value = event->metric.value;
    if (event->metric.metric == TRAIL_METRIC_GOMAXPROCS) {
        advance(a, event->time_ns);
        a->max_procs = value < 65536 ? (int64_t)value : 65536;
        a->most_known = a->inferred ? -1 : a->max_procs;
        if ((uint64_t)a->max_procs > a->sums.procs)
            a->sums.procs = (uint64_t)a->max_procs;
        stretch_check(a, event->time_ns, a->lone);
    } else if (event->metric.metric == TRAIL_METRIC_HEAP_LIVE) {
        if (!a->sums.has_heap)
            a->sums.heap_first = value;
        if (!a->sums.has_heap || value > a->sums.heap_peak) {
            a->sums.heap_peak = value;
            a->sums.heap_peak_ns = event->time_ns;
        }
        a->sums.has_heap = true;
        a->sums.heap_last = value;
    }
}

/* MARK: Tasks */

static trail_task_kind *kind_get(struct activity *a, trail_name name)
{
    trail_task_kind *kind = idmap_find(&a->kind_by_name, name);
    if (kind)
        return kind;
    if (!GROW(a->kinds, a->kind_capacity, a->kind_count + 1))
        return NULL;
    /* NOLINTNEXTLINE(clang-analyzer-unix.MallocSizeof): the row is its first member. */
    kind = calloc(1, sizeof(struct task_kind));
    if (!kind)
        return NULL;
    kind->name = name;
    a->kinds[a->kind_count++] = kind;
    return idmap_put(&a->kind_by_name, name, kind) ? kind : NULL;
}

/* How the event's goroutine spent its time up to the event. */
static struct task_spent spent_by(const struct activity *a, const trail_event *event)
{
    const struct goroutine *g = goroutines_find(&a->analysis->goroutines, event->goroutine);
    struct task_spent spent = {0};
    if (!g)
        return spent;
    spent.known = true;
    spent.exec_ns = g->exec_ns;
    if (g->state == TRAIL_GO_RUNNING)
        ns_add(&spent.exec_ns, ns_between(g->since_ns, event->time_ns));
    spent.ready_ns = g->sched_wait_ns;
    for (uint32_t i = 0; i < g->range_count; i++) {
        const struct range_time *range = &g->range[i];
        if (!text_is(names_text(&a->analysis->names, range->name), "GC mark assist"))
            continue;
        ns_add(&spent.assist_ns, range->ns);
        if (range->on)
            ns_add(&spent.assist_ns, ns_between(range->since_ns, event->time_ns));
    }
    return spent;
}

/* The task that ends is the slowest so far. */
static void note_slowest(const struct activity *a, const struct open_task *task,
                         const trail_event *event)
{
    struct task_kind *kind = (struct task_kind *)task->kind;
    struct task_spent now = spent_by(a, event);
    now.known = now.known && task->before.known && event->goroutine == task->goroutine;
    now.exec_ns = ns_between(task->before.exec_ns, now.exec_ns);
    now.ready_ns = ns_between(task->before.ready_ns, now.ready_ns);
    now.assist_ns = ns_between(task->before.assist_ns, now.assist_ns);
    kind->slowest = now;
    kind->goroutine = event->goroutine;
}

static bool task_begins(struct activity *a, const trail_event *event)
{
    struct open_task *task = objects_get(&a->open_tasks, event->task.id);
    trail_task_kind *kind = kind_get(a, names_of(&a->analysis->names, event->task.type));
    if (!kind || !task)
        return false;
    kind->begun++;
    *task = (struct open_task){.begin_ns = event->time_ns,
                               .kind = kind,
                               .goroutine = event->goroutine,
                               .before = spent_by(a, event)};
    return true;
}

static bool task_ends(struct activity *a, const trail_event *event)
{
    const struct open_task *task = objects_find(&a->open_tasks, event->task.id);
    trail_task_kind *kind =
        task ? task->kind : kind_get(a, names_of(&a->analysis->names, event->task.type));
    if (!kind)
        return false;
    kind->ended++;
    if (!task)
        return true;
    int64_t ns = ns_between(task->begin_ns, event->time_ns);
    if (ns > kind->longest.ns)
        note_slowest(a, task, event);
    longest_note(&kind->longest, ns, task->begin_ns, (int64_t)event->task.id);
    objects_drop(&a->open_tasks, event->task.id);
    return trail_histogram_add(&kind->spread, ns);
}

/* Whether states are inferred from here on. The program's other logs have other categories. */
static void take_log(struct activity *a, const trail_event *log)
{
    const trail_reader *reader = a->analysis->reader;
    if (text_is(trail_reader_string(reader, log->log.category), WIRE_READINESS)) {
        advance(a, log->time_ns);
        a->inferred =
            text_is(trail_reader_string(reader, log->log.message), WIRE_READINESS_INFERRED);
        a->most_known = a->inferred ? -1 : a->max_procs;
    }
}

static bool take_event(void *part, const trail_event *event)
{
    struct activity *a = part;
    switch (event->kind) {
    case TRAIL_SYNC:
        if (a->lost || (event->flags & TRAIL_EVENT_INFERRED)) {
            advance(a, event->time_ns);
            a->known_since_ns = event->time_ns;
            a->lost = event->flags & TRAIL_EVENT_INFERRED;
        }
        return true;
    case TRAIL_LOG:
        take_log(a, event);
        return true;
    case TRAIL_METRIC:
        metric(a, event);
        return true;
    case TRAIL_TASK_BEGIN:
        return task_begins(a, event);
    case TRAIL_TASK_END:
        return task_ends(a, event);
    default:
        if (event->range.range == TRAIL_RANGE_STW)
            stop_event(a, event);
        return true;
    }
}

/* MARK: Window and end */

static void count_from(struct activity *a, int64_t ns)
{
    a->unused_ns = 0;
    a->sums = (trail_activity){
        .procs = (uint64_t)a->max_procs,
        .slice_ns = 1000,
        .has_heap = a->sums.has_heap,
        .heap_first = a->sums.heap_last,
        .heap_peak = a->sums.heap_last,
        .heap_last = a->sums.heap_last,
        .heap_peak_ns = ns,
    };
    memset(a->slices, 0, sizeof a->slices);
    memset(a->stretches, 0, sizeof a->stretches);
    a->slice = 0;
    a->slice_end_ns = ns <= INT64_MAX - 1000 ? ns + 1000 : INT64_MAX;
    a->last_ns = a->stretch_since_ns = a->alone_since_ns = ns;
    a->alone_count = 0;
    a->late = (struct late_stop){0};
    a->stopping = false;
    for (size_t i = 0; i < a->kind_count; i++) {
        trail_histogram_free(&a->kinds[i]->spread);
        *(struct task_kind *)a->kinds[i] = (struct task_kind){.row.name = a->kinds[i]->name};
    }
}

static void trace_begins(void *part, int64_t origin_ns)
{
    struct activity *a = part;
    a->known_since_ns = origin_ns;
    count_from(a, origin_ns);
}

static bool lost(void *part, struct goroutine *g, int64_t now)
{
    struct activity *a = part;
    (void)g;
    (void)now;
    a->lost = true;
    return true;
}

static bool window_begins(void *part, int64_t ns)
{
    count_from(part, ns);
    return true;
}

static bool window_ends(void *part, int64_t ns)
{
    struct activity *a = part;
    if (!a->analysis->counting)
        count_from(a, ns); /* an empty window */
    if (!a->analysis->started)
        return true;
    advance(a, ns);
    stretch_end(a, ns, a->lone);
    if (a->alone && ns_between(a->alone_since_ns, ns) >= ALONE_LEAST_NS &&
        is_known(a, a->alone_since_ns) &&
        !alone_count(a, (int64_t)a->lone, ns_between(a->alone_since_ns, ns)))
        return false;
    if (a->sums.procs == 0)
        a->sums.procs = (uint64_t)a->most_running;
    a->sums.slices = a->slices;
    a->sums.slice_count = a->slice + 1;
    for (size_t i = 0; i <= a->slice; i++) {
        ns_add(&a->sums.running_ns, a->slices[i].running_ns);
        ns_add(&a->sums.runnable_ns, a->slices[i].runnable_ns);
        ns_add(&a->sums.procs_ns, a->slices[i].procs_ns);
    }
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct activity *a = part;
    a->analysis = analysis;
    a->open_tasks = OBJECTS_OF(struct open_task);
    return true;
}

static void drop(void *part)
{
    struct activity *a = part;
    for (size_t i = 0; i < a->kind_count; i++) {
        trail_histogram_free(&a->kinds[i]->spread);
        free(a->kinds[i]);
    }
    free(a->kinds);
    free(a->alone_sums);
    idmap_free(&a->kind_by_name);
    objects_free(&a->open_tasks);
}

const struct analysis_part activity_part = {
    .what = TRAIL_ANALYZE_ACTIVITY,
    .size = sizeof(struct activity),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .trace_begins = trace_begins,
    .window_begins = window_begins,
    .window_ends = window_ends,
    .kinds = PART_RANGES | PART_TASKS | PART_KIND(METRIC) | PART_KIND(LOG) | PART_KIND(SYNC),
    .event = take_event,
    .proc = take_proc,
    .leaves = take_transition,
    .lost = lost,
};

void trail_analysis_activity(const trail_analysis *analysis, trail_activity *activity)
{
    const struct activity *a = analysis_object(analysis, &activity_part);
    *activity = a ? a->sums : (trail_activity){0};
}

size_t trail_analysis_task_kinds(const trail_analysis *analysis,
                                 const trail_task_kind *const **rows)
{
    const struct activity *a = analysis_object(analysis, &activity_part);
    *rows = a ? (const trail_task_kind *const *)a->kinds : NULL;
    return a ? a->kind_count : 0;
}
