/*
 * Makes events of ops: all ops in the order of time, and what they mean for goroutines, Ps and Ms
 * (§6.5).
 *
 * A thread is an M and a goroutine that never leaves it. A P is a slot of concurrency: a thread
 * that runs has the lowest one that was free when it began to run, and releases it when it blocks;
 * so the Ps show how parallel the program is. Ps have no queues: a thread that was woken is
 * runnable until it runs again.
 *
 * If the kernel reports when threads were on a CPU (oncpu.h), a call is a wait only if the thread
 * slept in it, and from then on. The wait ends when the kernel wakes the thread for the last time
 * before the call's end, or if that is not known, when its release is written or the thread is put
 * on a CPU. If it is woken in vain, because another thread took what it waits for, it waits again.
 * A preempted thread is runnable.
 *
 * Only model.c, ops.c and states.c change states, so that the trace is consistent whatever the
 * records contain: an op that does not fit the state of its thread changes the state first, or is
 * dropped.
 */
#include "collect/model.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/heap.h"
#include "collect/ops.h"
#include "collect/parts.h"
#include "wire/waits.h"

/* MARK: Switches */

/* Shorter preemptions are not shown. */
#define MIN_PREEMPTED_NS 10000

/* A thread that is woken in vain and ready for a shorter time continues its wait. */
#define MIN_VAIN_NS 100000

/* Returns how long the thread, just switched out, stays off its CPU. */
static int64_t off_for(const struct collect *c, const struct thread *thread)
{
    return oncpu_next_in(c, thread) - ticks_to_ns(c->ticks, thread->oncpu.off_time);
}

/*
 * Handles a thread that is switched out outside of wrapped calls: in a page fault, in malloc's
 * lock, in another system call.
 */
static void out_elsewhere(struct collect *c, struct thread *thread, const struct cpu_switch *sw,
                          int64_t ns)
{
    const struct fault *fault = oncpu_fault(c, thread);
    struct op op = {.kind = OP_BLOCK, .wait = SHM_KERNEL};
    if (fault)
        op = (struct op){
            .kind = OP_BLOCK, .wait = SHM_FAULT, .stack = fault->stack, .name = fault->file};
    else
        open_describe(c, thread, sw->ns, &op);
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
    thread->oncpu.preempted = thread->oncpu.woken = false;
    thread->oncpu.handles &= sw->kind == SWITCH_PREEMPTED;
    state_end_moment(&thread->oncpu, ns);
    if (thread->g.state != G_RUNNING)
        return;
    if (sw->kind == SWITCH_PREEMPTED)
        preempted(c, thread, ns);
    else if (thread->g.in_call && !thread->oncpu.over && !oncpu_is_unwound(thread, sw->time))
        op_block(c, thread, &thread->g.call, ns);
    else
        out_elsewhere(c, thread, sw, ns);
}

/* Counts time off the CPU that was too short to write. */
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
        c->moments_ns += off;
}

/* Whether the thread, which is in a wait, went off its CPU by itself and was not preempted. */
static bool is_asleep(const struct thread *thread)
{
    return thread->g.in_call && !(thread->g.state == G_RUNNABLE && thread->oncpu.preempted);
}

/* Whether the thread, woken within a wait, was woken in vain: it sleeps again in the same wait. */
static bool is_woken_in_vain(const struct thread *thread)
{
    return thread->g.state != G_RUNNABLE && thread->g.call.wait_number == thread->g.current_wait &&
           !oncpu_is_wake(thread);
}

/* How much later a process that is killed may end, on a busy machine. */
#define AT_LAST_NS 1000000000

/*
 * Whether the thread is woken shortly before its process or its recording ends, and records nothing
 * any more: most likely to be killed.
 */
static bool is_woken_at_last(const struct thread *thread)
{
    const struct collect *c = thread->of;
    return c->ended && !oncpu_wake(thread) &&
           ticks_to_ns(c->ticks, c->end_ticks) - c->trace->out.now_ns < AT_LAST_NS;
}

/* Whether a signal handler of the thread has acted in the call, or acts before its end. */
static bool is_interrupted(const struct thread *thread)
{
    return thread->oncpu.handles || oncpu_is_interrupted(thread);
}

