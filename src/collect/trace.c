/* Opens, steps and closes a trace: see trace.h. */
#include "collect/trace.h"

#include <stdlib.h>

#include "base/error.h"
#include "collect/ops.h"
#include "collect/parts.h"
#include "wire/merged_ids.h"

#define GENERATION_NS 1000000000

/* The limit of a step: the next one continues, and signals are handled in between. */
#define STEP_NS 500000000

struct trace *trace_open(const struct trace_options *options, trail_error *err)
{
    struct trace *t = calloc(1, sizeof *t);
    if (!t) {
        (void)error_no_memory(err);
        return NULL;
    }
    t->options = *options;
    t->slow.limits = options->slow;
    if (!t->options.generation_ns)
        t->options.generation_ns = GENERATION_NS;
    deadline_set(t, UINT64_MAX);
    t->out.out = v2_writer_open(options->version, &options->sink, err);
    if (!t->out.out) {
        free(t);
        return NULL;
    }
    return t;
}

void trace_add(struct trace *t, struct collect *c, const struct collect *former)
{
    c->trace = t;
    c->next_in_trace = t->programs;
    t->programs = c;
    c->number = t->numbers++;
    if (former)
        c->former_fork = area_fork(former->area) ? area_fork(former->area) : former->former_fork;
    c->watermark = t->limit;
    c->threads.base = former ? former->threads.last_serial : t->processes++ * ID_BLOCK;
    c->threads.last_serial = c->threads.base;
    c->threads.limit = (c->threads.base / ID_BLOCK + 1) * ID_BLOCK;
}

void trace_remove(struct trace *t, struct collect *c)
{
    struct collect **link = &t->programs;
    while (*link && *link != c)
        link = &(*link)->next_in_trace;
    if (*link)
        *link = c->next_in_trace;
}

/* MARK: Forks */

void trace_forked(struct trace *t, uint64_t number, pid_t pid)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never dereferenced. */
    if (number && pid && !idmap_put(&t->forks, number, (void *)(uintptr_t)pid))
        trace_no_memory(t);
}

/* A process that ends soon disappears from /proc. */
pid_t trace_parent(const struct trace *t, const struct collect *c)
{
    uint32_t fork = area_fork(c->area) ? area_fork(c->area) : c->former_fork;
    pid_t parent = fork ? (pid_t)(uintptr_t)idmap_find(&t->forks, fork) : 0;
    return parent ? parent : c->options.process.parent;
}

/* MARK: Steps */

/*
 * Returns the time up to which all programs are known. The trace also waits after the last program
 * ends: what becomes of open waits depends on whether it ends with that program (OP_GONE).
 */
static uint64_t known_until(const struct trace *t, uint64_t limit)
{
    uint64_t delay = t->programs ? ticks_of_ns(t->programs->ticks, COLLECT_DELAY_NS) : 0;
    if (limit != UINT64_MAX)
        limit = limit > delay ? limit - delay : 0;
    for (const struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (!c->ended && c->watermark < limit)
            limit = c->watermark;
    }
    return limit;
}

/* Releases are kept for this many times COLLECT_DELAY_NS, for waits that are recorded late; for
 * longer while the model waits for the record of one. */
#define KEEP_DELAYS 4

/* Returns the time before which releases are too old to have ended a wait. */
static uint64_t kept_since(const struct trace *t, const struct ticks *ticks, uint64_t time)
{
    uint64_t delay = ticks_of_ns(ticks, COLLECT_DELAY_NS);
    uint64_t old = time - KEEP_DELAYS * delay;
    uint64_t written = ticks_from_ns(ticks, t->model.written_ns) - delay;
    return written < old ? written : old;
}

/* Finds the release of each wait that ended before a time from which records may be missing. */
static void match(struct trace *t, uint64_t time)
{
    const struct ticks *ticks = t->programs ? t->programs->ticks : NULL;
    for (const struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (!c->ended && c->feed.ended_until < time)
            time = c->feed.ended_until;
    }
    if (!ticks)
        return;
    releases_match(t, ticks, time);
    if (time != UINT64_MAX)
        releases_drop_old(t, kept_since(t, ticks, time));
}

/* Reports what has lasted too long and not ended. */
static void look_at_open(struct trace *t)
{
    if (!slow_is_due(&t->slow, t->model.written_ns))
        return;
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (c->ended)
            continue;
        annotations_look_at_open(c, t->model.written_ns);
        op_look_at_open_waits(c, t->model.written_ns);
    }
}

void trace_step(struct trace *t, uint64_t limit)
{
    uint64_t known = known_until(t, limit);
    match(t, limit);
    t->limit = limit == UINT64_MAX ? 0 : limit;
    if (known > t->watermark)
        t->watermark = known;
    deadline_set(t, STEP_NS);
    model_run(t);
    look_at_open(t);
}

void trace_cut(struct trace *t)
{
    model_cut(t);
}

uint64_t trace_bytes(const struct trace *t)
{
    return t->out.out ? v2_writer_bytes(t->out.out) : 0;
}

bool trace_is_full(const struct trace *t)
{
    return t->options.max_bytes && trace_bytes(t) >= t->options.max_bytes;
}

void trace_stop(struct trace *t, uint64_t at)
{
    if (!t->stop_ticks)
        t->stop_ticks = at;
}

bool trace_finish(struct trace *t, trail_error *err)
{
    t->ending = true;
    /* A flight recorder writes what it has anyway. */
    t->slow.limits.count = 0;
    t->watermark = t->stop_ticks ? t->stop_ticks + 1 : UINT64_MAX;
    deadline_set_last(t);
    match(t, UINT64_MAX);
    model_run(t);
    for (struct collect *c = t->programs; c; c = c->next_in_trace)
        threads_drop_ops(c);
    model_end(t);
    if (t->options.ends)
        t->options.ends(t->options.ends_context);
    bool good = v2_writer_close(t->out.out, err);
    t->out.out = NULL;
    if (good && t->failed) {
        *err = t->error;
        good = false;
    }
    return good;
}

void trace_recorded(struct trace *t, const trail_recorded *row)
{
    v2_writer_recorded(t->out.out, row);
}

void trace_close(struct trace *t)
{
    if (!t)
        return;
    if (t->out.out)
        (void)v2_writer_close(t->out.out, NULL);
    model_dispose(t);
    thread_writer_dispose(&t->out);
    idmap_free(&t->ms);
    idmap_free(&t->forks);
    releases_dispose(&t->releases);
    idmap_free(&t->threads);
    idmap_free(&t->objects);
    idmap_free(&t->holds);
    arena_free(&t->arena);
    free(t);
}

int64_t trace_wall_ns(const struct trace *t)
{
    return t->out.generation > 0 ? t->out.now_ns - t->model.begin_ns : 0;
}

bool trace_infers_ready(const struct trace *t)
{
    return t->options.switches && !t->options.wakings;
}

uint64_t trace_most_threads(const struct trace *t)
{
    return t->most_alive;
}
