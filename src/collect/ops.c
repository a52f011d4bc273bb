/* Executes ops: see ops.h. */
#include "collect/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "collect/parts.h"
#include "wire/merged_ids.h"
#include "wire/waits.h"

/* MARK: Threads */

static void do_start(struct collect *c, struct thread *thread, int64_t ns)
{
    bool first = c->summary.threads++ == 0;
    state_begin(c, thread);
    state_run(c, thread, ns);
    if (first)
        EVENT(c, thread, ns, V2_ProcsChange, (uint64_t)sysconf(_SC_NPROCESSORS_ONLN), 0);
}

static void do_create(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    struct thread *child = thread_of(c, op->object);
    state_run(c, thread, ns);
    if (!child || child->of != c || child->g.state != G_NONE || child == thread)
        return;
    child->routine = op->object2;
    child->created = op->time;
    if (op->given)
        child->given = *op->given;
    EVENT(c, thread, ns, V2_GoCreate, child->serial, thread_name_stack(c, child),
          code_stack(c, op->stack, 0));
    state_enter(c, child, G_RUNNABLE, ns);
}

/* Returns the first thread of the process that a fork made; NULL: not recorded, or its start is not
 * known yet. */
static struct thread *forked_thread(const struct trace *t, uint64_t number)
{
    for (struct collect *c = t->programs; c && number; c = c->next_in_trace) {
        if (area_fork(c->area) == number)
            return thread_with_tid(c, (uint64_t)collect_pid(c));
    }
    return NULL;
}

/*
 * The child waits for the kernel to copy the process; if the kernel does not report when it has,
 * until the child's first record. Go 1.22 cannot create a waiting goroutine.
 */
static void do_fork(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    struct thread *child = forked_thread(c->trace, op->object);
    state_run(c, thread, ns);
    if (!child || child->of == c || child->g.state != G_NONE || c->trace->options.version < 23)
        return;
    EVENT(c, thread, ns, V2_GoCreateBlocked, child->serial, thread_name_stack(child->of, child),
          code_stack(c, op->stack, 0));
    child->g.wait = SHM_KERNEL;
    state_enter(child->of, child, G_WAITING, ns);
}

/* Writes the name of the thread that a join waits for; empty: not known. */
static void joined_name(struct collect *c, const struct op *op, char *text, size_t size)
{
    /* The C library reuses a thread's handle. */
    const struct thread *target = thread_joined(c, op->object, op->time);
    *text = '\0';
    if (target)
        thread_name_text(c, target, text, size);
}

/*
 * A pidfd is called "process 1234"; the words for a wait for a child process already contain the
 * word.
 */
static const char *without_kind(const char *name)
{
    const char word[] = "process ";
    return strncmp(name, word, sizeof word - 1) == 0 ? name + sizeof word - 1 : name;
}

/* Whether the op of a wait contains the place where the holder took the lock. */
static bool is_lock_of_memory(uint8_t wait)
{
    return shm_is_lock(wait) && wait != SHM_FILE_LOCK;
}

bool op_lacks_name(struct collect *c, const struct op *op)
{
    if (op->kind != OP_BLOCK || !is_lock_of_memory(op->wait) || !shm_is_shared(op->object) ||
        op->object2 || lock_names_has(c, op->object))
        return false;
    holds_name_shared(c, op->object, op->time);
    return !lock_names_has(c, op->object);
}

/* Whether an op waits for a variable of the program, or for shared memory. */
static bool is_for_variable(const struct op *op)
{
    return op->object && op->wait != SHM_JOIN && op->wait != SHM_OMP_WORK && !op->detail &&
           !shm_is_numbered(op->object) && !shm_is_descriptor(op->object) &&
           !shm_is_shared_end(op->object) && !shm_is_signals(op->object) &&
           !shm_is_pollfds(op->object);
}

/* Returns the name of a lock. A shared lock is named by any process that knows where it was
 * taken. */
static const char *lock_name(struct collect *c, const struct op *op)
{
    bool shared = shm_is_shared(op->object);
    if (!op->object2 && shared)
        holds_name_shared(c, op->object, op->time);
    return lock_names_lock(c, op->object, op->object2, shared ? 0 : op->stack);
}