/* A thread that ends after a shorter wait outside of calls was not killed in it: it may have waited
 * for a page on its way to exit. */
#define KILLED_AFTER_NS 50000000

static bool has_waited_long(const struct thread *thread)
{
    return thread->of->trace->out.now_ns - thread->g.since_ns >= KILLED_AFTER_NS;
}

/* A spinning thread waits on the CPU; a killed one has waited to the end. */
static bool is_within_wait(const struct thread *thread)
{
    if ((thread->g.state == G_SYSCALL || thread->g.state == G_WAITING) && !thread->g.in_call)
        return oncpu_is_killed_now(thread) && has_waited_long(thread);
    return is_asleep(thread) && (wait_is_spinning(thread->g.wait) || is_interrupted(thread) ||
                                 oncpu_is_killed(thread) || is_woken_at_last(thread));
}

/*
 * Whether the thread is on a CPU only for a moment of a wait that continues: counted, but not
 * shown. `woken` is as in oncpu_ready_for.
 */
static bool is_moment(const struct thread *thread, uint64_t woken)
{
    return is_within_wait(thread) ||
           (is_asleep(thread) && is_woken_in_vain(thread) &&
            oncpu_ready_for(thread, woken) < ticks_of_ns(thread->of->ticks, MIN_VAIN_NS));
}

/*
 * Returns the end of the call that the thread is in, if its wait ends now, and notes that it has.
 */
static const struct op *end_of_call(struct thread *thread)
{
    const struct op *wake = thread->g.in_call && oncpu_is_wake(thread) ? oncpu_wake(thread) : NULL;
    thread->oncpu.over |= wake && wake->final;
    return wake;
}

static void switched_in(struct collect *c, struct thread *thread, int64_t ns)
{
    thread->oncpu.off = false;
    if (thread->g.state == G_NONE || thread->g.state == G_DEAD)
        return;
    if (thread->g.state == G_RUNNING)
        count_moment_off(c, thread, ns);
    else if (is_moment(thread, 0))
        thread->oncpu.on_since = ns;
    else
        op_go_on(c, thread, end_of_call(thread), ns);
}

/* The greatest distance at which a release and a wake-up may appear in the wrong order because of
 * the clocks. */
#define WAKE_SKEW_NS 20000

/* Whether the release that wakes the thread at `ns` has yet to be written. */
static bool is_before_release(const struct collect *c, struct thread *thread, int64_t ns)
{
    const struct op *wake = end_of_call(thread);
    if (!wake || !wake->object2 || thread->g.waker || thread->g.state != G_WAITING)
        return false;
    int64_t release = ticks_to_ns(c->ticks, wake->object2);
    return release >= thread->g.since_ns && release < ns + WAKE_SKEW_NS;
}

/* The kernel has woken the thread: it is ready until it is switched in, even if in vain. */
static void woken(struct collect *c, struct thread *thread, const struct cpu_switch *sw, int64_t ns)
{
    if ((thread->g.state != G_WAITING && thread->g.state != G_SYSCALL) ||
        is_moment(thread, sw->time))
        return;
    thread->oncpu.woken = is_before_release(c, thread, ns);
    if (!thread->oncpu.woken)
        op_ready(c, thread, end_of_call(thread), ns);
}

static void begin_unseen(struct collect *c, int64_t ns)
{
    if (!c->unseen.since_ns)
        c->unseen.since_ns = ns;
}

static void end_unseen(struct collect *c, int64_t ns)
{
    if (c->unseen.since_ns)
        c->unseen.ns += ns - c->unseen.since_ns;
    c->unseen.since_ns = 0;
}

/* Whether states are inferred now: wake-ups show from when on a thread is ready. */
static bool is_inferred(const struct collect *c)
{
    return c->unseen.since_ns || c->unseen.wakings;
}

/* Logs a change in whether states are known from here on. Only a running goroutine can log. */
static void log_readiness(struct collect *c, struct thread *thread, int64_t ns)
{
    bool inferred = is_inferred(c) || c->unseen.unlogged;
    if (inferred == c->unseen.logged || thread->g.state != G_RUNNING)
        return;
    c->unseen.logged = inferred;
    c->unseen.unlogged = false;
    EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_READINESS),
          names_string(c, inferred ? WIRE_READINESS_INFERRED : WIRE_READINESS_KERNEL), 0);
}

