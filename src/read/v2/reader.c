/*
 * v2 reader: generations one after another, each with its Sync event, its CPU samples and the
 * merged events of its threads (v2/merge.h). Delivered times are strictly increasing, including
 * Sync events: a time that is not later than the last one becomes last + 1.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "read/reader.h"
#include "read/source.h"
#include "read/v2/force.h"
#include "read/v2/generation.h"
#include "read/v2/guess.h"
#include "read/v2/hole.h"
#include "read/v2/merge.h"
#include "read/v2/parallel.h"
#include "read/v2/skip.h"
#include "read/v2/successors.h"
#include "wire/wire.h"

/* Events delivered in one batch if the caller offers no room. */
#define BATCH_EVENTS 128

/* The most events of a step, including the implied ones before and after it where events are
 * lost. */
#define MAX_STEP (V2_MAX_EMIT + 3 * V2_MAX_FORCED)
_Static_assert(READER_ROOM > MAX_STEP, "there is room for a step");

/* Twice the usual length of a generation. */
#define LENGTH_NS INT64_C(2000000000)

/* The most repairs that are kept; v1 has the same limit. */
#define MOST_REPAIRS 10000

enum v2_phase {
    PHASE_LOAD,   /* the next generation must be loaded */
    PHASE_HOLE,   /* it is loaded, and follows damage: the states before it are being ended */
    PHASE_DOUBT,  /* it has lost events: the states that are not certain are being ended */
    PHASE_EVENTS, /* its events are being delivered */
    PHASE_ERROR,  /* the final Sync was delivered; the error is next */
    PHASE_DONE
};

struct v2_reader {
    struct trail_reader base; /* must be first */
    struct v2_generation generation;
    struct v2_order order;
    struct v2_cursor *cursors;
    size_t cursor_count, cursor_capacity;
    struct v2_frontier frontier;
    size_t frontier_capacity;
    v2_merge_fn *merge;
    size_t next_sample;
    uint64_t syncs;
    enum v2_phase phase;
    trail_error behind; /* error after the current generation; TRAIL_OK: none */
    /* A reader that is not strict continues after damage, and returns the first error at the
     * end. */
    trail_error first;
    struct v2_hole hole;
    struct v2_successors successors; /* for a generation with lost events */
    /* A verdict by several threads: see v2/parallel.h. */
    struct v2_parallel *parallel;
    int64_t passed_to; /* the end of the last joined generation; 0: none since the last load */
    uint64_t highest;  /* number of a generation */
    uint64_t lost_generation; /* number of the generation whose rest is skipped; 0: none */
    uint64_t unknown;         /* order.unknown as reported so far */
    trail_repair *repairs;    /* in order */
    size_t repair_count, repair_capacity;
    int64_t last_batch_ns; /* start of the generation's last batch */
    trail_event *full;     /* no step may begin from here on */
    trail_event events[BATCH_EVENTS + MAX_STEP];
};

static struct v2_reader *v2(trail_reader *reader)
{
    return (struct v2_reader *)reader;
}

/* MARK: Damage */

/*
 * Takes r->base.error if reading can continue after it, keeping the first one for the end.
 * Otherwise returns false and leaves the error in place.
 */
static bool note_damage(struct v2_reader *r)
{
    trail_error *err = &r->base.error;
    if (r->order.strict || !v2_is_damage(err))
        return false;
    if (r->first.code == TRAIL_OK)
        r->first = *err;
    error_clear(err);
    return true;
}

/* Counts the known damage of the loaded generation. */
static void note_faults(struct v2_reader *r)
{
    const trail_error *faults[] = {&r->generation.fault, &r->behind};
    for (size_t i = 0; i < 2; i++) {
        if (faults[i]->code == TRAIL_OK)
            continue;
        r->base.error = *faults[i];
        if (!note_damage(r))
            error_clear(&r->base.error);
    }
}

/* Takes the report of an unknown ID in a delivered event. */
static void note_unknown(struct v2_reader *r)
{
    if (r->unknown == r->order.unknown)
        return;
    r->unknown = r->order.unknown;
    r->base.error.generation = (int64_t)r->generation.number;
    (void)note_damage(r);
}

/* MARK: Cursors */

static void set_position(struct v2_reader *r, const struct v2_cursor *c)
{
    trail_error *err = &r->base.error;
    err->offset = r->generation.offset + (c->event - r->generation.buffer);
    err->generation = (int64_t)r->generation.number;
    err->thread = c->thread;
    if (err->time_ns == TRAIL_NOWHERE)
        err->time_ns = c->last_ns;
}

static int bad_event(struct v2_reader *r, const struct v2_cursor *c)
{
    char message[128];
    v2_decode_problem(c->event, c->end, message, sizeof message);
    error_set(&r->base.error, TRAIL_CORRUPT, "%s", message);
    set_position(r, c);
    return -1;
}

/*
 * Returns an upper bound for the times of sound events in the cursor's batch: when the thread's
 * next batch begins; INT64_MAX if unknown. Chance bytes that happen to be a well-formed event may
 * have any time.
 */
