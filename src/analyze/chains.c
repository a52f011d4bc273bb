/* The marks of chains: what each goroutine does, in the order of the trace. */
#include "analyze/chains.h"

#include <stdlib.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/text.h"

/* A lock that its releaser takes again within this time was never free for others. */
#define AGAIN_MOST_NS 100000

/* A goroutine alive. */
struct chain_goroutine {
    int64_t id, since_ns;        /* since when it is ready */
    double stall_ns, stopped_ns; /* the clocks at that time */
    uint32_t thread, wait, last; /* its row; its open wait; its last one */
    trail_stack stack;
    trail_name reason; /* name of the wait */
    int64_t proc;      /* on which it is in a system call; TRAIL_NONE: none */
    uint8_t state;
    bool named, gc;
};

/* MARK: Marks */

static bool mark_at(struct chains *chains, uint32_t thread, int64_t time_ns,
                    const struct chain_mark *mark)
{
    if (!chains->counting || chains->too_long)
        return true;
    if (chains->mark_count >= chains->most_marks) {
        chains->too_long = true;
        return true;
    }
    if (!GROW(chains->marks, chains->mark_capacity, chains->mark_count + 1))
        return false;
    struct chain_mark *own = &chains->marks[chains->mark_count++];
    *own = *mark;
    own->thread = thread;
    own->time_ns = time_ns;
    return true;
}

static bool mark(struct chains *chains, const struct chain_goroutine *g, unsigned op, uint32_t of,
                 trail_stack stack)
{
    return mark_at(chains, g->thread, chains->now_ns,
                   &(struct chain_mark){.op = (uint8_t)op, .of = of, .stack = stack});
}

static struct chain_goroutine *find(const struct chains *chains, int64_t id)
{
    return id >= 0 ? objects_find(&chains->alive, (uint64_t)id) : NULL;
}

static bool is_on(const struct chain_goroutine *g)
{
    return g && (g->state == TRAIL_GO_RUNNING || g->state == TRAIL_GO_SYSCALL);
}

/* MARK: Locks */

/* Returns the index of a lock; CHAIN_NONE if out of memory. */
static uint32_t lock_of(struct chains *chains, enum wire_wait kind, trail_name name)
{
    uint64_t key = (uint64_t)kind << 32 | name;
    uintptr_t known = (uintptr_t)idmap_find(&chains->lock_ids, key);
    if (known)
        return (uint32_t)(known - 1);
    if (!GROW(chains->locks, chains->lock_capacity, chains->lock_count + 1) ||
        !idmap_put(&chains->lock_ids, key, (void *)(uintptr_t)(chains->lock_count + 1))) {
        chains->failed = true;
        return CHAIN_NONE;
    }
    chains->locks[chains->lock_count] = (struct chain_lock){
        .name = name,
        .kind = kind,
        .released_ns = INT64_MIN,
        .taker = CHAIN_NONE,
        .woken = CHAIN_NONE,
    };
    return (uint32_t)chains->lock_count++;
}

/*
 * The holder that took the lock after a wait, and whose release no log has: nothing waited for it.
 */
static bool lock_left(struct chains *chains, uint32_t number)
{
    struct chain_lock *lock = &chains->locks[number];
    if (lock->taker == CHAIN_NONE)
        return true;
    uint32_t taker = lock->taker;
    lock->taker = CHAIN_NONE;
    return mark_at(chains, taker, lock->taken_ns,
                   &(struct chain_mark){.op = CHAIN_RELEASE, .of = number});
}

/* The goroutine had the lock from `begin_ns` up to now. */
static bool lock_held(struct chains *chains, struct chain_goroutine *g, uint32_t number,
                      int64_t begin_ns)
{
    struct chain_lock *lock = &chains->locks[number];
    bool waited = lock->taker == g->thread;
    if (waited)
        lock->taker = CHAIN_NONE;
    if (!lock_left(chains, number))
        return false;
    if (begin_ns < lock->released_ns)
        begin_ns = lock->released_ns;
    if (begin_ns < chains->threads[g->thread].begin_ns)
        begin_ns = chains->threads[g->thread].begin_ns;
    if (begin_ns < chains->begin_ns)
        begin_ns = chains->begin_ns;
    if (!waited && lock->release_mark && lock->releaser == g->thread &&
        begin_ns - lock->released_ns < AGAIN_MOST_NS)
        chains->marks[lock->release_mark - 1].flags |= CHAIN_AGAIN;
    if (!waited &&
        !mark_at(chains, g->thread, begin_ns, &(struct chain_mark){.op = CHAIN_TAKE, .of = number}))
        return false;
    if (!mark(chains, g, CHAIN_RELEASE, number, 0))
        return false;
    lock->release_mark = chains->mark_count;
    lock->releaser = g->thread;
    lock->released_ns = chains->now_ns;
    return true;
}