/* Whether only the thread's switches show that it does not run. */
static bool is_off_by_switches(const struct thread *thread)
{
    bool waits = thread->g.state == G_WAITING ||
                 (thread->g.state == G_SYSCALL &&
                  (thread->g.wait == SHM_KERNEL || thread->g.wait == SHM_FAULT));
    return !thread->g.in_call && thread->oncpu.off &&
           (waits || (thread->g.state == G_RUNNABLE && thread->oncpu.preempted));
}

/*
 * Switches were lost: from here on the thread's own records decide whether it is in a call that
 * blocked, and outside of calls it runs.
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
    case SWITCH_WOKEN:
        woken(c, thread, sw, ns);
        break;
    case SWITCH_EXIT:
        state_end_moment(&thread->oncpu, ns);
        /* A thread killed during a wait stays in that state. */
        if (thread->g.state == G_RUNNING && !thread->g.in_call && !oncpu_does_more(thread)) {
            if (c->states.alive > 1)
                holds_log_last(c, thread, ns);
            op_exit(c, thread, ns);
        }
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
    case SWITCH_WAKINGS_LOST:
        c->unseen.wakings = true;
        c->unseen.unlogged = !c->unseen.logged;
        break;
    case SWITCH_WAKINGS_FOUND:
        c->unseen.wakings = false;
        break;
    }
}

/* MARK: Generations */

/* Whether a generation has begun. */
static bool has_begun(const struct trace *t)
{
    return t->out.generation > 0;
}

/* All programs of a trace lose their switches at the same times. */
static void note_readiness(struct trace *t)
{
    bool unseen = !t->options.switches;
    char text[64];
    for (const struct collect *c = t->programs; c; c = c->next_in_trace)
        unseen |= is_inferred(c);
    int size = snprintf(text, sizeof text, "%s %s", WIRE_READINESS,
                        unseen ? WIRE_READINESS_INFERRED : WIRE_READINESS_KERNEL);
    v2_writer_note(t->out.out, (trail_string){text, (size_t)size});
}

static int64_t wall_of(int64_t ns)
{
    int64_t now = (int64_t)clock_ns(CLOCK_MONOTONIC);
    return (int64_t)clock_ns(CLOCK_REALTIME) - (now - ns);
}

/* Writes what readers of a generation need to know about a program, before its first event
 * there. */
static void introduce(struct collect *c)
{
    uint64_t generation = v2_writer_generation(c->trace->out.out);
    if (c->generation == generation)
        return;
    c->generation = generation;
    code_write_modules(c);
}

static void next_generation(struct trace *t)
{
    int64_t ns = t->out.now_ns, wall_ns = wall_of(ns);
    if (!has_begun(t))
        t->model.begin_ns = ns;
    thread_writer_end(&t->out);
    if (t->options.generation)
        t->options.generation(t->options.generation_context, ns);
    thread_writer_begin(&t->out, wall_ns, &(trail_maker){.made_by = TRAIL_MADE_BY_RECORD});
    names_clock(t, ns, wall_ns);
    note_readiness(t);
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        introduce(c);
        heap_begin_generation(c);
    }
    state_write_statuses(t);
    thread_writer_begun(&t->out);
}

/* MARK: The merge: a heap of threads by the time of their next item */

static bool is_before(struct thread *const *a, struct thread *const *b)
{
    uint64_t ta = oncpu_next_time(*a), tb = oncpu_next_time(*b);
    return ta != tb ? ta < tb : (*a)->serial < (*b)->serial;
}

HEAP(queue, struct thread *, is_before)

static void queue_build(struct trace *t)
{
    struct model *model = &t->model;
    struct thread *thread;
    model->queue_count = 0;
    if (!GROW(model->queue, model->queue_room, t->threads.count + 1)) {
        trace_no_memory(t);
        return;
    }
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
            if (oncpu_has_next(thread))
                model->queue[model->queue_count++] = thread;
        }
    }
    for (size_t i = model->queue_count; i-- > 0;)
        queue_down(model->queue, model->queue_count, i, model->queue[i]);
}