static int64_t time_of_next_batch(const struct v2_reader *r, const struct v2_cursor *c)
{
    const struct v2_generation *g = &r->generation;
    uint64_t ticks = c->batch != V2_NO_BATCH ? g->batches[c->batch].time
                                             : v2_generation_next_time(g, (uint64_t)c->thread);
    int64_t next_ns = v2_ticks_to_ns(g->ns_per_tick, ticks);
    return ticks > 0 && next_ns >= c->batch_ns ? next_ns : INT64_MAX;
}

static int64_t ns_later(int64_t time_ns, int64_t ns)
{
    int64_t later_ns;
    return __builtin_add_overflow(time_ns, ns, &later_ns) ? INT64_MAX : later_ns;
}

static int64_t bound_of(const struct v2_reader *r, const struct v2_cursor *c)
{
    if (!r->order.lenient)
        return INT64_MAX;
    int64_t next_ns = time_of_next_batch(r, c);
    return next_ns != INT64_MAX ? next_ns : ns_later(r->last_batch_ns, LENGTH_NS);
}

/*
 * Moves the cursor to the first event of its thread's next batch that is not empty. Returns 1, 0 if
 * there is none, -1 if the event is malformed.
 */
static int next_batch_of(struct v2_reader *r, struct v2_cursor *c)
{
    const struct v2_generation *g = &r->generation;
    while (c->batch != V2_NO_BATCH) {
        const struct v2_batch *batch = &g->batches[c->batch];
        c->batch = batch->next;
        c->gaps = batch->gaps;
        if (batch->size == 0)
            continue;
        c->at = g->buffer + batch->at;
        c->end = c->at + batch->size;
        c->batch_ns = v2_ticks_to_ns(g->ns_per_tick, batch->time);
        c->looked_at = false;
        c->bound_ns = bound_of(r, c);
        return v2_cursor_start(&r->order.clock, c) ? 1 : bad_event(r, c);
    }
    return 0;
}

/* MARK: Generations */

/* Returns the cursor of a thread in this generation; a new one is before its first batch. */
static struct v2_cursor *cursor_of(struct v2_reader *r, uint64_t thread)
{
    struct v2_m *m = v2_order_m(&r->order, thread);
    if (!m)
        return NULL;
    if (m->cursor_epoch == r->base.tables.epoch)
        return &r->cursors[m->cursor];
    if (!GROW(r->cursors, r->cursor_capacity, r->cursor_count + 1))
        return NULL;
    m->cursor_epoch = r->base.tables.epoch;
    m->cursor = (uint32_t)r->cursor_count;
    struct v2_cursor *c = &r->cursors[r->cursor_count++];
    *c = (struct v2_cursor){
        .m = thread == V2_NO_THREAD ? &r->order.nobody : m,
        .thread = (int64_t)thread,
        .batch = V2_NO_BATCH,
    };
    return c;
}

/* Links the batches of each thread; cursors are in the order of their threads' first batches. */
static int link_batches(struct v2_reader *r)
{
    struct v2_generation *g = &r->generation;
    r->cursor_count = 0;
    for (uint32_t i = 0; i < g->batch_count; i++) {
        struct v2_cursor *c = cursor_of(r, g->batches[i].thread);
        if (!c)
            return error_no_memory(&r->base.error);
        if (c->batch == V2_NO_BATCH)
            c->batch = i;
        else
            g->batches[c->last_batch].next = i;
        c->last_batch = i;
    }
    return 0;
}

/* Whether the generation ends in damage, where batches of any thread may be lost. */
static bool is_cut(const struct v2_reader *r)
{
    return !r->order.strict && r->behind.code != TRAIL_OK;
}

/*
 * Like next_batch_of, but a reader that is not strict skips batches whose first event is malformed.
 * Sets *lost if events between this batch and the next are lost.
 */
static int next_good_batch_of(struct v2_reader *r, struct v2_cursor *c, bool *lost)
{
    const struct v2_generation *g = &r->generation;
    uint32_t gaps = c->gaps;
    int started;
    do {
        started = next_batch_of(r, c);
        *lost |= started < 0;
        r->generation.events_lost |= started < 0;
    } while (started < 0 && note_damage(r));
    if (g->events_lost || is_cut(r))
        *lost |= started > 0 ? c->gaps != gaps : g->gap_count > gaps || is_cut(r);
    return started;
}

/* Moves every cursor to its first event and into the frontier. */
static int fill_frontier(struct v2_reader *r)
{
    struct v2_frontier *f = &r->frontier;
    if (!GROW(f->heads, r->frontier_capacity, r->cursor_count))
        return error_no_memory(&r->base.error);
    f->count = 0;
    EACH(struct v2_cursor, c, r->cursors, r->cursor_count) {
        bool lost = false;
        int started = next_good_batch_of(r, c, &lost);
        if (started < 0)
            return -1;
        if (lost)
            v2_force_unbind(c->m);
        if (started > 0)
            v2_frontier_push(f, c);
    }
    return 0;
}