static bool take_hold(struct chains *chains, const trail_event *event)
{
    trail_string category = trail_reader_string(chains->names->reader, event->log.category);
    struct chain_goroutine *g = find(chains, event->goroutine);
    if (!text_is(category, WIRE_HELD_CATEGORY) || !g || !chains->counting)
        return true;
    struct wait_text text =
        wait_text_of_hold(trail_reader_string(chains->names->reader, event->log.message));
    /* The replay knows no lock that others release: its waits end at wake-ups. */
    if (text.kind == WIRE_WAIT_NONE || text.object.size == 0 || text.by != TRAIL_NONE)
        return true;
    uint32_t lock =
        lock_of(chains, text.kind, names_put(chains->names, text.object.data, text.object.size));
    if (lock == CHAIN_NONE)
        return false;
    chains->hold.goroutine = event->goroutine;
    chains->hold.lock = lock;
    return lock_held(chains, g, lock,
                     chains->now_ns -
                         (text.held_ns < CHAIN_LONGEST ? text.held_ns : CHAIN_LONGEST));
}

/* Returns the lock that a wait is for; CHAIN_NONE: for none. */
static uint32_t lock_of_wait(struct chains *chains, const struct chain_wait *wait)
{
    const struct wait_facts *facts = wait_facts_of(chains->names, wait->name);
    bool held = facts && (wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD ||
                          futexes_is_lock(&chains->futexes, wait->name));
    if (facts)
        return held && facts->object ? lock_of(chains, facts->kind, facts->object) : CHAIN_NONE;
    if (!stacks_get(chains->stacks, wait->stack).in_go_lock)
        return CHAIN_NONE;
    return lock_of(chains, WIRE_WAIT_NONE, stacks_function(chains->stacks, wait->stack));
}

/*
 * Returns since when the waker has held a lock whose holders are not in the trace, such as Go's: at
 * least since the wait began. If the previous release woke it, it may have held the lock since
 * then, or have taken it again in between, while none waited; the latter is unlikely if the wait
 * was at least half of that time.
 */
static int64_t lock_since(const struct chain_lock *lock, const struct chain_goroutine *waker,
                          const struct chain_wait *wait)
{
    bool soon = lock->woken == waker->thread &&
                wait->end_ns - lock->released_ns <= 2 * (wait->end_ns - wait->begin_ns);
    return soon && lock->released_ns < wait->begin_ns ? lock->released_ns : wait->begin_ns;
}

/* A wait for a lock has been ended by a goroutine that released it. */
static bool lock_wait_ends(struct chains *chains, const struct chain_goroutine *g,
                           struct chain_goroutine *waker, const struct chain_wait *wait)
{
    struct chain_lock *lock = &chains->locks[wait->lock];
    int64_t ns = wait->end_ns - wait->begin_ns;
    bool woken = wait->end == CHAIN_WOKEN;
    ns_add(&lock->wait_ns, ns);
    if (!woken || chains->hold.lock != wait->lock || chains->hold.goroutine != waker->id)
        ns_add(&lock->unmatched_ns, ns);
    if (!woken)
        return true;
    if (lock->kind == WIRE_WAIT_NONE) {
        int64_t since_ns = lock_since(lock, waker, wait);
        lock->woken = g->thread;
        return lock_held(chains, waker, wait->lock, since_ns);
    }
    if (!lock_left(chains, wait->lock))
        return false;
    lock = &chains->locks[wait->lock];
    lock->taker = g->thread;
    lock->taken_ns = chains->now_ns;
    return true;
}

/* MARK: Clocks */

/*
 * The CPUs that the program had. In C programs, a switch that is seen a little late makes more
 * threads seem to run at once. Where it is inferred which threads run, and in Go's old traces, all
 * count.
 */
static unsigned cpus_of(const struct chains *chains)
{
    bool known = chains->limit > 0 && !chains->readiness_inferred && !chains->is_go;
    return known || chains->limit > chains->most ? chains->limit : chains->most;
}

/*
 * While CPUs are free although threads are ready, each ready thread is stalled for its share of
 * that time. The shares add up to the time that the CPUs were free.
 */
