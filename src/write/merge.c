/*
 * Merging: passes the events of several readers to the writer of a merge in order of time, on one
 * clock and without shared IDs.
 *
 *     IDs     the first block of 10^9 of source k becomes the k-th, any other the next free one, so
 *             the last digits stay. Ps: blocks of 1000, because numbers from 10^6 on are not Ps
 *     time    that of the source whose first event is the earliest; the others are shifted
 *     state   a trace has one heap, one GOMAXPROCS and one cycle of garbage collection: sums, and a
 *             cycle from where the first of the sources begins one to where the last ends
 *
 * The first generation has the initial statuses of the sources that begin with the trace. Elsewhere
 * readers accept no such statuses: those of a later source are read ahead, from its first
 * generation, and its goroutines and Ps are created when it begins (merge_writer_enter).
 *
 * Memory holds the readers, the tables of one generation, and what is alive.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/export.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/idmap.h"
#include "base/order.h"
#include "base/text.h"
#include "read/wall.h"
#include "wire/merged_ids.h"
#include "wire/wire.h"
#include "write/merge_writer.h"

#define NEWEST 26

#define SECOND_NS INT64_C(1000000000)

/* The clocks of traces that begin further apart than this do not agree. */
#define APART_NS (INT64_C(100) * 86400 * SECOND_NS)

#define PROC_BLOCK UINT64_C(1000)

enum { GOROUTINES, PROCS, THREADS, TASKS, SPACES };

/* The mapping of blocks of a source's IDs to those in the written trace. */
struct blocks {
    struct idmap to; /* block -> its new number + 1, as a pointer */
    uint64_t last, last_to;
};

struct source {
    trail_reader *reader;
    char *name, *label;
    const trail_event *events; /* the current batch */
    long count, at;
    int64_t first_ns, wall_ns; /* the first event's; the latter if has_clock */
    bool has_clock, has_offset, failed, done;
    int64_t offset_ns;
    int64_t begin_ns; /* relative to the first event of the first source */
    int64_t shift_ns;
    int64_t time_ns; /* of the current event, shifted */
    int64_t last_ns; /* of the last event written, shifted */
    bool late, entered;
    bool settled; /* its first generation is over: no more initial statuses follow */
    bool looked_ahead;
    bool in_gc;
    uint64_t metrics[TRAIL_METRICS];
    struct blocks blocks[SPACES];
    trail_event *ahead; /* initial statuses and open ranges, without their texts */
    size_t ahead_count, ahead_capacity;
    trail_error err;
};

struct trail_merge {
    trail_merge_options options;
    struct source *sources[TRAIL_MERGE_MOST];
    size_t count;
    uint64_t next_block[SPACES];
    struct merge_writer writer;
    bool begun;
    size_t in_gc;     /* number of sources in a cycle */
    size_t unsettled; /* number of sources that begin with the trace */
    bool has_clocks;
    trail_clock_snapshot clocks; /* in the time of the written trace */
    trail_error err;
};

/* MARK: IDs */

static uint64_t map_id(struct trail_merge *m, size_t source, unsigned space, uint64_t id)
{
    struct blocks *blocks = &m->sources[source]->blocks[space];
    uint64_t size = space == PROCS ? PROC_BLOCK : ID_BLOCK, block = id / size;
    if (blocks->to.count > 0 && block == blocks->last)
        return blocks->last_to * size + id % size;
    uintptr_t to = (uintptr_t)idmap_find(&blocks->to, block);
    if (to == 0) {
        to = (uintptr_t)(blocks->to.count == 0 ? source : m->next_block[space]++) + 1;
        if (!idmap_put(&blocks->to, block, (void *)to)) /* NOLINT(performance-no-int-to-ptr) */
            error_no_memory(&m->err);
    }
    if (space == PROCS && to > TRAIL_FAKE_PROC / PROC_BLOCK)
        error_set(&m->err, TRAIL_UNSUPPORTED, "the traces have too many different Ps");
    blocks->last = block;
    blocks->last_to = to - 1;
    return blocks->last_to * size + id % size;
}