/* Returns the place for the next event, whose time is made later than the previous one's. */
static trail_event *deliver(struct v2_reader *r, int64_t time_ns)
{
    struct v2_output *o = &r->order.output;
    int64_t later_ns = (int64_t)((uint64_t)o->last_ns + 1);
    o->last_ns = time_ns > o->last_ns ? time_ns : later_ns;
    *o->next = (trail_event){
        .time_ns = o->last_ns,
        .thread = TRAIL_NONE,
        .proc = TRAIL_NONE,
        .goroutine = TRAIL_NONE,
    };
    return o->next++;
}

static void deliver_sync(struct v2_reader *r, int64_t time_ns, bool final)
{
    trail_event *e = deliver(r, time_ns);
    e->kind = TRAIL_SYNC;
    e->sync.n = ++r->syncs;
    e->sync.final = final;
    e->sync.snapshot = !final && r->generation.has_snapshot ? &r->generation.snapshot : NULL;
}

static void count_generation(struct v2_reader *r)
{
    const struct tables *tables = &r->base.tables;
    trail_reader_stats *stats = &r->base.stats;
    stats->strings += tables->string_ids.count;
    stats->stacks += tables->stack_ids.count;
    stats->cpu_samples += r->generation.sample_count;
}

/*
 * An error in a generation that is truncated (up to 1.25) is mostly caused by that: tables come
 * last. The message remains Go's; the truncation is appended.
 */
static void append_later_error(struct v2_reader *r)
{
    if (r->behind.code == TRAIL_NO_MEMORY)
        r->base.error = r->behind; /* nothing is wrong with the generation */
    char *message = r->base.error.message;
    size_t size = strlen(message);
    if (r->behind.code != TRAIL_OK && r->behind.code != TRAIL_NO_MEMORY)
        (void)snprintf(message + size, TRAIL_MESSAGE_MAX - size,
                       " (the generation is incomplete: at offset %#" PRIx64 ", %.200s)",
                       (uint64_t)r->behind.offset, r->behind.message);
}

/* Whether the next event of the thread, if it has one in this generation, is in the file. */
static bool is_whole(void *context, const struct v2_m *m)
{
    const struct v2_reader *r = context;
    if (m->cursor_epoch != r->base.tables.epoch)
        return r->generation.gap_count == 0 && !is_cut(r);
    const struct v2_cursor *c = &r->cursors[m->cursor];
    return c->pending || (r->generation.gap_count == c->gaps && !is_cut(r));
}

/* Notes which threads have events, and which of these events are too late. */
static void set_bounds(struct v2_reader *r)
{
    struct v2_frontier *f = &r->frontier;
    size_t count = f->count;
    for (size_t i = 0; i < r->cursor_count; i++)
        r->cursors[i].pending = false;
    f->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct v2_cursor *c = f->heads[i].cursor;
        c->pending = true;
        c->bound_ns = bound_of(r, c);
        v2_frontier_push(f, c);
    }
}

/* From here on, an event that waits for one missing from the file is detected. */
static bool find_successors(struct v2_reader *r)
{
    if (r->order.successors)
        return true;
    r->order.successors = &r->successors;
    return v2_successors_find(&r->successors, &r->generation);
}

/* From here on, events of the generation may be lost. */
static int doubt(struct v2_reader *r)
{
    if (r->order.lenient)
        return 0;
    r->order.lenient = r->generation.events_lost = true;
    r->order.usual_end_ns = INT64_MAX;
    r->phase = PHASE_DOUBT;
    set_bounds(r); /* replaces usual_end_ns with exact bounds */
    return find_successors(r) && v2_hole_begin_within(&r->hole, &r->order, is_whole, r)
               ? 0
               : error_no_memory(&r->base.error);
}

static int64_t last_batch_of(const struct v2_generation *g)
{
    uint64_t last = 0;
    for (size_t i = 0; i < g->batch_count; i++)
        last = g->batches[i].time > last ? g->batches[i].time : last;
    return v2_ticks_to_ns(g->ns_per_tick, last);
}

/* Whether no error was found so far, including those that only a strict reader stops at. */
static bool is_undamaged(const struct v2_reader *r)
{
    const struct v2_generation *g = &r->generation;
    return r->first.code == TRAIL_OK && r->behind.code == TRAIL_OK && g->fault.code == TRAIL_OK &&
           !g->events_lost && g->lost_bytes == 0 && g->text_bytes == 0 && r->order.misused == 0 &&
           r->order.unknown == 0;
}

