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
    c->ticks = *options->ticks;
    c->writer = v2_writer_open(options->version, &options->sink, err);
    if (!c->writer) {
        free(c);
        return NULL;
    }
    return c;
}

void collect_prepare(struct shm_area *area, const struct ticks *ticks, int64_t min_wait_ns,
                     int64_t hold_ns)
{
    area->header.step_ticks = ticks_of_ns(ticks, COLLECT_TICK_NS);
    area->header.has_counter = ticks->clock.counter;
    area->header.min_wait_ticks = ticks_of_ns(ticks, (uint64_t)min_wait_ns);
    area->header.hold_ticks = hold_ns ? ticks_of_ns(ticks, (uint64_t)hold_ns) : 0;
}

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
    uint64_t now = ticks_now(&c->ticks);
    int64_t ns = ticks_to_span(&c->ticks, now - c->rates_at);
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
    c->end_ticks = next ? next : ticks_now(&c->ticks);
    ticks_end(&c->ticks);
    feed_all(c, true);
    oncpu_feed(c, next ? ticks_to_ns(&c->ticks, next) : INT64_MAX);
    model_run(c);
}

/*
 * Whether the process has executed another program: that does not have the area where the former had. Where we may not
 * look, as when it has other rights, it has not.
 */
static bool has_executed(struct collect *c)
{
    uint64_t at = __atomic_load_n(&c->area->header.mapped_at, __ATOMIC_RELAXED), magic = 0;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the other process's. */
    struct iovec here = {&magic, sizeof magic}, there = {(void *)(uintptr_t)at, sizeof magic};

    if (!at || c->refused)
        return false;
    if (process_vm_readv(c->options.pid, &here, 1, &there, 1, 0) < 0) {
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
    ticks_step(&c->ticks);
    descriptors_step(c);
    feed_all(c, false);
    look_at_rates(c, holds, records);
    oncpu_feed(c, ticks_to_ns(&c->ticks, ticks_now(&c->ticks)) - SWITCH_DELAY_NS);
    model_run(c);
}

void collect_next_area(struct collect *c, struct shm_area *area)
{
    if (!c->summary.left)
        leave_program(c, __atomic_load_n(&area->header.claimed_at, __ATOMIC_ACQUIRE));
    c->summary.left = c->refused = false;
    feed_forget(c);
    descriptors_forget(c);
    names_forget(c);
    heap_forget(c);
    c->serial_base += c->area->header.serials;
    c->watermark = c->end_ticks;
    c->image++;
    area_unmap(c->area);
    c->area = area;
}

void collect_cut(struct collect *c)
{
    collect_step(c);
    model_cut(c);
}

void collect_set_groups(struct collect *c, uint32_t groups)
{
    __atomic_store_n(&c->area->header.groups, groups, __ATOMIC_RELAXED);
}

bool collect_has_left(const struct collect *c)
{
    return c->summary.left;
}

bool collect_forking(const struct collect *c)
{
    return __atomic_load_n(&c->area->header.forking, __ATOMIC_ACQUIRE) != 0;
}

uint64_t collect_bytes(const struct collect *c)
{
    return c->writer ? v2_writer_bytes(c->writer) : 0;
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
    idmap_free(&c->releases);
    idmap_free(&c->stacks);
    idmap_free(&c->sites);
    idmap_free(&c->frames);
    idmap_free(&c->objects);
    arena_free(&c->arena);
    area_unmap(c->area);
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
    summary->short_ns = ticks_to_span(&c->ticks, c->short_ticks);
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
    summary->lost_stacks = c->area->header.lost_stacks;
    summary->lost_threads = c->area->header.lost_threads;
    summary->lost_samples = c->area->header.lost_samples;
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