static void clocks_to_now(struct chains *chains)
{
    unsigned cpus = cpus_of(chains);
    unsigned unused = cpus > chains->running ? cpus - chains->running : 0;
    if (unused > 0 && chains->ready > 0) {
        double ns = (double)(chains->now_ns - chains->clock_ns);
        if (unused < chains->ready)
            ns = ns * unused / chains->ready;
        chains->stall_ns += ns;
        if (chains->stopped > 0)
            chains->stopped_ns += ns;
    }
    chains->clock_ns = chains->now_ns;
}

/* Counts a change of state. A system call is counted as running as long as it keeps its P. */
static void count_state(struct chains *chains, struct chain_goroutine *g, unsigned to, int64_t proc)
{
    unsigned from = g->state;
    clocks_to_now(chains);
    if (from == TRAIL_GO_RUNNING || (from == TRAIL_GO_SYSCALL && g->proc != TRAIL_NONE))
        chains->running--;
    if (from == TRAIL_GO_SYSCALL && g->proc != TRAIL_NONE)
        (void)idmap_remove(&chains->calls, (uint64_t)g->proc);
    g->proc = TRAIL_NONE;
    if (to == TRAIL_GO_SYSCALL && proc >= 0 && !idmap_find(&chains->calls, (uint64_t)proc) &&
        idmap_put(&chains->calls, (uint64_t)proc, g)) {
        g->proc = proc;
        chains->running++;
    }
    if (from == TRAIL_GO_RUNNABLE)
        chains->ready--;
    if (to == TRAIL_GO_RUNNING)
        chains->running++;
    else if (to == TRAIL_GO_RUNNABLE)
        chains->ready++;
    if (chains->running > chains->most)
        chains->most = chains->running;
}

/* MARK: Waits */

/* Returns the number of a new wait; CHAIN_NONE if out of memory. */
static uint32_t wait_begin(struct chains *chains, const struct chain_goroutine *g, trail_name name,
                           trail_stack stack)
{
    if (!GROW(chains->waits, chains->wait_capacity, chains->wait_count + 1))
        return CHAIN_NONE;
    struct chain_wait *wait = &chains->waits[chains->wait_count];
    *wait = (struct chain_wait){
        .name = name,
        .stack = stack,
        .begin_ns = chains->now_ns,
        .thread = g->thread,
        .gc = text_begins(names_text(chains->names, name), "GC ") ||
              text_begins(names_text(chains->names, name), "wait for GC"),
    };
    if (futexes_have(wait_facts_of(chains->names, name)) &&
        !futexes_enter(&chains->futexes, chains->stacks, name, g->id, stack))
        return CHAIN_NONE;
    wait->lock = lock_of_wait(chains, wait);
    return (uint32_t)chains->wait_count++;
}

/*
 * Whether the wait ends at a time of its own, however early it began, as a wait for requests from
 * outside does. The answer to a request of the program's own comes as long after it as recorded.
 */
static bool is_open(const struct chains *chains, const struct chain_wait *wait)
{
    const struct wait_facts *facts = wait_facts_of(chains->names, wait->name);
    if (facts)
        return facts->kind == WIRE_WAIT_ACCEPT || facts->kind == WIRE_WAIT_POLL ||
               facts->kind == WIRE_WAIT_SIGNAL;
    return stacks_get(chains->stacks, wait->stack).accepts;
}

/* The waker may show that what was waited for is a lock. Returns false if out of memory. */
static bool futex_ends(struct chains *chains, struct chain_wait *wait,
                       const struct chain_goroutine *waker, trail_stack stack)
{
    if (!futexes_have(wait_facts_of(chains->names, wait->name)))
        return true;
    bool good = futexes_leave(&chains->futexes, chains->stacks, wait->name, waker->id, stack,
                              chains->now_ns);
    if (wait->lock == CHAIN_NONE)
        wait->lock = lock_of_wait(chains, wait);
    return good;
}

