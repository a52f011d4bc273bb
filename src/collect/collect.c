/* Opens, steps and closes a collector: see collect.h. */
#include "collect/collect.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/present_memory.h"
#include "collect/parts.h"

struct collect *collect_open(const struct collect_options *options, trail_error *err)
{
    struct collect *c = calloc(1, sizeof *c);
    if (!c) {
        (void)error_no_memory(err);
        return NULL;
    }
    c->options = *options;
    c->area = options->area;
    c->ticks = options->ticks;
    c->annotations.tasks = OBJECTS_OF(struct open_task);
    trace_add(options->trace, c, options->former);
    if (options->former)
        oncpu_take_over(c, options->former);
    return c;
}

const char *collect_label(const struct collect *c)
{
    bool is_named = c->trace->processes > 1 || c->trace->options.labelled;
    return is_named && c->options.label && *c->options.label ? c->options.label : NULL;
}

void trace_no_memory(struct trace *t)
{
    if (!t->failed)
        (void)error_no_memory(&t->error);
    t->failed = true;
}

void collect_no_memory(struct collect *c)
{
    trace_no_memory(c->trace);
}

void collect_damage(struct collect *c)
{
    area_count_damage(c->area);
}

/* MARK: Steps */

/* The limit of a step: the next one continues, and signals are handled in between. */
#define STEP_NS 500000000

void collect_seen_alive(struct collect *c, uint64_t ticks)
{
    c->alive_ticks = ticks;
}

/* Switches are passed to their threads at this age, so that both clocks have been read before and
 * after them; but never before the records of what the thread did until then. */
#define SWITCH_DELAY_NS (COLLECT_DELAY_NS / 2)

/*
 * Reads the last records of the program that claimed the area. Either the process has ended, or it
 * has executed another program, which began at `next` ticks (0: not known) and to which the
 * kernel's records from then on belong.
 */
static void end_program(struct collect *c, uint64_t next)
{
    c->end_ticks = next ? next : c->trace->stop_ticks ? c->trace->stop_ticks : ticks_now(c->ticks);
    deadline_set_last(c->trace);
    ticks_end(c->ticks);
    feed_all(c, true);
    oncpu_feed(c, next ? ticks_to_ns(c->ticks, next) : INT64_MAX);
    c->ended = true;
}

/* Its threads end with it. */
static void end_threads(struct collect *c, uint8_t flags)
{
    struct thread *thread;
    struct op *op;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        thread->feed.ended = true;
        op = op_add(c, thread, OP_GONE, c->end_ticks);
        if (op)
            op->flags = flags;
    }
}

void collect_ended_before(struct collect *c, uint64_t time)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        size_t count = thread->ops.count;
        struct op *gone = count ? op_in_ring(thread, count - 1) : NULL;
        uint64_t least = count > 1 ? op_in_ring(thread, count - 2)->time : 0;
        if (gone && gone->kind == OP_GONE && gone->time >= time)
            gone->time = time - 1 > least ? time - 1 : least;
    }
}

void collect_end(struct collect *c, const struct area *next)
{
    uint64_t claimed = next ? area_claimed_at(next) : 0;
    if (c->ended) {
        /* The process had left, and the next program claimed its area before that was noticed. */
        if (claimed)
            collect_ended_before(c, claimed);
        return;
    }
    end_program(c, claimed);
    end_threads(c, next ? OP_EXECUTES : 0);
}

void collect_end_with_trace(struct collect *c)
{
    if (!c->ended)
        end_program(c, 0);
}

bool collect_is_written(const struct collect *c)
{
    return c->ended && threads_count(c) == 0;
}

/*
 * Whether the process has executed another program: the area is no longer where the former program
 * had mapped it. False if the memory may not be read, for example because the program runs with
 * other privileges.
 */
static bool has_executed(struct collect *c)
{
    uint64_t at = area_mapped_at(c->area), magic = 0;
    if (!at || c->refused || c->options.process.pid == 0)
        return false;
    if (memory_of_other(c->options.process.pid, at, &magic, sizeof magic) < 0) {
        /* Not retried: a security module may log each attempt. */
        c->refused = errno == EPERM;
        return errno == EFAULT;
    }
    return magic != SHM_MAGIC;
}

/* Whether the process has ended, so that its PID may have been reused. */
static bool is_ended(const struct collect *c)
{
    struct pollfd end = {c->options.pidfd, POLLIN, 0};
    return c->options.pidfd >= 0 && poll(&end, 1, 0) > 0;
}

/* The next program may claim an area soon. Until then nothing is known about it. */
static void leave_program(struct collect *c)
{
    end_program(c, 0);
    end_threads(c, OP_EXECUTES);
    c->summary.left = true;
}