static int64_t map(struct trail_merge *m, size_t source, unsigned space, int64_t id)
{
    if (id == TRAIL_NONE)
        return id;
    /* In old traces some numbers are lanes, not Ps. */
    bool v1 = !trail_version_is_v2(trail_reader_version(m->sources[source]->reader));
    if (space == PROCS && v1 && id >= TRAIL_FAKE_PROC)
        return id;
    return (int64_t)map_id(m, source, space, (uint64_t)id);
}

static uint64_t map_task(struct trail_merge *m, size_t source, uint64_t id)
{
    return id == TRAIL_BACKGROUND_TASK || id == TRAIL_NO_TASK ? id : map_id(m, source, TASKS, id);
}

static int64_t map_resource(struct trail_merge *m, size_t source, unsigned resource, int64_t id)
{
    static const uint8_t spaces[] = {
        [TRAIL_RESOURCE_GOROUTINE] = GOROUTINES,
        [TRAIL_RESOURCE_PROC] = PROCS,
        [TRAIL_RESOURCE_THREAD] = THREADS,
    };
    return resource == TRAIL_RESOURCE_NONE ? id : map(m, source, spaces[resource], id);
}

/* Replaces the IDs of an event by the IDs of the written trace. */
static void map_event(struct trail_merge *m, size_t k, trail_event *e)
{
    e->thread = map(m, k, THREADS, e->thread);
    e->proc = map(m, k, PROCS, e->proc);
    e->goroutine = map(m, k, GOROUTINES, e->goroutine);
    switch (e->kind) {
    case TRAIL_LABEL:
        e->label.goroutine = map(m, k, GOROUTINES, e->label.goroutine);
        break;
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        e->range.scope_id = map_resource(m, k, e->range.scope, e->range.scope_id);
        break;
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        e->task.id = map_task(m, k, e->task.id);
        e->task.parent = map_task(m, k, e->task.parent);
        break;
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        e->region.task = map_task(m, k, e->region.task);
        break;
    case TRAIL_LOG:
        e->log.task = map_task(m, k, e->log.task);
        break;
    case TRAIL_STATE_TRANSITION:
        e->transition.id = map_resource(m, k, e->transition.resource, e->transition.id);
        break;
    default:
        break;
    }
}

/* MARK: Adding a source */

/* Returns the current event; NULL at the end, or after an error, which is kept. */
static const trail_event *head(struct source *s)
{
    while (s->at == s->count && !s->done) {
        s->count = trail_reader_next_batch(s->reader, &s->events);
        s->at = 0;
        if (s->count < 0) {
            s->err = *trail_reader_error(s->reader);
            s->failed = true;
        }
        s->done = s->count <= 0;
    }
    if (s->done)
        return NULL;
    const trail_event *e = &s->events[s->at];
    if (__builtin_add_overflow(e->time_ns, s->shift_ns, &s->time_ns)) {
        error_set(&s->err, TRAIL_UNSUPPORTED, "the next event is too late for a trace");
        s->failed = s->done = true;
    }
    return s->done ? NULL : e;
}

/* Whether the event is the first one of something that already existed. */
static bool is_status(const trail_event *e)
{
    bool status = e->wire == V2_ProcStatus || e->wire == V2_GoStatus || e->wire == V2_GoStatusStack;
    if (e->kind == TRAIL_STATE_TRANSITION)
        return status && e->transition.from == TRAIL_GO_UNDETERMINED;
    return e->kind == TRAIL_RANGE_ACTIVE;
}

static bool put_ahead(struct source *s, const trail_event *e)
{
    trail_event status = {
        .thread = e->thread,
        .proc = e->proc,
        .goroutine = TRAIL_NONE,
        .kind = e->kind,
        .wire = e->wire,
        .stack = e->stack,
    };
    if (e->kind == TRAIL_RANGE_ACTIVE) {
        status.range.scope = e->range.scope;
        status.range.scope_id = e->range.scope_id;
    } else {
        status.transition.resource = e->transition.resource;
        status.transition.to = e->transition.to;
        status.transition.status = e->transition.status;
        status.transition.id = e->transition.id;
    }
    return APPEND(s->ahead, s->ahead_capacity, s->ahead_count, status);
}