/* The goroutine's wait ends now, by a wake-up if `waker` is another goroutine. */
static bool wait_end(struct chains *chains, struct chain_goroutine *g,
                     struct chain_goroutine *waker, trail_stack stack)
{
    if (g->wait == CHAIN_NONE)
        return true;
    uint32_t number = g->wait;
    struct chain_wait *wait = &chains->waits[number];
    g->last = number;
    g->wait = CHAIN_NONE;
    wait->end_ns = chains->now_ns;
    if (waker && waker != g && !is_on(waker))
        chains->unplaced++;
    if (waker && waker != g && is_on(waker))
        wait->end = CHAIN_WOKEN;
    else
        wait->end = is_open(chains, wait) ? CHAIN_ARRIVED : CHAIN_TIMED;
    if (wait->end == CHAIN_WOKEN && !futex_ends(chains, wait, waker, stack))
        return false;
    if (wait->lock != CHAIN_NONE && chains->counting) {
        struct chain_wait copy = *wait;
        if (!lock_wait_ends(chains, g, waker, &copy))
            return false;
    }
    return chains->waits[number].end != CHAIN_WOKEN ||
           mark(chains, waker, CHAIN_WAKE, number, stack);
}

/* A wait that timed out was ended by time, although the timer may have run in another goroutine. */
static void take_time_out(const struct chains *chains, const trail_event *event)
{
    const struct chain_goroutine *g = find(chains, event->goroutine);
    struct chain_wait *last =
        g && g->last < chains->wait_count ? &chains->waits[g->last] : NULL; /* CHAIN_NONE is more */
    if (!last)
        return;
    last->end = CHAIN_TIMED;
    last->timed_out = true;
}

/* MARK: Goroutines */

static void learn_name(struct chains *chains, struct chain_goroutine *g, trail_stack stack)
{
    struct stack_row row = stacks_get(chains->stacks, stack);
    struct chain_thread *thread = &chains->threads[g->thread];
    if (row.count == 0)
        return;
    const trail_place *frame = &row.places[row.count - 1];
    trail_string text = names_text(chains->names, frame->function);
    thread->name = names_goroutine(chains->names, g->id, frame->function);
    names_learn(chains->names, thread->name, frame->pc, frame->file);
    thread->marks = text_begins(text, "runtime.gcBgMarkWorker");
    thread->gc = thread->marks || text_begins(text, "runtime.bgsweep") ||
                 text_begins(text, "runtime.bgscavenge");
    thread->system = text_begins(text, "runtime.") && !text_is(text, "runtime.main") &&
                     !text_is(text, "runtime.goexit");
    g->named = thread->name != 0;
}

static struct chain_goroutine *goroutine_begin(struct chains *chains, int64_t id)
{
    struct chain_goroutine *g = objects_get(&chains->alive, (uint64_t)id);
    if (!g || chains->thread_count >= CHAIN_NONE ||
        !GROW(chains->threads, chains->thread_capacity, chains->thread_count + 1))
        return NULL;
    *g = (struct chain_goroutine){.id = id,
                                  .thread = (uint32_t)chains->thread_count,
                                  .proc = TRAIL_NONE,
                                  .wait = CHAIN_NONE,
                                  .last = CHAIN_NONE};
    chains->threads[chains->thread_count++] =
        (struct chain_thread){.id = id, .begin_ns = chains->now_ns, .ran_ns = INT64_MIN};
    return g;
}

static bool goroutine_end(struct chains *chains, struct chain_goroutine *g)
{
    chains->threads[g->thread].ended = true;
    bool good = mark(chains, g, MARK_END, 0, 0);
    objects_drop(&chains->alive, (uint64_t)g->id);
    return good;
}

static int64_t at_most(int64_t ns)
{
    return ns < UINT32_MAX ? ns : UINT32_MAX;
}

static bool enter_running(struct chains *chains, struct chain_goroutine *g)
{
    int64_t stall = 0, stopped = 0, queued = 0;
    if (g->state == TRAIL_GO_RUNNABLE) {
        int64_t ready = chains->now_ns - g->since_ns;
        stall = (int64_t)(chains->stall_ns - g->stall_ns);
        stall = stall < ready ? stall : ready;
        queued = ready - stall;
        stopped = (int64_t)(chains->stopped_ns - g->stopped_ns);
        stopped = at_most(stopped < stall ? stopped : stall);
        ns_add(&chains->ready_ns, ready);
        ns_add(&chains->late_ns, stall);
    }
    return mark_at(chains, g->thread, chains->now_ns,
                   &(struct chain_mark){.op = MARK_RUN,
                                        .ns = stall,
                                        .of = (uint32_t)stopped,
                                        .stack = (uint32_t)at_most(queued)});
}

static void enter_ready(const struct chains *chains, struct chain_goroutine *g)
{
    g->since_ns = chains->now_ns;
    g->stall_ns = chains->stall_ns;
    g->stopped_ns = chains->stopped_ns;
}

/* Only the exit of a thread ends the wait for it: if none did, and it is waited for again, a signal
 * has interrupted the wait. */
