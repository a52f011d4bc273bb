/* Opens, steps and closes the collector: see collect.h. */
#include "collect/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/error.h"
#include "collect/parts.h"

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
    deadline_set(c, UINT64_MAX);
    c->writer = v2_writer_open(options->version, &options->sink, err);
    if (!c->writer) {
        free(c);
        return NULL;
    }
    return c;
}

void collect_no_memory(struct collect *c)
{
    if (!c->failed)
        (void)error_set(&c->error, TRAIL_NO_MEMORY, "out of memory");
    c->failed = true;
}

void collect_damage(struct collect *c)
{
    area_count_damage(c->area);
}

/* MARK: Steps */

/* The limit of a step: the next one continues, and signals are handled in between. */
#define STEP_NS 500000000

void collect_tick(struct collect *c, uint64_t ticks)
{
    area_tick(c->area, ticks);
}

/* Switches are given to their threads when they are this old, so that both clocks were read before and after them. */
#define SWITCH_DELAY_NS (COLLECT_DELAY_NS / 2)

/*
 * Reads the last records of the program that claimed the area: it has ended, or the process has executed another one,
 * which began at `next` ticks (0: not known). The kernel's records from then on belong to the next program.
 */
static void end_program(struct collect *c, uint64_t next)
{
    c->end_ticks = next ? next : ticks_now(c->ticks);
    deadline_set_last(c);
    ticks_end(c->ticks);
    feed_all(c, true);
    oncpu_feed(c, next ? ticks_to_ns(c->ticks, next) : INT64_MAX);
    model_run(c);
    threads_drop_ops(c);
}

/*
 * Whether the process has executed another program: the area is no longer where the former program had mapped it. False
 * if the memory may not be read, as when the program has other rights.
 */
static bool has_executed(struct collect *c)
{
    uint64_t at = area_mapped_at(c->area), magic = 0;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the other process's. */
    struct iovec here = {&magic, sizeof magic}, there = {(void *)(uintptr_t)at, sizeof magic};
    if (!at || c->refused || c->options.process.pid == 0)
        return false;
    if (process_vm_readv(c->options.process.pid, &here, 1, &there, 1, 0) < 0) {
        /* Not tried again: a security module may log each try. */
        c->refused = errno == EPERM;
        return errno == EFAULT;
    }
    return magic != SHM_MAGIC;
}

/* The next program may claim an area soon. Until then nothing is known of it. */
static void leave_program(struct collect *c, uint64_t next)
{
    end_program(c, next);
    model_exec(c);
    feed_forget(c);
    c->summary.left = true;
}

void collect_step(struct collect *c)
{
    if (!c->summary.left && has_executed(c))
        leave_program(c, 0);
    if (c->summary.left)
        return;
    deadline_set(c, STEP_NS);
    ticks_step(c->ticks);
    descriptors_step(c);
    numbered_step(c);
    feed_all(c, false);
    oncpu_feed(c, ticks_to_ns(c->ticks, ticks_now(c->ticks)) - SWITCH_DELAY_NS);
    model_run(c);
}

/* Adds the area's losses to the summary. */
static void add_losses(const struct collect *c, struct collect_summary *summary)
{
    struct area_losses losses = area_losses(c->area);
    summary->lost_stacks += losses.stacks;
    summary->lost_threads += losses.threads;
    summary->lost_samples += losses.samples;
    summary->turned_away += losses.turned_away;
    summary->damage += area_damage(c->area);
}

void collect_next_area(struct collect *c, struct area *area)
{
    if (!c->summary.left)
        leave_program(c, area_claimed_at(area));
    c->summary.left = c->refused = false;
    threads_forget(c);
    releases_forget(c);
    descriptors_forget(c);
    names_forget(c);
    heap_forget(c);
    add_losses(c, &c->summary);
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

struct area *collect_area(const struct collect *c)
{
    return c->area;
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
    threads_dispose(c);
    releases_dispose(c);
    oncpu_dispose(c);
    faults_dispose(c);
    jit_dispose(c);
    profile_dispose(c);
    heap_dispose(c);
    model_dispose(c);
    states_dispose(c);
    annotations_dispose(c);
    names_dispose(c);
    holds_dispose(c);
    descriptors_free(c->descriptors);
    numbered_free(c);
    arena_free(&c->arena);
    area_close(c->area);
    free(c);
}

/* MARK: The summary */

void collect_summarize(struct collect *c, struct collect_summary *summary)
{
    const struct wait_site *worst[3] = {0};
    *summary = c->summary;
    model_summarize(c, summary);
    summary->gcc_openmp = names_has_silent_openmp(c);
    add_losses(c, summary);
    state_worst_sites(c, worst);
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