/* Ps first, so that goroutines find theirs; then goroutines, then their ranges. */
static int order_of(const trail_event *e)
{
    return e->wire == V2_ProcStatus ? 0 : e->kind == TRAIL_STATE_TRANSITION ? 1 : 2;
}

static int compare_statuses(const void *a, const void *b)
{
    const trail_event *x = a, *y = b;
    bool range = x->kind == TRAIL_RANGE_ACTIVE;
    return ORDER(order_of(x), order_of(y))
               ?: range ? ORDER(x->range.scope_id, y->range.scope_id)
                        : ORDER(x->transition.id, y->transition.id);
}

/* v1: initial statuses come before all other events. Returns false if out of memory. */
static bool look_at_batch(struct source *s)
{
    for (long i = s->at; i < s->count; i++)
        if (is_status(&s->events[i])) {
            if (!put_ahead(s, &s->events[i]))
                return false;
        } else if (s->events[i].kind != TRAIL_SYNC) {
            break;
        }
    return true;
}

/* v2: initial statuses may be anywhere in the first generation. Returns false if out of memory. */
static bool look_ahead(struct source *s, trail_reader *ahead)
{
    const trail_event *events;
    long count;
    while ((count = trail_reader_next_batch(ahead, &events)) > 0)
        for (long i = 0; i < count; i++) {
            if (events[i].kind == TRAIL_SYNC && events[i].sync.n > 1)
                return true;
            if (is_status(&events[i]) && !put_ahead(s, &events[i]))
                return false;
        }
    return count == 0 || trail_reader_error(ahead)->code != TRAIL_NO_MEMORY;
}

static void free_source(struct source *s)
{
    for (unsigned i = 0; i < SPACES; i++)
        idmap_free(&s->blocks[i].to);
    free(s->ahead);
    free(s->name);
    free(s->label);
    free(s);
}

static bool take_name(const trail_merge *m, struct source *s, const char *name)
{
    s->name = strdup(name ? name : "a trace");
    if (m->options.plain || !name)
        s->label = strdup("");
    else if (asprintf(&s->label, "%.200s: ", name) < 0)
        s->label = NULL;
    return s->name && s->label;
}

/* Initialises a source. Returns 0, or -1 with *err set. */
static int open_source(const trail_merge *m, struct source *s, const trail_merge_source *from,
                       trail_error *err)
{
    trail_clock_snapshot clocks;
    s->reader = from->reader;
    s->has_offset = from->has_offset;
    s->offset_ns = from->offset_ns;
    if (!take_name(m, s, from->name))
        return error_no_memory(err);
    const trail_event *first = head(s);
    bool empty = first && first->kind == TRAIL_SYNC && first->sync.final;
    if (empty) {
        s->at++;
        (void)head(s); /* an error follows the last event */
    }
    if (!first || empty) {
        if (s->failed)
            *err = s->err;
        else
            error_set(err, TRAIL_TRUNCATED, "it has no events");
        return -1;
    }
    s->first_ns = first->time_ns;
    s->has_clock = trail_reader_wall_clock(s->reader, first, &clocks) &&
                   wall_at(&clocks, s->first_ns, &s->wall_ns);
    bool v2 = trail_version_is_v2(trail_reader_version(s->reader));
    s->looked_ahead = v2 && from->ahead;
    if (v2 ? from->ahead && !look_ahead(s, from->ahead) : !look_at_batch(s))
        return error_no_memory(err);
    if (s->ahead_count > 0)
        qsort(s->ahead, s->ahead_count, sizeof *s->ahead, compare_statuses);
    return 0;
}

int trail_merge_add(trail_merge *merge, const trail_merge_source *source, trail_error *err)
{
    trail_error ignored;
    error_clear(&ignored);
    err = err ? err : &ignored;
    error_clear(err);
    if (merge->count == TRAIL_MERGE_MOST) {
        error_set(err, TRAIL_USAGE, "more than %d traces", TRAIL_MERGE_MOST);
        return -1;
    }
    struct source *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(err);
    if (open_source(merge, s, source, err) < 0) {
        free_source(s);
        return -1;
    }
    merge->sources[merge->count++] = s;
    return 0;
}

/* MARK: Alignment */