static void join_again(const struct chains *chains, const struct chain_goroutine *g)
{
    struct chain_wait *last = g->last < chains->wait_count ? &chains->waits[g->last] : NULL;
    const struct wait_facts *facts = wait_facts_of(chains->names, g->reason);
    if (last && last->end == CHAIN_TIMED && last->name == g->reason && facts &&
        facts->kind == WIRE_WAIT_JOIN)
        last->end = CHAIN_INTERRUPTED;
}

/* The goroutine waits or is in a system call from now on. */
static bool begin_waiting(struct chains *chains, struct chain_goroutine *g, unsigned state,
                          trail_stack stack)
{
    unsigned op = g->proc != TRAIL_NONE ? MARK_CALL : MARK_LEFT;
    join_again(chains, g);
    g->wait = wait_begin(chains, g, g->reason, stack);
    return g->wait != CHAIN_NONE &&
           mark(chains, g, state == TRAIL_GO_WAITING ? MARK_WAIT : op, g->wait, stack);
}

/* The goroutine's `state` is still the one before. */
static bool enter(struct chains *chains, struct chain_goroutine *g, const trail_event *event,
                  trail_stack stack)
{
    unsigned to = event->transition.to;
    trail_name name;
    switch (to) {
    case TRAIL_GO_RUNNING:
        chains->last_runner = g->id;
        return enter_running(chains, g);
    case TRAIL_GO_RUNNABLE:
        enter_ready(chains, g);
        return mark(chains, g, MARK_READY, 0, stack);
    case TRAIL_GO_SYSCALL:
    case TRAIL_GO_WAITING:
        name = to == TRAIL_GO_SYSCALL
                   ? announced_name(&chains->announced, chains->names, 0)
                   : announced_name(&chains->announced, chains->names,
                                    names_of(chains->names, event->transition.reason));
        g->reason = name;
        return !chains->counting || begin_waiting(chains, g, to, stack);
    default:
        return true;
    }
}

static bool first_transition(struct chains *chains, const trail_event *event)
{
    struct chain_goroutine *g = find(chains, event->transition.id);
    struct chain_goroutine *creator = find(chains, event->goroutine);
    if (g)
        count_state(chains, g, TRAIL_GO_NOT_EXIST, TRAIL_NONE);
    if (g && !goroutine_end(chains, g))
        return false;
    if (event->transition.to == TRAIL_GO_NOT_EXIST)
        return true;
    g = goroutine_begin(chains, event->transition.id);
    if (!g)
        return false;
    trail_stack stack = stacks_of(chains->stacks, event->transition.stack);
    learn_name(chains, g, stack);
    if (event->transition.from == TRAIL_GO_NOT_EXIST && is_on(creator) && creator != g &&
        chains->counting) {
        chains->threads[g->thread].created = true;
        chains->threads[g->thread].creator = creator->thread;
        if (!mark(chains, creator, CHAIN_CREATE, g->thread,
                  stacks_of(chains->stacks, event->stack)))
            return false;
    }
    count_state(chains, g, event->transition.to, event->proc);
    if (!enter(chains, g, event, stack))
        return false;
    g->state = event->transition.to;
    g->stack = stack;
    return true;
}

static void learn_label(struct chains *chains, const trail_event *event)
{
    trail_goroutine_label label;
    struct chain_goroutine *g = find(chains, event->transition.id);
    if (g && event->transition.stack != 0 &&
        trail_reader_goroutine(chains->names->reader, event->transition.id, &label))
        learn_name(chains, g, stacks_of(chains->stacks, event->transition.stack));
}

static bool transition(struct chains *chains, const trail_event *event)
{
    unsigned from = event->transition.from, to = event->transition.to;
    if (from == to) {
        learn_label(chains, event);
        return true;
    }
    announced_transition(&chains->announced, event->transition.id);
    if (__builtin_expect(from <= TRAIL_GO_NOT_EXIST, 0))
        return first_transition(chains, event);
    struct chain_goroutine *g = find(chains, event->transition.id);
    if (__builtin_expect(!g, 0))
        return true;
    count_state(chains, g, to, event->proc);
    if (from == TRAIL_GO_RUNNING) {
        chains->threads[g->thread].ran_ns = chains->now_ns;
        chains->last_runner = g->id;
    }
    trail_stack stack = stacks_of(chains->stacks, event->transition.stack);
    if (__builtin_expect(!g->named, 0))
        learn_name(chains, g, stack);
    if ((from == TRAIL_GO_WAITING || from == TRAIL_GO_SYSCALL) &&
        !wait_end(chains, g, from == TRAIL_GO_WAITING ? find(chains, event->goroutine) : NULL,
                  stacks_of(chains->stacks, event->stack)))
        return false;
    if (to <= TRAIL_GO_NOT_EXIST)
        return goroutine_end(chains, g);
    if (!enter(chains, g, event, stack))
        return false;
    g->state = (uint8_t)to;
    if (stack != 0)
        g->stack = stack;
    return true;
}

