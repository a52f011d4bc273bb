/*
 * Makes events of ops: all ops in the order of time, and what they mean for goroutines, Ps and Ms (§6.5).
 *
 * A thread is an M and a goroutine that never leaves it. A P is a slot of concurrency: a thread that runs has the lowest
 * one that was free when it began to run, and releases it when it blocks; so the Ps show how parallel the program is. Ps
 * have no queues: a thread that was woken is runnable until it runs again.
 *
 * If the kernel reports when threads were on a CPU (oncpu.h), a call is a wait only if the thread slept in it; the wait
 * ends when the thread is put on a CPU for the last time before the call's end. A preempted thread is runnable.
 *
 * Only model.c, ops.c and states.c change states, so that the trace is consistent whatever the records contain: an op
 * that does not fit the state of its thread changes the state first, or is dropped.
 */
#include "collect/model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/heap.h"
#include "collect/ops.h"
#include "collect/parts.h"
#include "wire/waits.h"

#define GENERATION_BYTES (8u << 20)

/* MARK: Switches */

/* A shorter preemption is not shown. */
#define MIN_PREEMPTED_NS 10000

/* Returns how long the thread, which was switched out just now, stays off its CPU. */
static int64_t off_for(const struct collect *c, const struct thread *thread)
{
    const struct oncpu *o = &thread->oncpu;
    if (o->count == 0 || o->at[o->first].kind != SWITCH_IN)
        return INT64_MAX;
    return ticks_to_ns(c->ticks, o->at[o->first].time) - ticks_to_ns(c->ticks, o->off_time);
}

/* Switched out outside of wrapped calls: in a page fault, in malloc's lock, in another system call. */
static void out_elsewhere(struct collect *c, struct thread *thread, int64_t ns)
{
    const struct fault *fault = oncpu_fault(c, thread);
    struct op op = {.kind = OP_BLOCK, .wait = SHM_KERNEL};
    if (fault)
        op = (struct op){
            .kind = OP_BLOCK, .wait = SHM_FAULT, .stack = fault->stack, .name = fault->file};
    if (off_for(c, thread) >= area_options(c->area)->min_wait_ns)
        op_block(c, thread, &op, ns);
    else
        thread->oncpu.off_since = ns;
}

static void preempted(struct collect *c, struct thread *thread, int64_t ns)
{
    thread->oncpu.preempted = true;
    if (off_for(c, thread) < MIN_PREEMPTED_NS) {
        thread->oncpu.off_since = ns;
        return;
    }
    EVENT(c, thread, ns, V2_GoStop, names_string(c, "preempted"), 0);
    state_give_proc(c, thread, ns);
    state_enter(c, thread, G_RUNNABLE, ns);
}

static void switched_out(struct collect *c, struct thread *thread, const struct cpu_switch *sw,
                         int64_t ns)
{
    thread->oncpu.off = true;
    thread->oncpu.off_time = sw->time;
    thread->oncpu.preempted = false;
    state_end_moment(&thread->oncpu, ns);
    if (thread->g.state != G_RUNNING)
        return;
    if (sw->kind == SWITCH_PREEMPTED)
        preempted(c, thread, ns);
    else if (thread->g.in_call)
        op_block(c, thread, &thread->g.call, ns);
    else
        out_elsewhere(c, thread, ns);
}

/* Counts time off the CPU that was too short to be written. */
static void count_moment_off(struct collect *c, struct thread *thread, int64_t ns)
{
    int64_t off = ns - thread->oncpu.off_since;
    if (thread->oncpu.off_since < 0)
        return;
    thread->oncpu.off_since = -1;
    c->summary.running_ns -= off;
    if (thread->oncpu.preempted)
        c->summary.ready_ns += off;
    else if (thread->g.in_call)
        c->summary.wait_ns[thread->g.call.wait] += off;
    else
        c->model.moments_ns += off;
}

/* Within this time before a call's end its release is taken to have happened. */
#define LET_IN_NS 100000

/*
 * Whether the thread is on a CPU only for a moment of a wait that goes on, as to find that it has to wait again: that is
 * not shown. The wait ends when the thread is put on a CPU for the last time before the call's end; but if no release has
 * been written for it yet (a thread that was woken by one post of a semaphore may take the next), at that release or at
 * the call's end.
 */
