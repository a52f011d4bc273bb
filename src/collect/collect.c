/* Opening, stepping and closing the collector: see collect.h. */
#include "collect/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/error.h"
#include "collect/state.h"

#define GENERATION_NS 1000000000

struct collect *collect_open(const struct collect_options *options, trail_error *err)
{
    struct collect *c = calloc(1, sizeof *c);
    if (!c) {
        (void)error_set(err, TRAIL_NO_MEMORY, "out of memory");
        return NULL;
    }
    c->options = *options;
    if (!c->options.generation_ns)
        c->options.generation_ns = GENERATION_NS;
    c->area = options->area;
    c->ticks = options->ticks;
    c->until_ns = UINT64_MAX;
    c->writer = v2_writer_open(options->version, &options->sink, err);
    if (!c->writer) {
        free(c);
        return NULL;
    }
    return c;
}

/* MARK: How long the work may take */

/* A step that takes longer goes on in the next one: signals are looked at in between. */
#define STEP_NS 500000000

/* So long before the end of the time no names are looked for any more. */
#define WITHOUT_NAMES_NS 300000000

/* How many steps of work are done between looks at the clock. */
#define WORK 1024

/* The time that the work may take from now on; UINT64_MAX: as long as it takes. */
static void begin_work(struct collect *c, uint64_t ns)
{
    c->until_ns = ns == UINT64_MAX ? ns : clock_ns(CLOCK_MONOTONIC) + ns;
    c->late = c->hurried = false;
}

static bool wants_to_end(const struct collect *c)
{
    return c->options.is_hurried && c->options.is_hurried(c->options.is_hurried_context);
}

/* The user waits for the end. */
static void hurry(struct collect *c)
{
    begin_work(c, COLLECT_HURRY_NS);
    c->hurried = true;
}

bool collect_is_late(struct collect *c)
{
    if (c->late || ++c->work % WORK != 0)
        return c->late;
    if (c->until_ns == UINT64_MAX && wants_to_end(c))
        hurry(c);
    c->late = clock_ns(CLOCK_MONOTONIC) > c->until_ns;
    return c->late;
}

bool collect_has_time_for_names(const struct collect *c)
{
    return !c->hurried || clock_ns(CLOCK_MONOTONIC) + WITHOUT_NAMES_NS < c->until_ns;
}

/* MARK: Steps */

void collect_tick(struct collect *c, uint64_t ticks)
{
    area_tick(c->area, ticks);
}

/* So old are switches when they are given to their threads: between two readings of both clocks. */
#define SWITCH_DELAY_NS (COLLECT_DELAY_NS / 2)

/*
 * Reading the clock twice for each lock takes some 20 ns of the program; waking a thread for the coarse clock a thousand
 * times a second takes from 5 ms of a CPU a second to 30 ms on a virtual one: as much as 250,000 locks or more.
 */
#define MANY_LOCKS 500000 /* a second; */
#define FEW_LOCKS  200000 /* ... so few until it ends again */

static void look_at_rates(struct collect *c, uint64_t holds, uint64_t records)
{
    uint64_t now = ticks_now(c->ticks);
    int64_t ns = ticks_to_span(c->ticks, now - c->rates_at);
    double rate = ns > 0 ? (double)(c->holds - holds) * 1e9 / (double)ns : 0;
    c->rates.records = c->records - records;
    c->rates.many_locks = rate > (c->rates.many_locks ? FEW_LOCKS : MANY_LOCKS);
    c->rates_at = now;
}

struct collect_rates collect_rates(const struct collect *c)
{
    return c->rates;
}

/*
 * Reads what the program that claimed the area told last: it has ended, or executed another one, which began at `next`
 * ticks; 0: when is not known. What the kernel tells of since then is that one's own, also if this comes late.
 */
static void end_program(struct collect *c, uint64_t next)
{
    c->end_ticks = next ? next : ticks_now(c->ticks);
    begin_work(c, UINT64_MAX);
    if (wants_to_end(c))
        hurry(c);
    ticks_end(c->ticks);
    feed_all(c, true);
    oncpu_feed(c, next ? ticks_to_ns(c->ticks, next) : INT64_MAX);
    model_run(c);
    threads_drop_ops(c);
}

/*
 * Whether the process has executed another program: that does not have the area where the former had. Where we may not
 * look, as when it has other rights, it has not.
 */
static bool has_executed(struct collect *c)
{
    uint64_t at = area_mapped_at(c->area), magic = 0;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the other process's. */
    struct iovec here = {&magic, sizeof magic}, there = {(void *)(uintptr_t)at, sizeof magic};
    if (!at || c->refused || c->options.process.pid == 0)
        return false;
    if (process_vm_readv(c->options.process.pid, &here, 1, &there, 1, 0) < 0) {
        /* A security module may write a line for each try. */
        c->refused = errno == EPERM;
        return errno == EFAULT;
    }
    return magic != SHM_MAGIC;
}

/* The program that it has executed may claim an area soon. If not, nothing is known of it. */
static void leave_program(struct collect *c, uint64_t next)
{
    end_program(c, next);
    model_exec(c);
    c->rates = (struct collect_rates){0};
    c->summary.left = true;
}