/* Computes its start relative to the first source's. Returns false with *err set on error. */
static bool place(const trail_merge *m, struct source *s, trail_error *err)
{
    const struct source *base = m->sources[0];
    if (s->has_offset)
        s->begin_ns = s->offset_ns;
    else if (s == base || m->options.align_start)
        s->begin_ns = 0;
    else if (!base->has_clock || !s->has_clock)
        error_set(err, TRAIL_USAGE,
                  "%s has no wall clock to align it by (traces of Go 1.24 and before have none)",
                  base->has_clock ? s->name : base->name);
    else if (__builtin_sub_overflow(s->wall_ns, base->wall_ns, &s->begin_ns) ||
             s->begin_ns > APART_NS || s->begin_ns < -APART_NS)
        error_set(err, TRAIL_USAGE, "by their wall clocks the traces are over 100 days apart");
    return err->code == TRAIL_OK;
}

/* Shifts all sources so that the earliest one's times are unchanged. Returns false with *err set on
 * error. */
static bool align(trail_merge *m, trail_error *err)
{
    const struct source *first = m->sources[0];
    for (size_t k = 0; k < m->count; k++) {
        if (!place(m, m->sources[k], err))
            return false;
        if (m->sources[k]->begin_ns < first->begin_ns)
            first = m->sources[k];
    }
    int64_t zero_ns = first->first_ns;
    if (!trail_version_is_v2(trail_reader_version(first->reader)))
        zero_ns += EVENT_WRITER_V1_SHIFT_NS;
    for (size_t k = 0; k < m->count; k++) {
        struct source *s = m->sources[k];
        int64_t since;
        if (__builtin_sub_overflow(s->begin_ns, first->begin_ns, &since) ||
            __builtin_add_overflow(since, zero_ns, &since) ||
            __builtin_sub_overflow(since, s->first_ns, &s->shift_ns)) {
            error_set(err, TRAIL_USAGE, "a trace begins too far from the others");
            return false;
        }
        s->late = s->begin_ns > first->begin_ns;
        m->unsettled += !s->late;
    }
    return true;
}

/* MARK: One of what each trace has one of */

static uint64_t sum_of(const trail_merge *m, trail_metric metric)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < m->count; k++)
        if (__builtin_add_overflow(sum, m->sources[k]->metrics[metric], &sum))
            return INT64_MAX;
    return sum < INT64_MAX ? sum : INT64_MAX;
}

/* Whether the event is kept: not while other sources are already, or still, in a cycle. */
static bool take_gc(trail_merge *m, struct source *s, const trail_event *e)
{
    bool on = e->wire != V2_GCEnd;
    if (on == s->in_gc)
        return false;
    s->in_gc = on;
    m->in_gc += on ? 1 : (size_t)-1;
    bool changes = m->in_gc == (on ? 1 : 0);
    if (changes && e->wire == V2_GCActive && s->late) {
        merge_writer_system(&m->writer, e->time_ns, V2_GCBegin, 0);
        return false;
    }
    return changes;
}

/* Removes its share of a sum. Returns false if it had none. */
static bool drop_share(struct source *s, trail_metric metric)
{
    bool had = s->metrics[metric] > 0;
    s->metrics[metric] = 0;
    return had;
}

/* Handles the end of a source's trace before that of others. */
static void leave(trail_merge *m, size_t k)
{
    struct source *s = m->sources[k];
    m->in_gc -= s->in_gc;
    struct merge_last_words words = {
        .procs_change = drop_share(s, TRAIL_METRIC_GOMAXPROCS),
        .gc_end = s->in_gc && m->in_gc == 0,
        .procs = sum_of(m, TRAIL_METRIC_GOMAXPROCS),
    };
    s->in_gc = false;
    merge_writer_leave(&m->writer, k, s->last_ns, &words);
    if (drop_share(s, TRAIL_METRIC_HEAP_LIVE))
        merge_writer_system(&m->writer, s->last_ns, V2_HeapAlloc,
                            sum_of(m, TRAIL_METRIC_HEAP_LIVE));
    if (drop_share(s, TRAIL_METRIC_HEAP_GOAL))
        merge_writer_system(&m->writer, s->last_ns, V2_HeapGoal, sum_of(m, TRAIL_METRIC_HEAP_GOAL));
}