/* Delivers the Sync of the generation that is loaded, and makes its events ready. */
static int begin_generation(struct v2_reader *r)
{
    struct v2_generation *g = &r->generation;
    r->next_sample = 0;
    r->last_batch_ns = last_batch_of(g);
    /* Late events are normal, because a thread may be idle for long. They are doubted only after
     * damage. */
    r->order.usual_end_ns = r->order.strict || is_undamaged(r)
                                ? INT64_MAX
                                : ns_later(r->last_batch_ns, r->order.clock.moment_ns);
    r->order.incomplete = g->fault.code != TRAIL_OK || r->behind.code != TRAIL_OK;
    r->order.looked_ns = INT64_MIN;
    r->order.successors = NULL;
    r->order.lenient = false;
    count_generation(r);
    if (link_batches(r) < 0 || fill_frontier(r) < 0)
        return -1;
    r->phase = PHASE_EVENTS;
    deliver_sync(r, v2_ticks_to_ns(g->ns_per_tick, g->min_time), false);
    if (r->order.strict || !(g->events_lost || is_cut(r)))
        return 0;
    r->order.output.next[-1].flags = TRAIL_EVENT_INFERRED;
    return doubt(r);
}

/* Delivers the final Sync; the first error, if any, is next. */
static int end_trace(struct v2_reader *r)
{
    if (r->base.error.code == TRAIL_OK)
        r->base.error = r->first;
    r->phase = r->base.error.code == TRAIL_OK ? PHASE_DONE : PHASE_ERROR;
    deliver_sync(r, r->order.output.last_ns, true);
    return 0;
}

/* Skips damaged bytes after the current generation. Returns false if nothing follows them. */
static bool resume(struct v2_reader *r)
{
    struct v2_generation *g = &r->generation;
    r->base.error = r->behind;
    if (!note_damage(r) || g->next_trace >= 0 || !v2_generation_resume(g, &r->base.error))
        return false;
    r->lost_generation = g->number;
    error_clear(&r->behind);
    return true;
}

/* Loads the next generation whose events can be used. */
static enum v2_load load_next(struct v2_reader *r)
{
    struct v2_generation *g = &r->generation;
    for (;;) {
        if (r->behind.code != TRAIL_OK && !resume(r))
            return V2_LOAD_FAILED;
        enum v2_load loaded = v2_generation_load(g, &r->base.error, &r->behind);
        if (loaded == V2_NO_MORE || (loaded == V2_LOADED && g->number != r->lost_generation))
            return loaded;
        if (loaded == V2_LOAD_FAILED) {
            append_later_error(r);
            r->behind = g->used == 0 ? r->base.error : r->behind;
            if (!note_damage(r))
                return loaded;
        }
        g->lost_bytes += g->used;
        r->lost_generation = g->number;
    }
}

/* MARK: Generations read alone */

struct v2_alone {
    struct v2_reader reader; /* only its order and stats are kept, and the generation's numbers */
    struct v2_guess guess;
    uint64_t events;
    trail_maker maker;
};

static int load(struct v2_reader *r);
static int merge(struct v2_reader *r);
static void release(struct v2_reader *r);
static void init(struct v2_reader *r, int version, bool strict);

/* Takes the bytes of the generation and the state of its threads. Returns false if it cannot be
 * used. */
static bool begin_alone(struct v2_alone *a, const trail_source *source,
                        const struct v2_extent *extent)
{
    struct v2_reader *r = &a->reader;
    struct v2_generation *g = &r->generation;
    r->order.guess = &a->guess;
    r->order.initial_generation = extent->number + 1; /* neither this generation nor 0 */
    if (extent->number == UINT64_MAX || !GROW(g->buffer, g->capacity, (size_t)extent->size) ||
        source_again(source, extent->offset, g->buffer, (size_t)extent->size, NULL) < 0)
        return false;
    g->offset = (int64_t)extent->offset;
    g->filled = (size_t)extent->size;
    g->at_end = true;
    r->order.output.next = r->events;
    if (load(r) < 0 || r->phase != PHASE_EVENTS || r->behind.code != TRAIL_OK ||
        g->number != extent->number || g->used != extent->size)
        return false;
    EACH(const struct v2_cursor, c, r->cursors, r->cursor_count) {
        if (c->event && c->m != &r->order.nobody &&
            !v2_guess_thread(&r->order, c->m, c->event, c->end))
            return false;
    }
    return true;
}

/* Orders the events and discards them. Returns false if anything is wrong. */
static bool read_alone(struct v2_alone *a)
{
    struct v2_reader *r = &a->reader;
    r->full = r->events + BATCH_EVENTS;
    do {
        a->events += (uint64_t)(r->order.output.next - r->events);
        r->order.output.next = r->events;
        if (merge(r) < 0)
            return false;
    } while (r->phase == PHASE_EVENTS);
    a->events += (uint64_t)(r->order.output.next - r->events);
    return r->base.stats.generations == 1 && is_undamaged(r);
}

struct v2_alone *v2_alone_read(const trail_source *source, int version, bool strict,
                               const struct v2_extent *extent)
{
    struct v2_alone *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    init(&a->reader, version, strict);
    bool good = begin_alone(a, source, extent) && read_alone(a);
    a->maker = a->reader.base.tables.maker;
    release(&a->reader);
    if (good)
        return a;
    v2_alone_free(a);
    return NULL;
}