static bool is_moment(const struct collect *c, const struct thread *thread, int64_t ns)
{
    const struct op *wake = oncpu_wake(thread);
    if (!thread->g.in_call || (thread->g.state == G_RUNNABLE && thread->oncpu.preempted))
        return false;
    if (thread->g.state == G_WAITING && wake && ticks_to_ns(c->ticks, wake->time) - ns < LET_IN_NS)
        return true;
    return wait_is_spinning(thread->g.wait) || !oncpu_is_wake(thread);
}

static void switched_in(struct collect *c, struct thread *thread, int64_t ns)
{
    thread->oncpu.off = false;
    if (thread->g.state == G_NONE || thread->g.state == G_DEAD)
        return;
    if (thread->g.state == G_RUNNING)
        count_moment_off(c, thread, ns);
    else if (is_moment(c, thread, ns))
        thread->oncpu.on_since = ns;
    else
        op_go_on(c, thread, thread->g.in_call ? oncpu_wake(thread) : NULL, ns);
}

static void begin_unseen(struct collect *c, int64_t ns)
{
    if (!c->model.unseen_since_ns)
        c->model.unseen_since_ns = ns;
}

static void end_unseen(struct collect *c, int64_t ns)
{
    if (c->model.unseen_since_ns)
        c->model.unseen_ns += ns - c->model.unseen_since_ns;
    c->model.unseen_since_ns = 0;
}

static const char *readiness(const struct collect *c)
{
    return c->options.switches && !c->model.unseen_since_ns ? WIRE_READINESS_KERNEL
                                                            : WIRE_READINESS_INFERRED;
}

/* Logs whether switches are known from here on, if that has changed. Only a goroutine that runs can log. */
static void log_readiness(struct collect *c, struct thread *thread, int64_t ns)
{
    bool inferred = c->model.unseen_since_ns != 0;
    if (inferred == c->model.inferred || thread->g.state != G_RUNNING)
        return;
    c->model.inferred = inferred;
    EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_READINESS),
          names_string(c, readiness(c)), 0);
}

/* Whether it is only known from its switches that the thread does not run. */
static bool is_off_by_switches(const struct thread *thread)
{
    bool waits = thread->g.state == G_SYSCALL &&
                 (thread->g.wait == SHM_KERNEL || thread->g.wait == SHM_FAULT);
    return !thread->g.in_call && thread->oncpu.off &&
           (waits || (thread->g.state == G_RUNNABLE && thread->oncpu.preempted));
}

/*
 * Switches were lost: from here on the thread's own records decide whether it is in a call that blocked, and outside of calls
 * it runs.
 */
static void lose_track(struct collect *c, struct thread *thread, int64_t ns)
{
    if (is_off_by_switches(thread))
        op_go_on(c, thread, NULL, ns);
    thread->oncpu.off = false;
    thread->oncpu.off_since = -1;
    state_end_moment(&thread->oncpu, ns);
    if (thread->g.state == G_RUNNING && thread->g.in_call)
        op_block(c, thread, &thread->g.call, ns);
}

static void do_switch(struct collect *c, struct thread *thread, const struct cpu_switch *sw,
                      int64_t ns)
{
    switch (sw->kind) {
    case SWITCH_IN:
        switched_in(c, thread, ns);
        break;
    case SWITCH_OUT:
    case SWITCH_PREEMPTED:
        switched_out(c, thread, sw, ns);
        break;
    case SWITCH_EXIT:
        /* A thread that was killed during a wait stays in that state. */
        if (thread->g.state == G_RUNNING && !thread->g.in_call && thread->ops.count == 0)
            op_exit(c, thread, ns);
        break;
    case SWITCH_FAULT:
        c->summary.faults++;
        break;
    case SWITCH_LOST:
        begin_unseen(c, ns);
        lose_track(c, thread, ns);
        break;
    case SWITCH_FOUND:
        end_unseen(c, ns);
        break;
    }
}

/* MARK: Generations */

static int64_t wall_of(int64_t ns)
{
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    return (int64_t)clock_ns(CLOCK_REALTIME) - (now - ns);
}

static void next_generation(struct collect *c, struct thread *thread, int64_t ns)
{
    if (c->model.begun)
        (void)v2_writer_end(c->writer);
    else
        c->model.begin_ns = ns;
    if (c->options.generation)
        c->options.generation(c->options.generation_context, ns);
    int64_t wall_ns = wall_of(ns);
    char known[64];
    (void)v2_writer_begin(c->writer, ns, wall_ns);
    v2_writer_maker(c->writer, &(trail_maker){.made_by = TRAIL_MADE_BY_RECORD});
    names_modules(c);
    names_clock(c, ns, wall_ns);
    (void)snprintf(known, sizeof known, "%s %s", WIRE_READINESS, readiness(c));
    (void)names_string(c, known);
    c->model.generation_ns = ns;
    heap_begin_generation(c);
    if (c->model.begun)
        state_write_statuses(c, thread, ns);
    c->model.begun = true;
    c->model.new_generation = false;
}