/* The first thread in the queue has nothing more, or its next item is later. */
static void queue_advance(struct trace *t)
{
    struct model *model = &t->model;
    struct thread *thread = model->queue[0];
    if (!oncpu_has_next(thread)) {
        thread = model->queue[--model->queue_count];
        if (!model->queue_count)
            return;
    }
    queue_down(model->queue, model->queue_count, 0, thread);
}

static bool is_full(const struct trace *t, int64_t ns)
{
    return ns - t->out.begin_ns >= t->options.generation_ns || thread_writer_is_full(&t->out);
}

/* Does what comes next for a thread, at `ns`. */
static void do_next(struct collect *c, struct thread *thread, int64_t ns)
{
    if (oncpu_is_next(thread)) {
        struct cpu_switch sw = oncpu_take(thread);
        if (has_begun(c->trace))
            do_switch(c, thread, &sw, ns);
    } else {
        /* A thread that acts is on a CPU, even if the switch was lost; within a call it may be a
         * signal handler that acts. */
        if (!oncpu_is_done_by_others(thread)) {
            thread->oncpu.off = false;
            thread->oncpu.handles = thread->g.in_call && oncpu_is_interrupted(thread);
            if (thread->g.state == G_RUNNABLE && !thread->g.in_call)
                state_run(c, thread, ns);
        }
        struct op op = op_take(thread);
        op_do(c, thread, &op, ns);
    }
    if (has_begun(c->trace))
        log_readiness(c, thread, c->trace->out.now_ns);
}

/* Returns the time of the next event. */
static int64_t next_ns(struct collect *c, uint64_t ticks)
{
    return thread_writer_at(&c->trace->out, ticks_to_ns(c->ticks, ticks));
}

/* Writes a program's pending samples, with the thread's current state and P. */
static void write_samples_of(struct collect *c, int64_t before_ns)
{
    const struct trace *t = c->trace;
    struct pending_sample sample;
    while (profile_next(c, before_ns, &sample)) {
        struct thread *thread = thread_with_tid(c, sample.tid);
        if (has_begun(t) && thread && thread->g.state != G_NONE && thread->g.state != G_DEAD) {
            (void)v2_writer_sample(t->out.out,
                                   sample.ns > t->out.begin_ns ? sample.ns : t->out.begin_ns,
                                   state_m(c, thread),
                                   thread->written.p < 0 ? V2_NO_PROC : (uint64_t)thread->written.p,
                                   thread->serial, code_pcs(c, sample.pcs, sample.count));
            c->summary.samples++;
        }
        free(sample.pcs);
    }
}

static void write_samples(const struct trace *t, int64_t before_ns)
{
    for (struct collect *c = t->programs; c && t->waiting_samples; c = c->next_in_trace)
        write_samples_of(c, before_ns);
}

/* Writes the event on a P, as Go does: that of a running thread, or one that `writer` gets for the
 * moment. */
static void write_heap_event(struct thread *writer, int64_t ns, uint64_t bytes)
{
    struct thread *running = state_any_running(writer->of->trace);
    if (!running)
        state_take_proc(writer->of, writer, ns);
    EVENT((running ? running : writer)->of, running ? running : writer, ns, V2_HeapAlloc, bytes);
    if (!running)
        state_give_proc(writer->of, writer, ns);
}

/* Writes the heap as it was before the next op, that of `writer`. Before the first generation
 * nothing is written. */
static void write_heap(const struct trace *t, struct thread *writer, uint64_t before)
{
    uint64_t time, bytes;
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        while (heap_next(c, before, &time, &bytes)) {
            if (has_begun(t))
                write_heap_event(writer, next_ns(c, time), bytes);
        }
    }
}

/* The last thread of a process has ended while others continue: removes its heap from the trace. */
static void end_heap(struct trace *t, struct collect *c)
{
    struct thread *running = state_any_running(t);
    heap_end(c);
    if (running)
        EVENT(running->of, running, thread_writer_tick(&t->out), V2_HeapAlloc, (uint64_t)t->heap);
}

/* Whether the trace has a live thread. */
static bool has_threads(const struct trace *t)
{
    const struct thread *thread;
    for (const struct collect *c = t->programs; c; c = c->next_in_trace) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
            if (thread->g.state != G_NONE && thread->g.state != G_DEAD)
                return true;
        }
    }
    return false;
}