void v2_alone_free(struct v2_alone *alone)
{
    if (!alone)
        return;
    v2_order_fini(&alone->reader.order);
    v2_guess_free(&alone->guess);
    free(alone);
}

/* Whether the time is far from the limits of its range, so that arithmetic with it does not
 * wrap. */
static bool is_usual(int64_t ns)
{
    return ns >= 0 && ns < INT64_MAX / 2;
}

/* Whether the generation, decoded alone, is what the reader would have decoded at its position. */
static bool continues(const struct v2_reader *r, const struct v2_alone *a)
{
    return r->lost_generation == 0 && r->behind.code == TRAIL_OK &&
           a->reader.generation.number > r->highest && is_usual(r->order.output.last_ns) &&
           is_usual(a->reader.order.output.last_ns) &&
           v2_guess_holds(&a->guess, &r->order, &a->reader.order);
}

/* Adds the statistics of the generation. */
static void add_stats(trail_reader_stats *sum, const struct v2_reader *r, bool good)
{
    const trail_reader_stats *stats = &r->base.stats;
    sum->generations++;
    sum->generations_alone++;
    sum->strings += stats->strings;
    sum->stacks += stats->stacks;
    sum->cpu_samples += stats->cpu_samples;
    sum->bytes = stats->bytes;
    sum->good_bytes = good ? stats->good_bytes : sum->good_bytes;
}

/*
 * Delivers the Sync of a joined generation, and one event that stands for the rest. Each time is at
 * least one more than the previous one, so the last one depends on the number of events.
 */
static void deliver_ends(struct v2_reader *r, const struct v2_alone *a)
{
    const struct v2_generation *g = &a->reader.generation;
    int64_t last_ns = r->order.output.last_ns + (int64_t)a->events;
    deliver_sync(r, v2_ticks_to_ns(g->ns_per_tick, g->min_time), false);
    if (a->events < 2)
        return;
    last_ns = last_ns > a->reader.order.output.last_ns ? last_ns : a->reader.order.output.last_ns;
    deliver(r, last_ns)->kind = TRAIL_BAD;
    r->base.stats.events += a->events - 2;
}

/*
 * Takes the next generation if another thread has read it. Returns 1 if so, 0 if it must be read,
 * -1 on an error.
 */
static int join(struct v2_reader *r)
{
    struct v2_generation *g = &r->generation;
    struct v2_extent extent;
    uint64_t at = r->passed_to ? (uint64_t)r->passed_to : (uint64_t)g->offset + g->used;
    struct v2_alone *a = v2_parallel_take(r->parallel, at, &extent);
    int result = a && continues(r, a);
    if (result) {
        const struct v2_generation *joined = &a->reader.generation;
        g->number = r->highest = joined->number;
        g->has_snapshot = joined->has_snapshot;
        g->snapshot = joined->snapshot;
        g->usual_ns_per_tick = joined->ns_per_tick;
        g->time_ticks = joined->time_ticks < g->time_ticks ? joined->time_ticks : g->time_ticks;
        if (r->base.tables.maker.made_by == TRAIL_MADE_BY_GO)
            r->base.tables.maker = a->maker;
        add_stats(&r->base.stats, &a->reader, r->first.code == TRAIL_OK);
        r->passed_to = (int64_t)(extent.offset + extent.size);
        if (v2_guess_join(&a->guess, &r->order, &a->reader.order))
            deliver_ends(r, a);
        else
            result = error_no_memory(&r->base.error);
    }
    v2_alone_free(a);
    return result;
}

/* Loads the next generation and begins it, or ends the trace. */
static int load(struct v2_reader *r)
{
    struct v2_generation *g = &r->generation;
    if (!reader_settle(&r->base)) {
        r->phase = PHASE_DONE;
        return 0;
    }
    if (r->parallel) {
        int joined = join(r);
        if (joined != 0)
            return joined < 0 ? -1 : 0;
        if (r->passed_to && v2_generation_pass(g, r->passed_to, &r->base.error) < 0)
            return -1;
        r->passed_to = 0;
    }
    enum v2_load loaded = load_next(r);
    r->base.stats.bytes = (uint64_t)(g->offset + (int64_t)g->filled);
    if (loaded != V2_LOADED)
        return end_trace(r);
    if (!v2_order_generation(&r->order, g->number, g->ns_per_tick))
        return error_no_memory(&r->base.error);
    r->highest = g->number > r->highest ? g->number : r->highest;
    note_faults(r);
    if (r->lost_generation == 0)
        return begin_generation(r);
    r->lost_generation = 0;
    r->base.stats.holes++;
    r->phase = PHASE_HOLE;
    return v2_hole_begin(&r->hole, &r->order) ? 0 : error_no_memory(&r->base.error);
}

/* MARK: Merging */