/* Returns the name of a wait's object; its address identifies it. NULL: not kept. */
static const char *kept_name(struct collect *c, const struct op *op)
{
    if (op->name || !is_for_variable(op))
        return op->name;
    return shm_is_lock(op->wait) ? lock_name(c, op) : lock_names_object(c, op->object);
}

/* Writes the name of a wait's object, "stats_mu", "/var/lib/x", "fd 7"; empty: none. `name` is the
 * kept one. */
static void wait_object(struct collect *c, const struct op *op, const char *name, char *text,
                        size_t size)
{
    *text = '\0';
    if (op->wait == SHM_JOIN)
        joined_name(c, op, text, size);
    else if (name)
        snprintf(text, size, "%s", op->wait == SHM_CHILD ? without_kind(name) : name);
    else if (shm_is_numbered(op->object))
        numbered_text(op->object, text, size);
    else if (op->detail)
        snprintf(text, size, "fd %" PRIu32, op->detail - 1);
}

/*
 * Writes the object of a wait as a log before it: category "wait", text "mutex stats_mu", "read
 * /var/lib/x", "accept 127.0.0.1:8080", "join worker"; if the object has no name, only the kind:
 * "poll". A sleep has no log, because its reason is enough. Readers that do not know this category
 * show a log.
 */
static void log_wait(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    char object[560];
    if (op->wait == SHM_SLEEP)
        return;
    const char *name = kept_name(c, op);
    uint64_t text = name ? names_known_wait(c, op->wait, name) : 0;
    if (!text) {
        wait_object(c, op, name, object, sizeof object);
        text = names_wait(c, op->wait, name, object);
    }
    if (op->wait == SHM_FILE_LOCK && op->name)
        lock_names_file_is(c, op->object, op->name);
    EVENT(c, thread, ns, V2_UserLog, 0, names_wait_category(c), text, 0);
}

/* Writes what ended the wait, if it was a time: a log of the same category after it. */
static void log_ended_by(struct collect *c, struct thread *thread, int64_t ns, const char *time)
{
    EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_WAIT_CATEGORY), names_string(c, time),
          0);
}

/*
 * At the end of a call. Not if that was no wait according to the kernel's context switches, nor if
 * the thread waited for the mutex of the condition variable since.
 */
static void log_end(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    bool last = thread->g.call.wait_number == thread->g.current_wait;
    if ((op->flags & SHM_EXPIRED || op->on_time) && thread->g.in_call &&
        last != thread->g.waited_in_call && thread->g.state == G_RUNNING)
        log_ended_by(c, thread, ns, op->on_time ? WIRE_WAIT_UNTIL : WIRE_WAIT_TIMED_OUT);
}

/* Writes "waiting for mutex stats_mu in thread worker (5)". */
static void wait_text(struct collect *c, const struct thread *thread, char *text, size_t size)
{
    const struct wire_wait_kind *kind = &wire_wait_kinds[wire_log_kinds[thread->g.wait]];
    const struct op *call = &thread->g.call;
    char object[200] = "", name[100];
    if (thread->g.in_call && call->wait == thread->g.wait)
        wait_object(c, call, kept_name(c, call), object, sizeof object);
    thread_name_text(c, thread, name, sizeof name);
    (void)snprintf(text, size, "%s%s%s in thread %s%s(%" PRIu64 ")",
                   *object ? kind->phrase_of : kind->phrase, *object ? " " : "", object, name,
                   *name ? " " : "", thread->serial);
}

void op_look_at_wait(struct collect *c, struct thread *thread, int64_t lasted_ns, bool ended)
{
    struct slow_candidate wait = {.what = SLOW_WAIT,
                                  .span = &thread->g.slow,
                                  .wait = thread->g.wait,
                                  .goroutine = thread->serial,
                                  .ended = ended,
                                  .lasted_ns = lasted_ns};
    const struct slow_limit *limit = slow_find(&c->trace->slow, &wait);
    char text[SLOW_TEXT];
    if (!limit)
        return;
    wait_text(c, thread, text, sizeof text);
    slow_report(&c->trace->slow, &wait, limit, text);
}

void op_look_at_open_waits(struct collect *c, int64_t ns)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        if (thread->g.state == G_WAITING || thread->g.state == G_SYSCALL)
            op_look_at_wait(c, thread, thread->g.waited_ns + ns - thread->g.since_ns, false);
    }
}