void collect_step(struct collect *c)
{
    uint64_t holds = c->holds, records = c->records;
    if (!c->summary.left && has_executed(c))
        leave_program(c, 0);
    if (c->summary.left)
        return;
    begin_work(c, STEP_NS);
    ticks_step(c->ticks);
    descriptors_step(c);
    feed_all(c, false);
    look_at_rates(c, holds, records);
    oncpu_feed(c, ticks_to_ns(c->ticks, ticks_now(c->ticks)) - SWITCH_DELAY_NS);
    model_run(c);
}

/* What is known of an area's losses when it is left. */
static void add_losses(const struct collect *c, struct collect_summary *summary)
{
    struct area_losses losses = area_losses(c->area);
    summary->lost_stacks += losses.stacks;
    summary->lost_threads += losses.threads;
    summary->lost_samples += losses.samples;
    summary->damage += area_damage(c->area);
}

void collect_next_area(struct collect *c, struct area *area)
{
    if (!c->summary.left)
        leave_program(c, area_claimed_at(area));
    c->summary.left = c->refused = false;
    feed_forget(c);
    descriptors_forget(c);
    names_forget(c);
    heap_forget(c);
    add_losses(c, &c->summary);
    c->serial_base = c->last_serial;
    c->watermark = c->end_ticks;
    c->image++;
    area_close(c->area);
    c->area = area;
}

void collect_cut(struct collect *c)
{
    collect_step(c);
    model_cut(c);
}

void collect_set_groups(struct collect *c, uint32_t groups)
{
    area_set_groups(c->area, groups);
}

bool collect_has_left(const struct collect *c)
{
    return c->summary.left;
}

bool collect_forking(const struct collect *c)
{
    return area_is_forking(c->area);
}

uint64_t collect_bytes(const struct collect *c)
{
    return c->writer ? v2_writer_bytes(c->writer) : 0;
}

bool collect_is_full(const struct collect *c)
{
    return c->options.max_bytes && collect_bytes(c) >= c->options.max_bytes;
}

bool collect_finish(struct collect *c, trail_error *err)
{
    bool good;
    if (!c->summary.left)
        end_program(c, 0);
    model_end(c);
    good = v2_writer_close(c->writer, err);
    c->writer = NULL;
    if (good && c->failed) {
        *err = c->error;
        good = false;
    }
    return good;
}

void collect_close(struct collect *c)
{
    if (!c)
        return;
    if (c->writer)
        (void)v2_writer_close(c->writer, NULL);
    for (size_t i = 0; c->threads.slots && i <= c->threads.mask; i++) {
        struct thread *thread = c->threads.slots[i].value;
        if (thread)
            thread_free(thread);
    }
    while (c->oldest_release) {
        struct release *release = c->oldest_release;
        c->oldest_release = release->newer;
        woken_free(release->woken);
        free(release);
    }
    descriptors_free(c->descriptors);
    idmap_free(&c->threads);
    idmap_free(&c->handles);
    idmap_free(&c->tids);
    idmap_free(&c->ms);
    idmap_free(&c->tasks);
    idmap_free(&c->texts);
    idmap_free(&c->releases);
    idmap_free(&c->stacks);
    idmap_free(&c->sites);
    idmap_free(&c->frames);
    idmap_free(&c->objects);
    arena_free(&c->arena);
    area_close(c->area);
    free(c->switches.at);
    profile_free(c);
    free(c->ended);
    free(c->queue);
    free(c->heap.moves);
    free(c->procs);
    free(c->modules);
    free(c);
}

/* MARK: The summary */

static void insert_worst(const struct wait_site *worst[3], const struct wait_site *site)
{
    for (size_t i = 0; i < 3; i++) {
        if (!worst[i] || site->total_ns > worst[i]->total_ns) {
            for (size_t k = 2; k > i; k--)
                worst[k] = worst[k - 1];
            worst[i] = site;
            return;
        }
    }
}

/* Of the moments off a CPU, which nobody explains else, what calls account for. */
static void summarize_short(const struct collect *c, struct collect_summary *summary)
{
    summary->short_ns = ticks_to_span(c->ticks, c->short_ticks);
    if (c->options.switches && summary->short_ns > c->moments_ns)
        summary->short_ns = c->moments_ns;
    if (c->options.switches)
        summary->wait_ns[SHM_KERNEL] += c->moments_ns - summary->short_ns;
}

void collect_summarize(struct collect *c, struct collect_summary *summary)
{
    const struct wait_site *worst[3] = {0};
    *summary = c->summary;
    summarize_short(c, summary);
    summary->gcc_openmp = c->gcc_openmp && !c->llvm_openmp;
    add_losses(c, summary);
    for (size_t i = 0; c->sites.slots && i <= c->sites.mask; i++) {
        const struct wait_site *site = c->sites.slots[i].value;
        if (site && site->stack && site->count)
            insert_worst(worst, site);
    }
    for (size_t i = 0; i < 3 && worst[i]; i++) {
        struct collect_wait_place *place = &summary->worst[i];
        place->total_ns = worst[i]->total_ns;
        place->longest_ns = worst[i]->longest_ns;
        place->count = worst[i]->count;
        place->wait = worst[i]->wait;
        names_place(c, worst[i]->stack, place->place, sizeof place->place);
        names_place(c, worst[i]->waker_stack, place->waker, sizeof place->waker);
    }
}