static void deliver_sample(struct v2_reader *r)
{
    const struct v2_sample *sample = &r->generation.samples[r->next_sample++];
    trail_event *e = deliver(r, sample->time_ns);
    e->kind = TRAIL_STACK_SAMPLE;
    e->wire = V2_CPUSample;
    e->thread = sample->thread;
    e->proc = sample->proc;
    e->goroutine = sample->goroutine;
    e->stack = sample->stack;
}

static int failed_at(struct v2_reader *r, const struct v2_cursor *c)
{
    set_position(r, c);
    return -1;
}

/* No thread can continue: reports the earliest event, with its arguments. */
static int stuck(struct v2_reader *r, const struct v2_cursor *c)
{
    const struct v2_type_info *type = &v2_types[*c->event];
    struct v2_wire_event wire;
    char args[160] = "";
    size_t n = 0;
    (void)v2_decode_any(c->event, c->end, &wire);
    for (unsigned i = 1; i < type->args && n < sizeof args; i++)
        n += (size_t)snprintf(args + n, sizeof args - n, " %s=%" PRIu64, type->arg[i],
                              wire.arg[i - 1]);
    error_set(&r->base.error, TRAIL_INCONSISTENT,
              "broken trace: failed to advance: frontier: %zu threads wait, the earliest is M "
              "%" PRId64 " [%s time=%" PRId64 "%s]",
              r->frontier.count, c->thread, type->name, c->last_ns, args);
    return failed_at(r, c);
}

/*
 * The next event on its thread is malformed: Go's reader loses the one before it, too. A reader
 * that is not strict keeps it.
 */
static void drop_step_before(struct v2_reader *r)
{
    if (r->order.strict)
        r->order.output = r->order.before;
}

/* Entry i is at the end of its batch: moves its thread to the next batch, or removes it. */
static int end_of_batch(struct v2_reader *r, size_t i, bool lost)
{
    struct v2_cursor *c = r->frontier.heads[i].cursor;
    int next = next_good_batch_of(r, c, &lost);
    if (next < 0)
        drop_step_before(r);
    if (next > 0)
        v2_frontier_update(&r->frontier, i);
    else
        v2_frontier_remove(&r->frontier, i);
    if (next < 0 || (lost && !r->order.strict && doubt(r) < 0))
        return -1;
    if (lost && r->order.lenient)
        v2_force_forget(&r->order, c->m);
    return 0;
}

static int malformed(struct v2_reader *r, size_t which)
{
    drop_step_before(r);
    if (bad_event(r, r->frontier.heads[which].cursor) == 0 || !note_damage(r))
        return -1;
    return end_of_batch(r, which, true);
}

/* Notes that an event contradicts others. Returns whether reading continues with the state that it
 * requires. */
static bool becomes_lenient(struct v2_reader *r)
{
    if (r->order.strict || !v2_is_damage(&r->base.error))
        return false;
    if (!r->order.lenient && !r->base.options.repair)
        (void)note_damage(r);
    return true;
}

/* Counts that the model is made to fit an event, and stores the repair if requested. */
static bool add_repair(struct v2_reader *r, trail_repair_kind kind, const struct v2_cursor *c)
{
    trail_reader_stats *stats = &r->base.stats;
    stats->repairs++;
    stats->repairs_by_kind[kind]++;
    if (!r->base.options.repair || r->repair_count == MOST_REPAIRS)
        return true;
    if (!GROW(r->repairs, r->repair_capacity, r->repair_count + 1))
        return error_no_memory(&r->base.error) == 0;
    r->repairs[r->repair_count++] = (trail_repair){
        .kind = kind,
        .offset = r->generation.offset + (c->event - r->generation.buffer),
        .proc = c->m->p_id,
        .goroutine = c->m->g_id,
        .time_ns = c->last_ns,
    };
    return true;
}

/* An event waits or has failed, and others are lost: makes the model fit it. */
static int force(struct v2_reader *r, size_t which, trail_repair_kind kind)
{
    error_clear(&r->base.error);
    if (!r->order.lenient)
        return doubt(r); /* and then offers the event again */
    if (!add_repair(r, kind, r->frontier.heads[which].cursor))
        return -1;
    enum v2_merge merged = v2_merge_forced(&r->order, &r->frontier, which);
    if (r->base.error.code != TRAIL_OK && !v2_is_damage(&r->base.error))
        return -1;
    error_clear(&r->base.error);
    if (merged == V2_MERGE_MALFORMED)
        return malformed(r, which);
    return merged == V2_MERGE_END ? end_of_batch(r, which, false) : 0;
}

/* Whether damage made the event late: what follows it is then damaged, too. */
static bool is_too_late(const struct v2_reader *r, struct v2_cursor *c)
{
    int64_t next_ns = time_of_next_batch(r, c);
    struct v2_cursor rest = *c;
    if (next_ns != INT64_MAX)
        return c->last_ns > next_ns;
    if (c->looked_at)
        return false;
    c->looked_at = true;
    while (v2_force_is_plausible(&r->order, &rest)) {
        if (rest.at == rest.end)
            return false;
        rest.event = rest.at;
        rest.at = v2_decode_any(rest.event, rest.end, &rest.wire);
        if (!rest.at)
            return true;
    }
    return true;
}