enum { HOLD_SIZE = 640, HOLDER_SIZE = sizeof WIRE_HELD_BY "4294967295" };

/* Appends as much of a word as leaves room for the rest of a hold. */
static char *put_word(char *to, const char *end, const char *word)
{
    while (*word && to < end)
        *to++ = *word++;
    return to;
}

/*
 * Writes "mutex stats_mu 110ms" without printf, which would take longer than everything else about
 * a hold.
 */
static void hold_text(char text[HOLD_SIZE], const struct op *op, const char *name, int64_t ns,
                      uint64_t holder)
{
    const char *end = text + (HOLD_SIZE - DURATION_SIZE - HOLDER_SIZE - sizeof "  ~");
    char *to = put_word(text, end, wait_kinds[op->wait].words);
    *to++ = ' ';
    to = put_word(to, end, name);
    *to++ = ' ';
    if (op->flags & SHM_COARSE)
        *to++ = '~';
    to = duration_put(to, ns, DURATION_LOG);
    *to = '\0';
    if (holder)
        (void)snprintf(to, HOLDER_SIZE, WIRE_HELD_BY "%" PRIu64, holder % ID_BLOCK);
}

/*
 * Writes a hold that a thread waited for, or that was long: category "held", text "mutex stats_mu
 * 110ms", where it was taken. "~" marks a start that is only accurate to a millisecond, because
 * locks were taken very often then. A lock that another thread had taken: "mutex stats_mu 110ms by
 * 7"; of that thread's stack only the call is known.
 */
static void log_hold(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    int64_t since = ticks_to_ns(c->ticks, op->object2);
    uint64_t holder = op->detail ? thread_serial(c, op->detail) : 0;
    uint64_t stack = holder ? 0 : op->stack;
    char text[HOLD_SIZE];
    if (!op->object2 || op->wait == SHM_NO_WAIT || thread->g.state != G_RUNNING || since > ns ||
        (!op->release->taken && op->time - op->object2 < area_hold_ticks(c->area)))
        return;
    const char *name = op->wait == SHM_FILE_LOCK ? lock_names_file(c, op->object)
                                                 : lock_names_lock(c, op->object, op->pc, stack);
    if (!name)
        return;
    hold_text(text, op, name, ns - since, holder);
    EVENT(c, thread, ns, V2_UserLog, 0, names_held_category(c), names_string(c, text),
          op->pc ? lock_names_hold(c, op->pc, stack) : 0);
}

/*
 * Writes a signal sent before the wait for it: category "signalled", text "main (app.c:12)". An
 * object without a name may have another one's address.
 */
static void log_lost_signal(struct collect *c, struct thread *thread, const struct op *op,
                            int64_t ns)
{
    char place[300];
    if (op->wait != SHM_COND || !op->object2 || op->object2 > UINT32_MAX ||
        strncmp(lock_names_object(c, op->object), "0x", 2) == 0)
        return;
    code_place(c, op->object2, place, sizeof place);
    if (*place)
        EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_SIGNALLED), names_string(c, place),
              0);
}

void op_block(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    uint64_t stack = code_stack(c, op->stack, op->pc);
    /* The thread was woken in vain, and the wait continues. */
    bool again = op->wait_number && op->wait_number == thread->g.current_wait;
    state_run(c, thread, ns);
    if (thread->g.waited_in_call && op->flags & SHM_EXPIRED && !again)
        log_ended_by(c, thread, ns, WIRE_WAIT_TIMED_OUT);
    /* No end is known: the wait has lasted longer than most, or until the process ended. */
    if (!oncpu_does_more(thread) && (op->wait_number || oncpu_next_in(c, thread) == INT64_MAX)) {
        holds_log(c, thread, ns);
        if (!again)
            log_lost_signal(c, thread, op, ns);
    }
    log_wait(c, thread, op, ns);
    thread->g.wait = op->wait;
    thread->g.wait_pc = op->pc;
    thread->g.site = state_wait_site(c, op->stack, op->wait);
    thread->g.waker = thread->g.waker_stack = 0;
    thread->g.current_wait = op->wait_number;
    if (!again) {
        thread->g.waited_ns = 0;
        thread->g.slow = (struct slow_span){.begin_ns = ns};
        thread->g.holder_pc = is_lock_of_memory(op->wait) && !op->no_holder ? op->object2 : 0;
        c->summary.waits++;
    }
    if (thread->written.p < 0)
        return; /* out of memory */
    if (wait_is_syscall(c, op->wait)) {
        EVENT(c, thread, ns, V2_GoSyscallBegin,
              thread_writer_next_of_p(&c->trace->out, &thread->written), stack);
        state_give_proc(c, thread, ns);
        state_enter(c, thread, G_SYSCALL, ns);
    } else {
        EVENT(c, thread, ns, V2_GoBlock, names_reason(c, op->wait), stack);
        state_give_proc(c, thread, ns);
        state_enter(c, thread, G_WAITING, ns);
    }
}