/* The goroutine in a system call on a P that becomes idle goes on without it. */
static bool proc_transition(struct chains *chains, const trail_event *event)
{
    if (event->transition.to != TRAIL_PROC_IDLE)
        return true;
    struct chain_goroutine *g = idmap_remove(&chains->calls, (uint64_t)event->transition.id);
    if (!g)
        return true;
    clocks_to_now(chains);
    chains->running--;
    g->proc = TRAIL_NONE;
    return mark(chains, g, MARK_LEFT, g->wait, 0);
}

/* MARK: Other events */

/* Returns the number of a task; CHAIN_NONE if out of memory. */
static uint32_t task_of(struct chains *chains, uint64_t id, bool begins)
{
    uintptr_t known = (uintptr_t)idmap_find(&chains->task_ids, id);
    if (known && !begins)
        return (uint32_t)(known - 1);
    if (!GROW(chains->tasks, chains->task_capacity, chains->task_count + 1) ||
        !idmap_put(&chains->task_ids, id, (void *)(uintptr_t)(chains->task_count + 1)))
        return CHAIN_NONE;
    chains->tasks[chains->task_count] = (struct chain_task){
        .id = id, .begin_ns = chains->begin_ns, .end_ns = INT64_MAX, .wait = CHAIN_NONE};
    return (uint32_t)chains->task_count++;
}

/*
 * The first goroutine other than its beginner that works on the task counts as having waited for
 * it, although it may have come later: a worker that finds its queue filled does not wait.
 */
static bool follow_task(struct chains *chains, const struct chain_goroutine *g, uint64_t id)
{
    uintptr_t known = (uintptr_t)idmap_find(&chains->task_ids, id);
    const struct chain_task *task = known ? &chains->tasks[known - 1] : NULL;
    if (!g || !task || task->wait == CHAIN_NONE)
        return true;
    struct chain_wait *wait = &chains->waits[task->wait];
    if (wait->end != CHAIN_OPEN || wait->thread == g->thread)
        return true;
    wait->end = CHAIN_WOKEN;
    wait->thread = g->thread;
    return mark(chains, g, CHAIN_WAIT, task->wait, 0);
}

static bool begin_task(struct chains *chains, const struct chain_goroutine *g, uint32_t number)
{
    struct chain_task *task = &chains->tasks[number];
    task->begin_ns = chains->now_ns;
    task->wait = wait_begin(chains, g, names_put(chains->names, "task", 4), 0);
    return task->wait != CHAIN_NONE && mark(chains, g, CHAIN_TASK_BEGIN, number, 0) &&
           mark(chains, g, CHAIN_WAKE, task->wait, 0);
}

static bool take_task(struct chains *chains, const trail_event *event)
{
    const struct chain_goroutine *g = find(chains, event->goroutine);
    bool begins = event->kind == TRAIL_TASK_BEGIN;
    if (!g || !chains->counting)
        return true;
    if (!follow_task(chains, g, begins ? event->task.parent : event->task.id))
        return false;
    uint32_t task = task_of(chains, event->task.id, begins);
    if (task == CHAIN_NONE)
        return false;
    chains->tasks[task].name = names_of(chains->names, event->task.type);
    if (begins)
        return begin_task(chains, g, task);
    chains->tasks[task].end_ns = chains->now_ns;
    /* A task ends once: its ID may be used again. */
    (void)idmap_remove(&chains->task_ids, event->task.id);
    return mark(chains, g, CHAIN_TASK_END, task, 0);
}

static bool take_range(struct chains *chains, const trail_event *event)
{
    bool begins = event->kind != TRAIL_RANGE_END;
    int64_t id =
        event->range.scope == TRAIL_RESOURCE_GOROUTINE ? event->range.scope_id : event->goroutine;
    struct chain_goroutine *g = find(chains, id);
    if (event->range.range == TRAIL_RANGE_STW) {
        clocks_to_now(chains);
        if (begins)
            chains->stopped++;
        else if (chains->stopped > 0)
            chains->stopped--;
        return true;
    }
    if (!g || event->range.range == TRAIL_RANGE_GC || g->gc == begins)
        return true;
    g->gc = begins;
    return mark(chains, g, begins ? CHAIN_GC_BEGIN : CHAIN_GC_END, 0, 0);
}