void collect_step(struct collect *c)
{
    if (c->ended)
        return;
    if (has_executed(c)) {
        if (is_ended(c))
            return;
        leave_program(c);
        return;
    }
    deadline_set(c->trace, STEP_NS);
    ticks_step(c->ticks);
    descriptors_step(c);
    numbered_step(c);
    oncpu_read_count(c);
    feed_all(c, false);
    oncpu_feed(c, ticks_to_ns(c->ticks, c->feed.fed_at) - SWITCH_DELAY_NS);
    open_look_at_sleepers(c);
}

/* Adds the area's losses to the summary. */
static void add_losses(const struct collect *c, struct collect_summary *summary)
{
    struct area_losses losses = area_losses(c->area);
    summary->lost_stacks += losses.stacks;
    summary->lost_threads += losses.threads;
    summary->lost_samples += losses.samples;
    summary->turned_away += losses.turned_away;
    summary->confined += losses.confined;
    summary->damage += area_damage(c->area);
}

bool collect_has_left(const struct collect *c)
{
    return c->summary.left;
}

struct area *collect_area(const struct collect *c)
{
    return c->area;
}

pid_t collect_pid(const struct collect *c)
{
    return c->options.process.pid ? c->options.process.pid : area_claimed(c->area);
}

void collect_close(struct collect *c)
{
    if (!c)
        return;
    heap_end(c);
    trace_remove(c->trace, c);
    threads_dispose(c);
    oncpu_dispose(c);
    faults_dispose(c);
    jit_dispose(&c->jit);
    profile_dispose(c);
    heap_dispose(c);
    states_dispose(c);
    annotations_dispose(c);
    code_names_dispose(&c->code);
    idmap_free(&c->object_names);
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
    summary->wall_ns = c->last_ns - c->first_ns;
    model_summarize(c, summary);
    summary->gcc_openmp = code_has_silent_openmp(c);
    add_losses(c, summary);
    state_worst_sites(c, worst);
    for (size_t i = 0; i < 3 && worst[i]; i++) {
        struct collect_wait_place *place = &summary->worst[i];
        place->total_ns = worst[i]->total_ns;
        place->longest_ns = worst[i]->longest_ns;
        place->count = worst[i]->count;
        place->wait = worst[i]->wait;
        code_place(c, worst[i]->stack, place->place, sizeof place->place);
        code_place_pc(c, worst[i]->holder_pc, place->holder, sizeof place->holder);
        code_place(c, worst[i]->waker_stack, place->waker, sizeof place->waker);
    }
}

/* Inserts a place into the three with the longest waits. */
static void add_place(struct collect_summary *sum, const struct collect_wait_place *place)
{
    struct collect_wait_place added = *place;
    for (size_t i = 0; i < 3 && added.count; i++) {
        struct collect_wait_place *at = &sum->worst[i];
        if (added.total_ns > at->total_ns) {
            struct collect_wait_place moved = *at;
            *at = added;
            added = moved;
        }
    }
}

void collect_summary_add(struct collect_summary *sum, const struct collect_summary *other)
{
    sum->threads += other->threads;
    if (other->most_threads > sum->most_threads)
        sum->most_threads = other->most_threads;
    sum->wall_ns += other->wall_ns;
    sum->running_ns += other->running_ns;
    sum->spun_ns += other->spun_ns;
    sum->ready_ns += other->ready_ns;
    for (size_t i = 0; i < SHM_WAITS; i++)
        sum->wait_ns[i] += other->wait_ns[i];
    sum->short_ns += other->short_ns;
    sum->moments_ns += other->moments_ns;
    sum->waits += other->waits;
    sum->waits_with_waker += other->waits_with_waker;
    sum->events += other->events;
    sum->stacks += other->stacks;
    sum->lost_records += other->lost_records;
    sum->lost_stacks += other->lost_stacks;
    sum->lost_threads += other->lost_threads;
    sum->turned_away += other->turned_away;
    sum->confined += other->confined;
    sum->damage += other->damage;
    sum->unnamed += other->unnamed;
    sum->left |= other->left;
    sum->refused_stacks += other->refused_stacks;
    sum->has_heap |= other->has_heap;
    sum->heap_peak = other->heap_peak > sum->heap_peak ? other->heap_peak : sum->heap_peak;
    sum->gcc_openmp |= other->gcc_openmp;
    sum->faults += other->faults;
    /* All processes have the same unseen times. */
    sum->unseen_ns = other->unseen_ns > sum->unseen_ns ? other->unseen_ns : sum->unseen_ns;
    sum->samples += other->samples;
    sum->lost_samples += other->lost_samples;
    for (size_t i = 0; i < 3; i++)
        add_place(sum, &other->worst[i]);
}