/*
 * If the kernel's context switches are known, a call is a wait from when the thread leaves its CPU
 * voluntarily: time that the call computes or is preempted is not a wait. A spinning thread waits
 * on the CPU.
 */
static void do_block(struct collect *c, struct thread *thread, struct op *op, int64_t ns)
{
    bool known = oncpu_is_known(c, op->time), on = known && !thread->oncpu.off;
    /* The mutex of a condition variable: the thread waits for it from its next sleep on. */
    bool again = thread->g.in_call;
    lock_names_wait(c, op);
    thread->g.waited_in_call = again && thread->g.call.wait_number == thread->g.current_wait;
    thread->g.in_call = true;
    thread->oncpu.over = false;
    thread->g.call = *op;
    if (!wait_is_spinning(op->wait) && (on || (known && again)))
        return;
    op_block(c, thread, op, ns);
    if (on)
        thread->oncpu.on_since = ns;
}

/*
 * Whether the kernel shows when a waiting thread becomes ready: a release then only shows which
 * thread woke it.
 */
static bool is_woken_by_kernel(const struct thread *thread)
{
    const struct collect *c = thread->of;
    if (!thread->oncpu.off || wait_is_spinning(thread->g.wait))
        return false;
    return (c->trace->options.wakings && !oncpu_lacks_waking(thread)) ||
           (thread->g.call.wait_number == thread->g.current_wait && oncpu_next_end(thread) &&
            !oncpu_is_wake(thread));
}

/* Unblocks the threads in the list that are still in the wait; frees the list. A thread that ends
 * can no longer do so later. */
static void wake_all(struct collect *c, struct thread *thread, struct woken *woken, uint64_t stack,
                     bool ends, int64_t ns)
{
    while (woken) {
        struct woken *next = woken->next;
        struct thread *other = thread_of(c, woken->serial);
        if (other && other->g.state == G_WAITING && other->g.current_wait == woken->wait_number) {
            other->g.waker = thread->serial;
            other->g.waker_stack = stack;
            if (ends || other->oncpu.woken || !is_woken_by_kernel(other))
                state_unblock(c, thread, other, ns, stack);
        }
        free(woken);
        woken = next;
    }
}

/*
 * The last thread has arrived at the end of an OpenMP parallel region. Workers do not return from
 * there before the next region begins: from here on they wait for that.
 */
static void end_parallel_region(struct collect *c, struct thread *thread, const struct op *op,
                                int64_t ns)
{
    struct thread *worker;
    for (size_t at = 0; (worker = threads_next(c, &at)) != NULL;) {
        if (worker == thread || worker->g.state != G_WAITING || !worker->g.in_call ||
            worker->g.call.wait != SHM_OMP_JOIN || worker->g.call.object != op->object)
            continue;
        bool on = worker->oncpu.on_since >= 0;
        state_unblock(c, thread, worker, ns, op->stack);
        int64_t next = thread_writer_tick(&c->trace->out);
        state_run(c, worker, next);
        worker->g.call.wait = SHM_OMP_WORK;
        op_block(c, worker, &worker->g.call, next);
        if (on)
            worker->oncpu.on_since = next;
    }
}

static void do_release(struct collect *c, struct thread *thread, struct op *op, int64_t ns)
{
    if (!op->release)
        return;
    /* A waiting thread may release a lock: the mutex of its condition variable, or a lock in a
     * signal handler. */
    if (thread->g.state == G_NONE)
        state_run(c, thread, ns);
    log_hold(c, thread, op, ns);
    wake_all(c, thread, release_is_written(op->release), op->stack, false, ns);
    if (op->wait == SHM_OMP_JOIN)
        end_parallel_region(c, thread, op, ns);
}