/* MARK: The merge: a heap of threads by the time of what is next of them */

static bool is_before(struct thread *const *a, struct thread *const *b)
{
    uint64_t ta = oncpu_next_time(*a), tb = oncpu_next_time(*b);
    return ta != tb ? ta < tb : (*a)->serial < (*b)->serial;
}

HEAP(queue, struct thread *, is_before)

static void queue_build(struct collect *c)
{
    struct thread *thread;
    c->model.queue_count = 0;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    if (!GROW(c->model.queue, c->model.queue_room, threads_count(c) + 1)) {
        collect_no_memory(c);
        return;
    }
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        if (oncpu_has_next(thread))
            c->model.queue[c->model.queue_count++] = thread;
    }
    for (size_t i = c->model.queue_count; i-- > 0;)
        queue_down(c->model.queue, c->model.queue_count, i, c->model.queue[i]);
}

/* The thread at the top has no more, or its next one is later. */
static void queue_advance(struct collect *c)
{
    struct thread *thread = c->model.queue[0];
    if (!oncpu_has_next(thread)) {
        thread = c->model.queue[--c->model.queue_count];
        if (!c->model.queue_count)
            return;
    }
    queue_down(c->model.queue, c->model.queue_count, 0, thread);
}

static bool is_full(struct collect *c, int64_t ns)
{
    return c->model.new_generation || ns - c->model.generation_ns >= c->options.generation_ns ||
           v2_writer_bytes(c->writer) - c->model.generation_bytes >= GENERATION_BYTES;
}

/* Does what is next of a thread, at `ns`. */
static void do_next(struct collect *c, struct thread *thread, int64_t ns)
{
    if (oncpu_is_next(c, thread)) {
        struct cpu_switch sw = oncpu_take(thread);
        if (c->model.begun)
            do_switch(c, thread, &sw, ns);
    } else {
        struct op op;
        /* A thread that does something is on a CPU, even if the switch was lost; in a call it may be a signal handler. */
        if (!oncpu_is_done_by_others(thread)) {
            thread->oncpu.off = false;
            if (thread->g.state == G_RUNNABLE && !thread->g.in_call)
                state_run(c, thread, ns);
        }
        op = op_take(thread);
        op_do(c, thread, &op, ns);
    }
    if (c->model.begun)
        log_readiness(c, thread, ns);
}

int64_t model_next_ns(struct collect *c)
{
    return ++c->model.last_ns;
}

/*
 * Returns the time of the next event. No two threads' events have the same time: among Ms whose next events have equal
 * times, Go's readers may try one twice and another never, and reject the trace.
 */
static int64_t next_ns(struct collect *c, uint64_t ticks)
{
    int64_t ns = ticks_to_ns(c->ticks, ticks);
    c->model.last_ns = ns > c->model.last_ns ? ns : c->model.last_ns + 1;
    return c->model.last_ns;
}

/* Writes the samples of before, with the thread's state and P of now. */
static void write_samples(struct collect *c, int64_t before_ns)
{
    struct pending_sample sample;
    while (profile_next(c, before_ns, &sample)) {
        struct thread *thread = thread_with_tid(c, sample.tid);
        if (c->model.begun && thread && thread->g.state != G_NONE && thread->g.state != G_DEAD) {
            (void)v2_writer_sample(
                c->writer, sample.ns > c->model.generation_ns ? sample.ns : c->model.generation_ns,
                state_m(c, thread), thread->g.proc < 0 ? V2_NO_PROC : (uint64_t)thread->g.proc,
                thread->serial, names_pcs(c, sample.pcs, sample.count));
            c->summary.samples++;
        }
        free(sample.pcs);
    }
}

/* Writes the event on a P, as Go does: of a running thread, or of `writer`, which gets one for the moment. */
static void write_heap_event(struct collect *c, struct thread *writer, int64_t ns, uint64_t bytes)
{
    struct thread *running = state_any_running(c);
    if (!running)
        state_take_proc(c, writer, ns);
    EVENT(c, running ? running : writer, ns, V2_HeapAlloc, bytes);
    if (!running)
        state_give_proc(c, writer, ns);
}

