/* Holders, and threads that wait for each other: stuck_connect (stuck.h). */
#include <linux/futex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/grow.h"
#include "collect/process.h"
#include "stuck/describe.h"
#include "stuck/stuck.h"

static bool list_tids(struct stuck *stuck)
{
    EACH(struct stuck_process, process, stuck->processes, stuck->count) {
        for (size_t j = 0; j < process->held.count; j++) {
            uint64_t tid = (uint64_t)process->held.threads[j].tid;
            process->threads[j].process = process;
            if (!idmap_put(&stuck->by_tid, tid, &process->threads[j]))
                return false;
        }
    }
    return true;
}

/* Whether a thread can hold what another one waits for: across processes only in shared memory.
 * Otherwise it merely has the number of a thread that has ended. */
static bool can_hold(const struct stuck_thread *holder, const struct stuck_thread *thread)
{
    const struct mapping *mapping =
        held_mapping_of(&thread->process->held, thread->held->arguments[0]);
    return holder->process == thread->process || (mapping && mapping->is_shared);
}

/* A process in a PID namespace of its own writes thread IDs of that namespace. */
static void connect(struct stuck *stuck, struct stuck_process *process, struct stuck_thread *thread)
{
    struct process own = {.pid = process->held.pid, .nested = process->held.is_nested};
    struct stuck_holder *holder = &thread->holder;
    holder->own = holder->tid;
    if (holder->tid > 0 && own.nested && !holder->is_inferred)
        holder->tid = (pid_t)process_thread(&own, (uint32_t)holder->tid);
    if (holder->tid <= 0)
        return;
    holder->thread = idmap_find(&stuck->by_tid, (uint64_t)holder->tid);
    if (holder->thread && !can_hold(holder->thread, thread))
        holder->thread = NULL;
    if (holder->thread) {
        holder->thread->waiters++;
        thread->co_waiter = holder->thread->waiter;
        holder->thread->waiter = thread;
    } else if (holder->is_guess) {
        holder->tid = 0;
    }
}

/* MARK: Threads that can continue */

/*
 * A thread that waits for processes, for example for what they write into a pipe, can continue as
 * soon as any of their threads can. A thread that waits for another one can continue if that one
 * can. All others may continue by themselves. The remaining threads wait for each other.
 */
static bool waits_for_processes(const struct stuck_thread *thread)
{
    return thread->state == STUCK_WAITS && !thread->holder.thread && thread->peers.is_all &&
           thread->peers.count > 0;
}

static bool waits_for(const struct stuck_thread *thread, pid_t pid)
{
    for (size_t i = 0; i < thread->peers.count; i++) {
        if (thread->peers.pids[i] == pid)
            return true;
    }
    return false;
}

/* Whether the thread waits for a futex with a time limit. */
static bool has_time_limit(const struct stuck_thread *thread)
{
    return thread->held->in_call && thread->held->call == SYS_futex &&
           thread->held->arguments[3] != 0;
}

/* Whether only threads in `stuck` can end the thread's wait. */
static bool depends(const struct stuck *stuck, const struct stuck_thread *thread)
{
    if (has_time_limit(thread))
        return false;
    if (thread->state == STUCK_WAITS && thread->holder.thread)
        return true;
    if (!waits_for_processes(thread) || thread->process->held.has_alarm)
        return false;
    for (size_t i = 0; i < thread->peers.count; i++) {
        if (!stuck_process_of(stuck, thread->peers.pids[i]))
            return false;
    }
    return true;
}

struct to_do {
    struct stuck_thread *first;
};

static void let_go(struct to_do *to_do, struct stuck_thread *thread)
{
    if (thread->can_go || thread->state == STUCK_ENDED)
        return;
    thread->can_go = true;
    thread->to_do = to_do->first;
    to_do->first = thread;
}

/* Lets all threads that wait for a process continue, when its first thread can. */
static void let_peers_go(struct stuck *stuck, struct to_do *to_do, struct stuck_process *process)
{
    if (process->can_go)
        return;
    process->can_go = true;
    for (size_t i = 0; i < stuck->count; i++) {
        for (size_t j = 0; j < stuck->processes[i].held.count; j++) {
            struct stuck_thread *thread = &stuck->processes[i].threads[j];
            if (waits_for_processes(thread) && waits_for(thread, process->held.pid))
                let_go(to_do, thread);
        }
    }
}

static void find_those_that_can_go(struct stuck *stuck)
{
    struct to_do to_do = {NULL};
    for (size_t i = 0; i < stuck->count; i++) {
        for (size_t j = 0; j < stuck->processes[i].held.count; j++) {
            struct stuck_thread *thread = &stuck->processes[i].threads[j];
            if (!depends(stuck, thread))
                let_go(&to_do, thread);
        }
    }
    while (to_do.first) {
        struct stuck_thread *thread = to_do.first;
        to_do.first = thread->to_do;
        for (struct stuck_thread *at = thread->waiter; at; at = at->co_waiter)
            let_go(&to_do, at);
        let_peers_go(stuck, &to_do, stuck_process_of(stuck, thread->process->held.pid));
    }
}