/*
 * An event is late by a moment: all batches have begun, or all events before it wait. The cause may
 * be damage.
 */
static int late(struct v2_reader *r, struct v2_cursor *c)
{
    int64_t since_ns = v2_ticks_to_ns(r->generation.ns_per_tick, c->wire.ticks);
    r->order.looked_ns = c->last_ns;
    if (r->frontier.heads[0].time_ns < c->last_ns && !find_successors(r))
        return error_no_memory(&r->base.error);
    /* Without known damage, a clock that went back is as likely. */
    if (r->order.usual_end_ns == INT64_MAX)
        return 0;
    r->order.usual_end_ns = ns_later(c->last_ns, r->order.clock.moment_ns);
    if (since_ns < r->order.clock.moment_ns || !is_too_late(r, c))
        return 0;
    error_set(&r->base.error, TRAIL_CORRUPT, "the time of an event is damaged");
    set_position(r, c);
    return note_damage(r) ? doubt(r) : -1;
}

/* Handles the result of a merge. */
static int merged_events(struct v2_reader *r, enum v2_merge merged, size_t which)
{
    struct v2_cursor *c = r->frontier.heads[which].cursor;
    switch (merged) {
    case V2_MERGE_PAUSE:
        break;
    case V2_MERGE_END:
        return end_of_batch(r, which, false);
    case V2_MERGE_STUCK:
        (void)stuck(r, c);
        return becomes_lenient(r) ? force(r, which, TRAIL_REPAIR_SEQUENCE) : -1;
    case V2_MERGE_FAILED:
        (void)failed_at(r, c);
        return becomes_lenient(r) ? force(r, which, TRAIL_REPAIR_STATE) : -1;
    case V2_MERGE_LATE:
        return late(r, c);
    case V2_MERGE_MALFORMED:
        return malformed(r, which);
    }
    return 0;
}

/* Where events are lost: takes one event, and ends the states that are not certain. */
static int merge_lenient(struct v2_reader *r)
{
    size_t which = 0;
    const trail_event *begin = r->order.output.next;
    const struct v2_cursor *c = r->frontier.heads[0].cursor;
    enum v2_merge merged = V2_MERGE_MALFORMED;
    if (c->last_ns <= c->bound_ns)
        merged = v2_merge_one(&r->order, &r->frontier, &which);
    if (merged_events(r, merged, which) < 0)
        return -1;
    v2_hole_check(&r->order, begin);
    return 0;
}

/* Delivers events of the frontier, up to the next CPU sample. */
static int merge_events(struct v2_reader *r)
{
    const struct v2_generation *g = &r->generation;
    int64_t until_ns = r->order.usual_end_ns;
    size_t which = 0;
    if (r->order.lenient)
        return merge_lenient(r);
    if (r->frontier.heads[0].time_ns > until_ns)
        return merged_events(r, V2_MERGE_LATE, which);
    if (r->next_sample < g->sample_count && g->samples[r->next_sample].time_ns < until_ns)
        until_ns = g->samples[r->next_sample].time_ns;
    enum v2_merge merged = r->merge(&r->order, &r->frontier, until_ns, r->full, &which);
    return merged_events(r, merged, which);
}

static bool sample_comes_first(const struct v2_reader *r)
{
    const struct v2_generation *g = &r->generation;
    return r->next_sample < g->sample_count &&
           (r->frontier.count == 0 ||
            g->samples[r->next_sample].time_ns < r->frontier.heads[0].time_ns);
}

/* All events of the generation were delivered. Only in an undamaged generation are they
 * complete. */
static void count_whole_generation(struct v2_reader *r)
{
    const struct v2_generation *g = &r->generation;
    if (g->fault.code != TRAIL_OK || g->events_lost || (r->behind.code != TRAIL_OK && g->salvage))
        return;
    r->base.stats.generations++;
    if (r->first.code == TRAIL_OK)
        r->base.stats.good_bytes = (uint64_t)(g->offset + (int64_t)g->used);
}

/* Delivers events until the batch is full or the generation ends. Returns -1 on an error. */
static int merge(struct v2_reader *r)
{
    while (r->order.output.next < r->full && r->phase == PHASE_EVENTS) {
        if (sample_comes_first(r)) {
            deliver_sample(r);
        } else if (r->frontier.count > 0) {
            if (merge_events(r) < 0)
                return -1;
        } else {
            count_whole_generation(r);
            r->lost_generation = r->generation.events_lost ? r->generation.number : 0;
            r->phase = PHASE_LOAD;
            return 0;
        }
    }
    return 0;
}