/* MARK: Writing */

static void put(trail_merge *m, size_t k, trail_event *e)
{
    struct source *s = m->sources[k];
    map_event(m, k, e);
    if (e->kind == TRAIL_METRIC && e->metric.metric < TRAIL_METRICS) {
        s->metrics[e->metric.metric] = e->metric.value;
        e->metric.value = sum_of(m, e->metric.metric);
    }
    bool gc = e->wire == V2_GCActive || e->wire == V2_GCBegin || e->wire == V2_GCEnd;
    if (!gc || take_gc(m, s, e))
        merge_writer_put(&m->writer, e);
}

/* Creates what a later source contains when it begins. */
static void enter(trail_merge *m, size_t k, int64_t time_ns)
{
    struct source *s = m->sources[k];
    s->entered = true;
    if (!s->late)
        return;
    merge_writer_enter(&m->writer);
    for (size_t i = 0; i < s->ahead_count; i++) {
        trail_event e = s->ahead[i];
        e.time_ns = time_ns;
        put(m, k, &e);
    }
    merge_writer_entered(&m->writer);
    free(s->ahead);
    s->ahead = NULL;
    s->ahead_count = s->ahead_capacity = 0;
}

static void settle(trail_merge *m, struct source *s)
{
    if (!s->settled && !s->late)
        m->unsettled--;
    s->settled = true;
}

/* A Sync is not written, but its clocks apply to the whole trace. */
static void take_sync(trail_merge *m, struct source *s, const trail_event *e, int64_t time_ns)
{
    if (e->sync.n > 1 || e->sync.final)
        settle(m, s);
    int64_t after_ns;
    if (m->has_clocks || !trail_reader_wall_clock(s->reader, e, &m->clocks))
        return;
    m->has_clocks = !__builtin_sub_overflow(m->clocks.trace_ns, e->time_ns, &after_ns) &&
                    !__builtin_add_overflow(time_ns, after_ns, &m->clocks.trace_ns) &&
                    m->clocks.trace_ns > 0;
}

static void begin(trail_merge *m, int64_t time_ns)
{
    event_writer_begin(&m->writer.base, time_ns, m->has_clocks ? &m->clocks : NULL, true);
    m->begun = true;
}

/* Repeated begins of open ranges are left out: readers accept them only in generations of the
 * source. */
static bool is_taken(const struct source *s, const trail_event *e)
{
    if (e->kind == TRAIL_RANGE_ACTIVE && trail_version_is_v2(trail_reader_version(s->reader)))
        return !s->settled && !(s->late && s->looked_ahead);
    return e->kind != TRAIL_SYNC && e->kind != TRAIL_EXPERIMENTAL;
}

static void merge_event(trail_merge *m, size_t k)
{
    struct source *s = m->sources[k];
    const trail_event *from = &s->events[s->at];
    trail_event e = *from;
    e.time_ns = s->time_ns;
    s->last_ns = e.time_ns;
    merge_writer_from(&m->writer, k);
    if (e.kind == TRAIL_SYNC)
        take_sync(m, s, from, e.time_ns);
    else if (!is_status(from) && !trail_version_is_v2(trail_reader_version(s->reader)))
        settle(m, s);
    bool due = m->begun && m->unsettled == 0 && e.kind != TRAIL_SYNC &&
               event_writer_is_due(&m->writer.base, e.time_ns);
    if (!m->begun || due || merge_writer_is_far(&m->writer, e.time_ns))
        begin(m, e.time_ns);
    if (!s->entered)
        enter(m, k, e.time_ns);
    if (is_taken(s, from))
        put(m, k, &e);
    s->at++;
}

/* Returns the source of the next event, and until when it remains the next; -1: none. */
static long next_source(trail_merge *m, int64_t *until_ns, size_t *alive)
{
    long first = -1;
    int64_t first_ns = 0;
    *until_ns = INT64_MAX;
    *alive = 0;
    for (size_t k = 0; k < m->count; k++) {
        const trail_event *e = head(m->sources[k]);
        if (!e)
            continue;
        ++*alive;
        int64_t time_ns = m->sources[k]->time_ns;
        if (first >= 0 && time_ns >= first_ns) {
            *until_ns = time_ns < *until_ns ? time_ns : *until_ns;
            continue;
        }
        if (first >= 0)
            *until_ns = first_ns < *until_ns ? first_ns : *until_ns;
        first = (long)k;
        first_ns = time_ns;
    }
    return first;
}