static bool take_log(struct chains *chains, const trail_event *event)
{
    trail_string category = trail_reader_string(chains->names->reader, event->log.category);
    if (text_is(category, WIRE_READINESS))
        chains->readiness_inferred |=
            text_is(trail_reader_string(chains->names->reader, event->log.message),
                    WIRE_READINESS_INFERRED);
    if (wait_log_timed_out(chains->names, event))
        take_time_out(chains, event);
    return take_hold(chains, event) && announced_log(&chains->announced, chains->names, event);
}

static bool other_event(struct chains *chains, const trail_event *event)
{
    const struct chain_goroutine *g = find(chains, event->goroutine);
    switch (event->kind) {
    case TRAIL_METRIC:
        if (event->metric.metric != TRAIL_METRIC_GOMAXPROCS)
            return true;
        clocks_to_now(chains);
        /* The limit fell: what ran at once before no longer counts. */
        if (chains->is_go && event->metric.value < chains->limit)
            chains->most = chains->running;
        chains->limit = event->metric.value < 65536 ? (unsigned)event->metric.value : 65536;
        return true;
    case TRAIL_STACK_SAMPLE:
        return !g || mark(chains, g, MARK_SAMPLE, 0, stacks_of(chains->stacks, event->stack));
    case TRAIL_RANGE_BEGIN:
    case TRAIL_RANGE_ACTIVE:
    case TRAIL_RANGE_END:
        return take_range(chains, event);
    case TRAIL_TASK_BEGIN:
    case TRAIL_TASK_END:
        return take_task(chains, event);
    case TRAIL_REGION_BEGIN:
    case TRAIL_REGION_END:
        return !g ||
               (follow_task(chains, g, event->region.task) &&
                mark(chains, g,
                     event->kind == TRAIL_REGION_BEGIN ? CHAIN_REGION_BEGIN : CHAIN_REGION_END,
                     names_of(chains->names, event->region.type), 0));
    case TRAIL_LOG:
        return follow_task(chains, g, event->log.task) && take_log(chains, event);
    default:
        return true;
    }
}

static int64_t since_origin(const struct chains *chains, int64_t time_ns)
{
    int64_t ns;
    if (time_ns < chains->origin_ns)
        return 0;
    return __builtin_sub_overflow(time_ns, chains->origin_ns, &ns) || ns > CHAIN_LONGEST
               ? CHAIN_LONGEST
               : ns;
}

static bool take_events(void *part, const trail_event *event, const trail_event *end)
{
    struct chains *chains = part;
    chains->is_go = trail_reader_maker(chains->names->reader)->made_by == TRAIL_MADE_BY_GO;
    for (; event < end && !chains->too_long; event++) {
        int64_t now = since_origin(chains, event->time_ns);
        if (now > chains->now_ns)
            chains->now_ns = now;
        bool good = true;
        if (event->kind != TRAIL_STATE_TRANSITION)
            good = other_event(chains, event);
        else if (event->transition.resource == TRAIL_RESOURCE_GOROUTINE)
            good = transition(chains, event);
        else if (event->transition.resource == TRAIL_RESOURCE_PROC)
            good = proc_transition(chains, event);
        if (!good)
            return false;
    }
    return true;
}

/* MARK: Begin and end */

/* What goroutines are doing when counting begins. */
static bool mark_state(struct chains *chains, struct chain_goroutine *g)
{
    chains->threads[g->thread].begin_ns = chains->now_ns;
    switch (g->state) {
    case TRAIL_GO_RUNNABLE:
        enter_ready(chains, g);
        return mark(chains, g, MARK_READY, 0, g->stack);
    case TRAIL_GO_WAITING:
    case TRAIL_GO_SYSCALL:
        return begin_waiting(chains, g, g->state, g->stack);
    default:
        return mark(chains, g, MARK_RUN, 0, 0);
    }
}

static bool window_begins(void *part, int64_t ns)
{
    struct chains *chains = part;
    chains->begin_ns = chains->now_ns = since_origin(chains, ns);
    clocks_to_now(chains);
    chains->counting = true;
    IDMAP_EACH(slot, &chains->alive.map)
        if (!mark_state(chains, slot->value))
            return false;
    return true;
}