/* Does what comes next in the trace: the first thread in the queue acts. */
static void run_next(struct trace *t)
{
    struct thread *thread = t->model.queue[0];
    struct collect *c = thread->of;
    if (t->has_heap)
        write_heap(t, thread, oncpu_next_time(thread));
    int64_t ns = next_ns(c, oncpu_next_time(thread));
    write_samples(t, ns);
    if (has_begun(t) ? is_full(t, ns) : !oncpu_is_next(thread))
        next_generation(t);
    if (has_begun(t))
        introduce(c);
    do_next(c, thread, t->out.now_ns);
    if (c->heap.share && c->ended && c->states.alive == 0 && collect_label(c))
        end_heap(t, c);
    queue_advance(t);
}

/* The model waits this long for the record of a call's end: see is_on_its_way. Releases are kept
 * for longer (trace.c). */
#define ON_ITS_WAY_NS ((uint64_t)3 * COLLECT_DELAY_NS)

/* It waits this long if the thread has not had a CPU for TO_RECORD_NS since it was woken. */
#define STARVED_NS   3000000000
#define TO_RECORD_NS 10000000

/* Whether the thread was woken so recently, or has had a CPU for so short a time since, that its
 * record may still come. */
static bool may_be_on_its_way(const struct collect *c, const struct thread *thread)
{
    uint64_t fed_at = c->feed.fed_at;
    uint64_t age = fed_at - thread->oncpu.at[thread->oncpu.first].time;
    return age < ticks_of_ns(c->ticks, ON_ITS_WAY_NS) ||
           (age < ticks_of_ns(c->ticks, STARVED_NS) &&
            oncpu_on_since(thread, fed_at) < ticks_of_ns(c->ticks, TO_RECORD_NS));
}

/*
 * Whether the thread's waker may still become known. It was woken in a call whose end is not
 * recorded yet, because it waits for a CPU of a busy machine, or not matched yet, because the end
 * of a process has not been noticed.
 */
static bool is_on_its_way(const struct trace *t, const struct thread *thread)
{
    const struct collect *c = thread->of;
    const struct oncpu *o = &thread->oncpu;
    if (t->ending || c->ended || !thread->g.in_call || thread->g.state != G_WAITING ||
        thread->g.waker || wait_is_spinning(thread->g.wait) || !oncpu_is_next(thread))
        return false;
    const struct op *wake = oncpu_wake(thread);
    return (o->at[o->first].kind == SWITCH_WOKEN || o->at[o->first].kind == SWITCH_IN) &&
           (!wake || wake->unmatched) && oncpu_is_wake(thread) && !oncpu_is_killed(thread) &&
           may_be_on_its_way(c, thread);
}

/* Whether all records from before `time` have been read. */
static bool is_read_since(const struct trace *t, uint64_t time)
{
    for (const struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (!c->ended && c->feed.fed_at <= time)
            return false;
    }
    return true;
}

/* Whether the thread waits for a lock whose name the next step may find. */
static bool is_name_on_its_way(struct trace *t, const struct thread *thread)
{
    struct model *model = &t->model;
    if (t->ending || oncpu_is_next(thread))
        return false;
    const struct op *op = op_in_ring(thread, 0);
    if (!op_lacks_name(thread->of, op))
        return false;
    if (model->nameless_thread != thread->serial || model->nameless_time != op->time) {
        model->nameless_thread = thread->serial;
        model->nameless_time = op->time;
        model->nameless_at = ticks_now(thread->of->ticks);
    }
    return !is_read_since(t, model->nameless_at);
}

/* Whether anything before the watermark has not been written. */
static bool has_more(const struct trace *t)
{
    return t->model.queue_count && oncpu_next_time(t->model.queue[0]) < t->watermark;
}

/* Returns the time up to which everything is written. */
static int64_t written_until(const struct trace *t)
{
    if (has_more(t) || !t->programs)
        return t->out.now_ns;
    return t->watermark == UINT64_MAX ? INT64_MAX : ticks_to_ns(t->programs->ticks, t->watermark);
}