/* Writes what the heap was before the next op, of `writer`. Before the first generation nothing is written. */
static void write_heap(struct collect *c, struct thread *writer, uint64_t before)
{
    uint64_t time, bytes;
    while (heap_next(c, before, &time, &bytes)) {
        if (c->model.begun)
            write_heap_event(c, writer, next_ns(c, time), bytes);
    }
}

void model_run(struct collect *c)
{
    holds_forget(c);
    queue_build(c);
    while (!c->failed && c->model.queue_count &&
           oncpu_next_time(c->model.queue[0]) < c->watermark && !deadline_is_over(c) &&
           !collect_is_full(c)) {
        struct thread *thread = c->model.queue[0];
        int64_t ns;
        write_heap(c, thread, oncpu_next_time(thread));
        ns = next_ns(c, oncpu_next_time(thread));
        write_samples(c, ns);
        if (c->model.begun ? is_full(c, ns) : !oncpu_is_next(c, thread)) {
            next_generation(c, thread, ns);
            c->model.generation_bytes = v2_writer_bytes(c->writer);
        }
        do_next(c, thread, ns);
        queue_advance(c);
    }
    write_samples(c, deadline_was_over(c)         ? c->model.last_ns
                     : c->watermark == UINT64_MAX ? INT64_MAX
                                                  : ticks_to_ns(c->ticks, c->watermark));
    threads_sweep(c);
}

void model_cut(struct collect *c)
{
    struct thread *thread;
    for (size_t at = 0; c->model.begun && (thread = threads_next(c, &at)) != NULL;) {
        if (thread->g.state != G_NONE && thread->g.state != G_DEAD) {
            next_generation(c, thread, c->model.last_ns);
            c->model.generation_bytes = v2_writer_bytes(c->writer);
            return;
        }
    }
}

static void end_thread(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->g.state == G_NONE || thread->g.state == G_DEAD)
        return;
    state_run(c, thread, ns);
    op_exit(c, thread, ns);
}

void model_exec(struct collect *c)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        thread->feed.ended = true;
        end_thread(c, thread, next_ns(c, c->end_ticks));
    }
    threads_sweep(c);
    c->model.new_generation = true;
}

/* Writes an idle P: the process was killed before it recorded a thread. */
static void write_idle(struct collect *c)
{
    int64_t ns = next_ns(c, c->end_ticks);
    next_generation(c, NULL, ns);
    (void)v2_writer_event2(c->writer, (uint64_t)c->options.process.pid, ns, V2_ProcStatus, 0,
                           V2_PROC_IDLE);
}

/* Returns the time of the end: a trace that is full ends with its last event. */
static int64_t end_ns(struct collect *c)
{
    return collect_is_full(c) ? model_next_ns(c) : next_ns(c, c->end_ticks);
}

/* The time of threads that are alive at the end is counted as well. The trace ends when the program ended. */
void model_end(struct collect *c)
{
    struct thread *thread, *last = NULL;
    int64_t end;
    if (!c->model.begun)
        write_idle(c);
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        if (thread->g.state == G_NONE || thread->g.state == G_DEAD)
            continue;
        last = thread;
        end = end_ns(c);
        state_enter(c, thread, thread->g.state, end);
        if (thread->g.state == G_RUNNING) {
            holds_log(c, thread, end);
            state_event(c, thread, end, V2_GoDestroy, 0, NULL);
            state_give_proc(c, thread, end);
        }
    }
    if (last)
        write_heap(c, last, UINT64_MAX);
    if (last && last->g.proc < 0) {
        end = end_ns(c);
        state_take_proc(c, last, end);
        state_give_proc(c, last, end);
    }
    end_unseen(c, c->model.last_ns);
    c->summary.wall_ns = c->model.begun ? c->model.last_ns - c->model.begin_ns : 0;
}

void model_summarize(const struct collect *c, struct collect_summary *summary)
{
    summary->short_ns = feed_short_ns(c);
    summary->unseen_ns = c->model.unseen_ns;
    /* Where switches are not known, the moments of short waits are not either. */
    if (c->options.switches && !summary->unseen_ns && summary->short_ns > c->model.moments_ns)
        summary->short_ns = c->model.moments_ns;
    if (c->options.switches && c->model.moments_ns > summary->short_ns)
        summary->wait_ns[SHM_KERNEL] += c->model.moments_ns - summary->short_ns;
}

void model_dispose(struct collect *c)
{
    free(c->model.queue);
}