static long v2_next_batch(trail_reader *reader, const trail_event **events)
{
    struct v2_reader *r = v2(reader);
    trail_event *batch = reader->room ? reader->room : r->events;
    r->full = batch + (reader->room ? reader->room_size - MAX_STEP : BATCH_EVENTS);
    r->order.output.next = batch;
    *events = batch;
    while (r->order.output.next == batch) {
        int result = 0;
        switch (r->phase) {
        case PHASE_LOAD:
            result = load(r);
            break;
        case PHASE_HOLE:
            if (v2_hole_emit(&r->hole, &r->order, r->full))
                result = begin_generation(r);
            break;
        case PHASE_DOUBT:
            if (v2_hole_emit(&r->hole, &r->order, r->full))
                r->phase = PHASE_EVENTS;
            break;
        case PHASE_EVENTS:
            result = merge(r);
            break;
        case PHASE_ERROR:
            return -1;
        case PHASE_DONE:
            return 0;
        }
        if (result < 0) {
            append_later_error(r);
            r->unknown = r->order.unknown; /* report this error, not an unknown ID */
            r->lost_generation = r->generation.number;
            r->phase = note_damage(r) ? PHASE_LOAD : PHASE_ERROR;
        } else {
            note_unknown(r);
        }
    }
    long count = r->order.output.next - batch;
    reader->stats.events += (uint64_t)count;
    reader->stats.wire_events = r->order.steps;
    reader->stats.misused = r->order.misused;
    reader->stats.lost_bytes = r->generation.lost_bytes;
    reader->stats.text_bytes = r->generation.text_bytes;
    reader->stats.text_offset = r->generation.text_offset;
    reader->stats.next_trace = r->generation.next_trace;
    reader->stats.frequency_assumed = r->generation.frequency_assumed;
    reader->stats.unstopped = r->generation.unstopped;
    return count;
}

static size_t v2_experiment_batches(const trail_reader *reader,
                                    const trail_experiment_batch **batches)
{
    const struct v2_reader *r = (const struct v2_reader *)reader;
    *batches = r->generation.experiments;
    return r->generation.experiment_count;
}

static size_t v2_repairs(const trail_reader *reader, const trail_repair **repairs)
{
    const struct v2_reader *r = (const struct v2_reader *)reader;
    *repairs = r->repairs;
    return r->repair_count;
}

/* Frees everything except the order. */
static void release(struct v2_reader *r)
{
    v2_parallel_close(r->parallel);
    v2_generation_free(&r->generation);
    v2_hole_free(&r->hole);
    v2_successors_free(&r->successors);
    tables_free(&r->base.tables);
    free(r->repairs);
    free(r->cursors);
    free(r->frontier.heads);
}

static void v2_close(trail_reader *reader)
{
    struct v2_reader *r = v2(reader);
    release(r);
    v2_order_fini(&r->order);
    free(r);
}

/*
 * Skips what options.from_ns excludes, if the source can be read at an offset. Returns -1 on an
 * error.
 */
static int skip_generations(struct v2_reader *r, trail_error *err)
{
    struct v2_skip skip;
    if (r->base.options.from_ns <= 0 ||
        !v2_skip_find(r->base.source, r->base.version, r->base.options.from_ns, &skip))
        return 0;
    if (source_skip(r->base.source, skip.size, err) < 0)
        return -1;
    r->generation.offset += (int64_t)skip.size;
    r->base.stats.skipped_bytes = skip.size;
    r->base.stats.first_ns = skip.first_ns > 0 ? skip.first_ns : 1;
    return 0;
}

static void init(struct v2_reader *r, int version, bool strict)
{
    r->base.version = version;
    error_clear(&r->base.error);
    error_clear(&r->behind);
    error_clear(&r->first);
    error_clear(&r->generation.fault);
    r->generation.salvage = !strict;
    r->generation.text_offset = r->generation.next_trace = -1;
    r->base.stats.text_offset = r->base.stats.next_trace = -1;
    r->generation.version = version;
    r->generation.tables = &r->base.tables;
    r->merge = v2_merge_best();
    v2_order_init(&r->order, &r->base.tables, &r->base.error);
    r->order.strict = strict;
}

/* A verdict needs no events, so several threads can find it. */
static bool is_for_several(const trail_reader_options *options)
{
    return options->ahead && options->verdict_only && !options->repair && options->from_ns <= 0;
}

trail_reader *v2_reader_open(trail_source *source, int version, const trail_reader_options *options,
                             trail_error *err)
{
    static const struct reader_ops ops = {
        .next_batch = v2_next_batch,
        .experiment_batches = v2_experiment_batches,
        .repairs = v2_repairs,
        .close = v2_close,
    };
    struct v2_reader *r = calloc(1, sizeof *r);
    if (!r) {
        error_no_memory(err);
        return NULL;
    }
    r->base.ops = &ops;
    r->base.source = source;
    r->base.options = *options;
    init(r, version, options->strict);
    r->generation.source = source;
    r->generation.offset = WIRE_HEADER_SIZE;
    if (is_for_several(options))
        r->parallel = v2_parallel_open(source, version, options->strict, options->threads);
    if (source_skip(source, WIRE_HEADER_SIZE, err) < 0 || skip_generations(r, err) < 0) {
        v2_close(&r->base);
        return NULL;
    }
    return &r->base;
}