/* MARK: Cycles */

static struct stuck_thread *thread_of(const struct stuck_process *process)
{
    for (size_t i = 0; process && i < process->held.count; i++) {
        if (!process->threads[i].can_go && process->threads[i].state != STUCK_ENDED)
            return &process->threads[i];
    }
    return NULL;
}

/* Returns a thread that this one waits for: the holder, or a thread of a process that it waits for,
 * preferably not its own. */
static struct stuck_thread *find_next(const struct stuck *stuck, const struct stuck_thread *thread)
{
    struct stuck_thread *next = NULL;
    if (thread->can_go || thread->state != STUCK_WAITS)
        return NULL;
    if (thread->holder.thread)
        return thread->holder.thread;
    for (size_t i = 0; i < thread->peers.count; i++) {
        const struct stuck_process *process = stuck_process_of(stuck, thread->peers.pids[i]);
        if (!next || next->process == thread->process)
            next = thread_of(process);
    }
    return next;
}

/* Returns a thread of the cycle reached by following holders; NULL: no new one. */
static struct stuck_thread *find_cycle(struct stuck_thread *from, size_t walk)
{
    struct stuck_thread *at = from;
    while (at && !at->walk) {
        at->walk = walk;
        at = at->next;
    }
    return at && at->walk == walk ? at : NULL;
}

/* Whether all threads belong to one process, were stopped together, and their objects were
 * copied. */
static bool is_of_one_instant(const struct stuck_thread *first)
{
    const struct stuck_thread *at = first;
    do {
        if (at->process != first->process || !at->held->group ||
            at->held->group != first->held->group || !at->holder.thread)
            return false;
        at = at->next;
    } while (at != first);
    return true;
}

static bool name_nothing(void *context, uint64_t address, char *text, size_t size)
{
    (void)context, (void)address, (void)text, (void)size;
    return false;
}

static bool has_same_peers(const struct peers *a, const struct peers *b)
{
    return a->is_all == b->is_all && a->count == b->count &&
           memcmp(a->pids, b->pids, a->count * sizeof *a->pids) == 0;
}

/*
 * Whether the thread, which sleeps in the same call as before, still waits for the same threads:
 * judged by what its object is now and which processes have it, or by its holder's stack.
 */
static bool waits_for_same(const struct stuck_thread *thread, struct ends *ends)
{
    const struct stuck_process *process = thread->process;
    const struct describe with = {&process->held, ends, name_nothing, NULL};
    struct held_thread held = *thread->held;
    struct stuck_thread now = *thread;
    if (thread->holder.thread && thread->holder.is_inferred)
        return held_has_same_stack(process->held.pid, thread->holder.thread->held,
                                   thread->holder.thread->guards_end);
    held_object_now(process->held.pid, thread->held, &held.object);
    now.held = &held;
    now.holder = (struct stuck_holder){0};
    now.peers = (struct peers){0};
    describe_thread(&now, &with);
    return now.state == STUCK_WAITS && now.holder.tid == thread->holder.own &&
           has_same_peers(&now.peers, &thread->peers);
}

/* The threads that a cycle depends on. */
struct closure {
    struct stuck_thread **list;
    struct held_sleep *sleeps;
    size_t count, capacity;
    size_t walk; /* marks the threads in the closure */
    bool no_memory;
};

static void add_to(struct closure *closure, struct stuck_thread *thread)
{
    if (thread->state == STUCK_ENDED || thread->checked == closure->walk)
        return;
    thread->checked = closure->walk;
    if (GROW(closure->list, closure->capacity, closure->count + 1))
        closure->list[closure->count++] = thread;
    else
        closure->no_memory = true;
}

static void add_those_it_waits_for(const struct stuck *stuck, struct closure *closure,
                                   const struct stuck_thread *thread)
{
    if (thread->holder.thread) {
        add_to(closure, thread->holder.thread);
        return;
    }
    for (size_t i = 0; i < thread->peers.count; i++) {
        struct stuck_process *process = stuck_process_of(stuck, thread->peers.pids[i]);
        for (size_t j = 0; process && j < process->held.count; j++)
            add_to(closure, &process->threads[j]);
    }
}