static bool failed(const trail_merge *m)
{
    return m->err.code != TRAIL_OK || event_writer_failed(&m->writer.base);
}

/* Writes the source's events up to that time. */
static void merge_until(trail_merge *m, size_t k, int64_t until_ns)
{
    struct source *s = m->sources[k];
    do {
        merge_event(m, k);
        if (!head(s) || s->time_ns >= until_ns)
            return;
    } while (!failed(m));
}

static void merge_all(trail_merge *m)
{
    size_t alive;
    int64_t until_ns;
    unsigned steps = 0;
    for (long k; !failed(m) && (k = next_source(m, &until_ns, &alive)) >= 0;) {
        struct source *s = m->sources[k];
        merge_until(m, (size_t)k, until_ns);
        if (!head(s)) {
            settle(m, s);
            if (alive > 1 && !failed(m))
                leave(m, (size_t)k);
        }
        if (m->options.progress && (++steps & 1023) == 0)
            m->options.progress(m->options.progress_context);
    }
}

static trail_string label_of(const struct source *s)
{
    return text_from(s->label);
}

/* Opens the writer with all sources. Returns -1 with *err set on error. */
static int open_writer(trail_merge *m, const trail_sink *sink, trail_error *err)
{
    const struct merge_helper helper = {
        .thread = (int64_t)(m->count * ID_BLOCK),
        .proc = (int64_t)(m->count * PROC_BLOCK),
        .goroutine = (int64_t)(m->count * ID_BLOCK),
    };
    int version = m->options.version ? m->options.version : NEWEST;
    if (merge_writer_init(&m->writer, version, m->count, &helper, sink, err) < 0)
        return -1;
    for (size_t k = 0; k < m->count; k++)
        merge_writer_add(&m->writer, m->sources[k]->reader, label_of(m->sources[k]));
    for (unsigned i = 0; i < SPACES; i++)
        m->next_block[i] = m->count + 1;
    return 0;
}

int trail_merge_write(trail_merge *merge, const trail_sink *sink, trail_convert_stats *stats,
                      trail_error *err)
{
    trail_error ignored;
    trail_convert_stats ignored_stats = {0};
    error_clear(&ignored);
    err = err ? err : &ignored;
    error_clear(err);
    stats = stats ? stats : &ignored_stats;
    *stats = (trail_convert_stats){0};
    if (merge->count == 0)
        error_set(err, TRAIL_USAGE, "no traces to merge");
    if (merge->count == 0 || !align(merge, err) || open_writer(merge, sink, err) < 0)
        return -1;
    merge_all(merge);
    bool good = merge_writer_fini(&merge->writer, stats, err);
    if (good && merge->err.code != TRAIL_OK)
        *err = merge->err;
    return good && merge->err.code == TRAIL_OK ? 0 : -1;
}

/* MARK: Opening, asking, closing */

trail_merge *trail_merge_open(const trail_merge_options *options, trail_error *err)
{
    int version = options->version;
    if (version != 0 && version != 23 && version != 25 && version != 26) {
        (void)error_set(err, TRAIL_USAGE, "a merge is written in format 23, 25 or 26, not in %d",
                        version);
        return NULL;
    }
    trail_merge *m = calloc(1, sizeof *m);
    if (!m) {
        if (err)
            (void)error_no_memory(err);
        return NULL;
    }
    m->options = *options;
    error_clear(&m->err);
    return m;
}

const trail_error *trail_merge_source_error(const trail_merge *merge, size_t number)
{
    const struct source *s = number < merge->count ? merge->sources[number] : NULL;
    return s && s->failed ? &s->err : NULL;
}

void trail_merge_close(trail_merge *merge)
{
    if (!merge)
        return;
    for (size_t k = 0; k < merge->count; k++)
        free_source(merge->sources[k]);
    free(merge);
}