/* Unblocks a thread by the release just written, or by the one that ended its call. */
static void unblock(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns)
{
    uint64_t serial = thread->g.waker ? thread->g.waker : wake ? wake->object : 0;
    uint64_t stack = thread->g.waker ? thread->g.waker_stack : wake ? wake->stack : 0;
    struct thread *waker = serial ? thread_of(c, serial) : NULL;
    if (!waker)
        state_unblock(c, thread, thread, ns, 0);
    else
        state_unblock(waker->of, waker, thread, ns, stack);
}

void op_ready(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns)
{
    if (thread->g.state == G_WAITING) {
        unblock(c, thread, wake, ns);
    } else if (thread->g.state == G_SYSCALL) {
        state_event(c, thread, ns, V2_GoSyscallEndBlocked, 0, NULL);
        state_enter(c, thread, G_RUNNABLE, ns);
    }
}

void op_go_on(struct collect *c, struct thread *thread, const struct op *wake, int64_t ns)
{
    if (thread->g.state == G_WAITING) {
        unblock(c, thread, wake, ns);
        ns = thread_writer_tick(&c->trace->out);
    }
    state_run(c, thread, ns);
}

void op_exit(struct collect *c, struct thread *thread, int64_t ns)
{
    /* A thread without records is not in the trace, nor is its end. */
    if (thread->g.state != G_NONE) {
        state_run(c, thread, ns);
        wake_all(c, thread, thread->joiners, 0, true, ns);
        thread->joiners = NULL;
    }
    state_end(c, thread, ns);
}

/*
 * A wait still open when the trace ends lasts to its end, which shows a deadlock even if the
 * program was killed. Threads that a process lost by executing another program have ended.
 */
static void do_gone(struct collect *c, struct thread *thread, const struct op *op, int64_t ns)
{
    /* The record of its switch-out may be missing. */
    if (thread->g.state == G_RUNNING && thread->g.in_call)
        op_block(c, thread, &thread->g.call, ns);
    bool waits = thread->g.state == G_WAITING || thread->g.state == G_SYSCALL;
    if (c->trace->ending && waits && !(op->flags & OP_EXECUTES))
        return;
    if (c->trace->ending)
        holds_log_last(c, thread, ns);
    op_exit(c, thread, ns);
}

/* MARK: Each op */

/* Drops an op of a thread that has ended, by the kernel's record or its own. */
static void drop(struct collect *c, struct op *op)
{
    /* The op at a wait's end comes from the record of its start, and is not damage. */
    if (op->kind != OP_EXIT && op->kind != OP_NOTHING && op->kind != OP_WAKE && op->kind != OP_GONE)
        collect_damage(c);
    if (op->release)
        woken_free(release_is_written(op->release));
    op_free(op);
}

void op_do(struct collect *c, struct thread *thread, struct op *op, int64_t ns)
{
    if (thread->g.state == G_DEAD) {
        drop(c, op);
        return;
    }
    switch (op->kind) {
    case OP_START:
        do_start(c, thread, ns);
        break;
    case OP_FORK:
        do_fork(c, thread, op, ns);
        break;
    case OP_CREATE:
        do_create(c, thread, op, ns);
        op_free(op);
        break;
    case OP_NOTHING:
        break;
    case OP_BLOCK:
        do_block(c, thread, op, ns);
        break;
    case OP_RELEASE:
        do_release(c, thread, op, ns);
        break;
    case OP_WAKE:
        op_go_on(c, thread, op, ns);
        log_end(c, thread, op, c->trace->out.now_ns);
        thread->g.in_call = false;
        break;
    case OP_EXIT:
        /* Of a lock that it has not released, the holder remains known. */
        if (c->states.alive > 1)
            holds_log_ended(c, thread, ns);
        op_exit(c, thread, c->trace->out.now_ns);
        break;
    case OP_GONE:
        do_gone(c, thread, op, ns);
        break;
    case OP_FORGET:
        lock_names_forget(c, op->object);
        break;
    case OP_ANNOTATION:
        annotation_do(c, thread, op, ns);
        op_free(op);
        break;
    }
}