/* Whether the threads slept at the same time, each still waiting for the same ones. */
static bool is_as_before(const struct stuck *stuck, struct closure *closure)
{
    int64_t deadline = now_ns() + held_sleep_limit(stuck->limit_ns);
    struct ends ends = {0};
    bool same = true;
    for (size_t i = 0; same && i < closure->count; i++) {
        const struct stuck_thread *thread = closure->list[i];
        closure->sleeps[i] = (struct held_sleep){thread->process->held.pid, thread->held, 0};
        same = held_sleeps(&closure->sleeps[i], deadline);
    }
    for (size_t i = 0; same && i < closure->count; i++)
        same = waits_for_same(closure->list[i], &ends);
    for (size_t i = 0; same && i < closure->count; i++)
        same = held_sleeps_on(&closure->sleeps[i]);
    ends_free(&ends);
    return same;
}

/* Examines what a cycle depends on once more. Sets *is_there; false: out of memory. */
static bool confirm(const struct stuck *stuck, struct closure *closure, bool *is_there)
{
    closure->sleeps = calloc(closure->count + 1, sizeof *closure->sleeps);
    bool good = !closure->no_memory && closure->sleeps;
    *is_there = good && is_as_before(stuck, closure);
    free(closure->list);
    free(closure->sleeps);
    return good;
}

static bool confirm_cycle(const struct stuck *stuck, struct stuck_thread *first, bool *is_there)
{
    struct closure closure = {.walk = first->walk};
    add_to(&closure, first);
    for (size_t i = 0; i < closure.count; i++)
        add_those_it_waits_for(stuck, &closure, closure.list[i]);
    return confirm(stuck, &closure, is_there);
}

static bool add_cycle(struct stuck *stuck, struct stuck_thread *first)
{
    struct stuck_thread *at = first;
    bool is_there = true;
    if (!is_of_one_instant(first) && !confirm_cycle(stuck, first, &is_there))
        return false;
    if (!is_there)
        return true;
    if (!APPEND(stuck->cycles, stuck->cycle_capacity, stuck->cycle_count, first))
        return false;
    do {
        at->cycle = (unsigned)stuck->cycle_count;
        at = at->next;
    } while (at != first);
    return true;
}

static bool find_cycles(struct stuck *stuck)
{
    size_t walks = 0;
    for (size_t i = 0; i < stuck->count; i++) {
        for (size_t j = 0; j < stuck->processes[i].held.count; j++) {
            struct stuck_thread *cycle = find_cycle(&stuck->processes[i].threads[j], ++walks);
            if (cycle && !add_cycle(stuck, cycle))
                return false;
        }
    }
    return true;
}

/* MARK: Processes that hang */

/*
 * Whether a futex is waited for without a time limit and only by threads of this process. The C
 * library waits for a thread's exit, which the kernel reports, by a futex that could be shared.
 */
static bool is_for_thread(const struct held *held, const struct stuck_thread *thread)
{
    const uint64_t *arguments = thread->held->arguments;
    const struct mapping *mapping = held_mapping_of(held, arguments[0]);
    bool is_private = arguments[1] & FUTEX_PRIVATE_FLAG || (mapping && !mapping->is_shared);
    return thread->state == STUCK_WAITS && thread->held->call == SYS_futex && arguments[3] == 0 &&
           (is_private || thread->kind == WIRE_WAIT_JOIN) &&
           wire_wait_kinds[thread->kind].traits & WIRE_WAIT_LOCK;
}

static bool seems_to_hang(const struct stuck_process *process)
{
    size_t waiting = 0;
    EACH(const struct stuck_thread, thread, process->threads, process->held.count) {
        if (thread->state == STUCK_ENDED)
            continue;
        if (!is_for_thread(&process->held, thread))
            return false;
        waiting++;
    }
    return waiting > 0;
}

/*
 * Sets process->hangs; false: out of memory. The stops do not suffice: a thread stopped first may
 * be released by another before that one stops.
 */
static bool find_hang(const struct stuck *stuck, struct stuck_process *process)
{
    struct closure closure = {.walk = SIZE_MAX};
    if (!seems_to_hang(process))
        return true;
    for (size_t i = 0; i < process->held.count; i++)
        add_to(&closure, &process->threads[i]);
    return confirm(stuck, &closure, &process->hangs);
}

bool stuck_connect(struct stuck *stuck, trail_error *err)
{
    bool good = list_tids(stuck);
    for (size_t i = 0; good && i < stuck->count; i++) {
        struct stuck_process *process = &stuck->processes[i];
        for (size_t j = 0; j < process->held.count; j++)
            connect(stuck, process, &process->threads[j]);
    }
    if (good)
        find_those_that_can_go(stuck);
    for (size_t i = 0; good && i < stuck->count; i++) {
        struct stuck_process *process = &stuck->processes[i];
        for (size_t j = 0; j < process->held.count; j++)
            process->threads[j].next = find_next(stuck, &process->threads[j]);
    }
    good = good && find_cycles(stuck);
    for (size_t i = 0; good && i < stuck->count; i++)
        good = find_hang(stuck, &stuck->processes[i]);
    if (!good)
        error_no_memory(err);
    return good;
}