void model_run(struct trace *t)
{
    for (struct collect *c = t->programs; c; c = c->next_in_trace)
        holds_forget(c);
    queue_build(t);
    while (!t->failed && has_more(t) && !is_on_its_way(t, t->model.queue[0]) &&
           !is_name_on_its_way(t, t->model.queue[0]) && !deadline_is_over(t) && !trace_is_full(t))
        run_next(t);
    t->model.written_ns = written_until(t);
    if (t->programs)
        write_samples(t, t->model.written_ns);
    for (struct collect *c = t->programs; c; c = c->next_in_trace)
        threads_sweep(c);
}

/*
 * Extends the generation to the time up to which everything is written, because open waits have
 * lasted until then. Any event at that time does: a thread without a P takes one for it.
 */
static void extend_generation(struct trace *t)
{
    struct thread *thread;
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
            if (thread->g.state == G_NONE || thread->g.state == G_DEAD || thread->written.p >= 0)
                continue;
            if (t->model.written_ns > t->out.now_ns) {
                int64_t ns = thread_writer_at(&t->out, t->model.written_ns);
                state_take_proc(c, thread, ns);
                state_give_proc(c, thread, ns);
            }
            return;
        }
    }
}

void model_cut(struct trace *t)
{
    if (!has_begun(t) || !has_threads(t))
        return;
    extend_generation(t);
    next_generation(t);
}

/* Writes an idle P: the process was killed before it recorded a thread. */
static void write_idle(struct trace *t)
{
    const struct collect *c = t->programs;
    (void)thread_writer_at(&t->out, c ? ticks_to_ns(c->ticks, c->end_ticks) : 0);
    next_generation(t);
    THREAD_EVENT(&t->out, c ? (uint64_t)c->options.process.pid : 0, t->out.now_ns, V2_ProcStatus, 0,
                 V2_PROC_IDLE);
}

/* Returns the time of the end: a full trace ends with its last event. */
static int64_t end_ns(struct collect *c)
{
    return trace_is_full(c->trace) ? thread_writer_tick(&c->trace->out)
                                   : next_ns(c, c->trace->end_ticks);
}

/* Ends a thread that is alive when the trace ends. */
static void end_with_trace(struct collect *c, struct thread *thread)
{
    int64_t end = end_ns(c);
    state_enter(c, thread, thread->g.state, end);
    c->last_ns = end;
    holds_log_last(c, thread, end);
    if (thread->g.state == G_RUNNING) {
        state_event(c, thread, end, V2_GoDestroy, 0, NULL);
        state_give_proc(c, thread, end);
    }
}

/* Also counts the time of threads that are alive at the end. The trace ends when the last program
 * ended. */
void model_end(struct trace *t)
{
    struct thread *thread, *last = NULL;
    int64_t end;
    if (!has_begun(t))
        write_idle(t);
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (c->end_ticks > t->end_ticks)
            t->end_ticks = c->end_ticks;
    }
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
            if (thread->g.state == G_NONE || thread->g.state == G_DEAD)
                continue;
            last = thread;
            end_with_trace(c, thread);
        }
    }
    if (last)
        write_heap(t, last, UINT64_MAX);
    if (last && last->written.p < 0) {
        end = end_ns(last->of);
        state_take_proc(last->of, last, end);
        state_give_proc(last->of, last, end);
    }
}

void model_summarize(const struct collect *c, struct collect_summary *summary)
{
    summary->short_ns = feed_short_ns(c);
    summary->unseen_ns = c->unseen.ns;
    if (c->unseen.since_ns && c->last_ns > c->unseen.since_ns)
        summary->unseen_ns += c->last_ns - c->unseen.since_ns;
    /* Without switches, the moments of short waits are not known either. */
    if (c->trace->options.switches && !summary->unseen_ns && summary->short_ns > c->moments_ns)
        summary->short_ns = c->moments_ns;
    if (c->trace->options.switches && c->moments_ns > summary->short_ns)
        summary->wait_ns[SHM_KERNEL] += c->moments_ns - summary->short_ns;
    summary->moments_ns = summary->short_ns < c->moments_ns ? summary->short_ns : c->moments_ns;
}

void model_dispose(struct trace *t)
{
    free(t->model.queue);
}