static void trace_begins(void *part, int64_t origin_ns)
{
    struct chains *chains = part;
    chains->origin_ns = origin_ns;
    if (chains->analysis->counting)
        (void)window_begins(part, origin_ns);
}

/* Chooses the thread that decides the end: the main one if it ran up to the end, else the last. */
static uint32_t goal_of(const struct chains *chains)
{
    int64_t near = chains->end_ns - (chains->end_ns - chains->begin_ns) / 50;
    uint32_t best = CHAIN_NONE;
    for (size_t i = 0; i < chains->thread_count; i++) {
        const struct chain_thread *thread = &chains->threads[i];
        if (thread->ran_ns <= chains->begin_ns)
            continue;
        if (thread->id == 1 && thread->ran_ns >= near)
            return (uint32_t)i;
        if (!thread->system &&
            (best == CHAIN_NONE || thread->ran_ns > chains->threads[best].ran_ns))
            best = (uint32_t)i;
    }
    return best;
}

/*
 * Joining a thread that has already ended leaves nothing in the trace. So each thread that was
 * created by the one that decides the end, and that ended before it, counts as joined by it.
 */
static void find_joined(struct chains *chains)
{
    const struct chain_thread *goal = &chains->threads[chains->goal];
    EACH(struct chain_thread, thread, chains->threads, chains->thread_count) {
        thread->joined = thread->ended && thread->created && thread->creator == chains->goal &&
                         thread->ran_ns > chains->begin_ns && thread->ran_ns <= goal->ran_ns;
    }
}

static bool window_ends(void *part, int64_t end_ns)
{
    struct chains *chains = part;
    if (!chains->counting)
        return true;
    end_ns = since_origin(chains, end_ns);
    if (chains->now_ns < end_ns)
        chains->now_ns = end_ns;
    chains->end_ns = chains->now_ns;
    IDMAP_VALUES(const struct chain_goroutine, g, &chains->alive.map) {
        if (g->state == TRAIL_GO_RUNNING)
            chains->threads[g->thread].ran_ns = chains->now_ns;
        if (!mark(chains, g, MARK_END, 0, 0))
            return false;
    }
    for (size_t i = 0; i < chains->lock_count; i++)
        if (!lock_left(chains, (uint32_t)i))
            return false;
    chains->counting = false;
    if (chains->failed || chains->stacks->failed || chains->names->failed)
        return false;
    chains->cpus = cpus_of(chains);
    if (!chains_take_affinity(chains))
        return false;
    chains->goal = goal_of(chains);
    if (chains->goal != CHAIN_NONE)
        find_joined(chains);
    return chains->too_long || chains_build(chains);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct chains *chains = part;
    bool is_short = (analysis->options.what & ANALYZE_SHORT_CHAINS) == ANALYZE_SHORT_CHAINS;
    chains->analysis = analysis;
    chains->most_marks = is_short ? CHAIN_MARKS_SHORT : CHAIN_MARKS;
    chains->names = &analysis->names;
    chains->stacks = &analysis->stacks;
    chains->alive = OBJECTS_OF(struct chain_goroutine);
    futexes_init(&chains->futexes);
    chains->goal = CHAIN_NONE;
    chains->hold.lock = CHAIN_NONE;
    return true;
}

static void drop(void *part)
{
    struct chains *chains = part;
    objects_free(&chains->alive);
    futexes_free(&chains->futexes);
    idmap_free(&chains->calls);
    idmap_free(&chains->lock_ids);
    idmap_free(&chains->task_ids);
    announced_free(&chains->announced);
    intern_free(&chains->class_ids);
    intern_free(&chains->sample_ids);
    free(chains->threads);
    free(chains->waits);
    free(chains->locks);
    free(chains->tasks);
    free(chains->classes);
    free(chains->samples);
    free(chains->steps);
    free(chains->marks);
}

static bool is_done(const void *part)
{
    const struct chains *chains = part;
    return chains->too_long;
}

const struct analysis_part chains_part = {
    .what = ANALYZE_CHAINS,
    .size = sizeof(struct chains),
    .uses_stacks = true,
    .init = init,
    .free = drop,
    .trace_begins = trace_begins,
    .window_begins = window_begins,
    .window_ends = window_ends,
    .events = take_events,
    .is_done = is_done,
};

const struct chains *chains_of(const struct trail_analysis *analysis)
{
    return analysis_object(analysis, &chains_part);
}
