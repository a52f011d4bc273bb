/* The simulation: threads, CPUs, locks and a queue of future events. */
#include "replay/replay.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/heap.h"
#include "base/order.h"
#include "base/quantile.h"
#include "base/text.h"
#include "replay/plan.h"
#include "replay/pool.h"

/* How long a thread runs on a CPU before other ready threads: Go's value, and roughly Linux's. */
#define SLICE_GO_NS    10000000
#define SLICE_LINUX_NS 3000000
/* Slices are longer in a trace that would have more of them. */
#define SLICES_MOST 4000000
/* The replay stops at this time: a change made it too long. */
#define TIME_MOST (INT64_C(1) << 60)

enum task_state { TASK_UNBORN, TASK_READY, TASK_RUNS, TASK_SLEEPS, TASK_WAITS, TASK_OVER };

struct task {
    const struct chain_thread *thread;
    uint64_t at;             /* the current one of its steps */
    int64_t left_ns;         /* left of its run */
    int64_t run_ns;          /* part of it running now, */
    int64_t used_ns;         /* and part already run in this slice */
    int64_t since_ns;        /* when its wait began */
    int64_t spent_ns;        /* CPU time, as the scheduler counts it */
    int64_t sliced_ns;       /* when the part running now began */
    uint64_t event;          /* number of its valid event; others are void */
    uint32_t next;           /* in the queue of a lock */
    int64_t queued_ns;       /* time it was queued in the trace, before the next run */
    float held;              /* product of the factors of the locks it holds */
    float inside;            /* and of the regions it is in */
    uint32_t holds, regions; /* how many of these are changed */
    uint32_t waker;          /* the thread that has just ended its wait; CHAIN_NONE: none */
    uint8_t state;
    bool gc;      /* assisting the garbage collector */
    bool working; /* a worker that has a piece of work */
    bool of_goal; /* the goal measures when it has done its work */
    struct chain_thread
        *worker; /* of the pool: `thread`, whose steps are those of its piece; NULL: none */
};

struct lock {
    uint32_t holder;      /* CHAIN_NONE: none */
    uint32_t first, last; /* queue */
    bool kept;            /* free, but its last holder takes it again immediately */
};

/* A thread in a queue: of events by time, or of ready threads by rank. */
struct queued {
    int64_t key;
    uint64_t nth; /* orders those with the same key by arrival */
    uint32_t task;
};

static inline bool is_sooner(const struct queued *a, const struct queued *b)
{
    return a->key != b->key ? a->key < b->key : a->nth < b->nth;
}
HEAP(queue, struct queued, is_sooner)

struct replay {
    const struct chains *chains;
    const struct replay_goal *goal;
    struct replay_result *result;
    struct plan plan;
    struct task *tasks; /* of the threads of the trace, then of others of a pool */
    size_t task_count;
    struct lock *locks;
    uint32_t *waiting; /* by wait: 0: not reached, task + 1: waiting, CHAIN_NONE: already woken */
    int64_t *task_begins; /* by user task, plus 1; 0: not begun */
    struct queued *events;
    size_t event_count, event_capacity;
    struct queued *ready;
    size_t ready_count, ready_capacity;
    uint64_t nth;
    int64_t now_ns, slice_ns;
    int64_t least_ns; /* CPU time up to which running threads have been served */
    unsigned cpus_free;
    uint32_t *runners; /* tasks that have a CPU */
    size_t runner_count;
    trail_name region; /* of the goal */
    trail_name kind;   /* of the goal's threads */
    size_t open;       /* unfinished threads that decide the end */
    struct pool pool;
    struct chain_thread *workers; /* of the pool: its threads in the trace, then others, */
    size_t worker_count;
    bool others_begun; /* which begin with the first of these */
    uint32_t *idle;    /* workers that wait for work */
    size_t idle_count;
    uint32_t current; /* the thread whose steps are performed */
    const struct replay_watch *watch;
    bool failed;
};

/* MARK: Queues */

static uint32_t number_of(const struct replay *r, const struct task *task)
{
    return (uint32_t)(task - r->tasks);
}

static void notify(const struct replay *r, const struct task *task, struct replay_event event)
{
    if (!r->watch)
        return;
    event.thread = number_of(r, task);
    event.at = task->at;
    event.ns = r->now_ns;
    r->watch->see(r->watch->context, &event);
}

static void at(struct replay *r, uint32_t task, int64_t time_ns)
{
    if (time_ns > TIME_MOST)
        return; /* the thread never continues */
    r->tasks[task].event = r->nth;
    if (!GROW(r->events, r->event_capacity, r->event_count + 1)) {
        r->failed = true;
        return;
    }
    queue_up(r->events, r->event_count++,
             (struct queued){time_ns < r->now_ns ? r->now_ns : time_ns, r->nth++, task});
}

/*
 * The thread with the lowest rank runs first. Linux: the one with the least CPU time so far. Go:
 * the one that has been ready longest, where the time it queued in the trace counts, so that
 * threads it let pass there pass again. A P looks for a mark worker of the garbage collector before
 * anything else.
 */
static int64_t rank_of(const struct replay *r, const struct task *task)
{
    if (!r->chains->is_go)
        return task->spent_ns;
    return task->thread->marks ? INT64_MIN : r->now_ns + task->queued_ns;
}

static void make_ready(struct replay *r, struct task *task)
{
    if (!GROW(r->ready, r->ready_capacity, r->ready_count + 1)) {
        r->failed = true;
        return;
    }
    /* A thread that slept is served before others, but does not make up for all of its sleep. */
    int64_t least = r->least_ns - r->slice_ns;
    if (task->spent_ns < least)
        task->spent_ns = least;
    task->state = TASK_READY;
    task->used_ns = 0;
    notify(r, task, (struct replay_event){.what = REPLAY_READY, .by = task->waker});
    task->waker = CHAIN_NONE;
    queue_up(r->ready, r->ready_count++,
             (struct queued){rank_of(r, task), r->nth++, number_of(r, task)});
    task->queued_ns = 0;
}

/* A task that has had a CPU leaves it. */
static void leave_cpu(struct replay *r, const struct task *task)
{
    size_t i = 0;
    while (r->runners[i] != number_of(r, task))
        i++;
    r->runners[i] = r->runners[--r->runner_count];
    r->cpus_free++;
}

static struct task *next_ready(struct replay *r)
{
    struct queued first = r->ready[0], last = r->ready[--r->ready_count];
    if (r->ready_count > 0)
        queue_down(r->ready, r->ready_count, 0, last);
    return &r->tasks[first.task];
}

/* MARK: Steps */

static int64_t scaled(int64_t ns, double factor)
{
    double all = (double)ns * factor;
    return factor == 1 ? ns : all < (double)CHAIN_LONGEST ? (int64_t)all : CHAIN_LONGEST;
}

static void wake(struct replay *r, struct task *task);

/* Passes the lock to the first thread that waits for it. */
static void lock_pass(struct replay *r, struct lock *lock)
{
    lock->holder = CHAIN_NONE;
    lock->kept = false;
    if (lock->first == CHAIN_NONE)
        return;
    struct task *task = &r->tasks[lock->first];
    lock->holder = lock->first;
    lock->first = task->next;
    if (lock->first == CHAIN_NONE)
        lock->last = CHAIN_NONE;
    wake(r, task);
}

static void hold_begins(struct replay *r, struct task *task, uint32_t number)
{
    if (r->plan.locks[number] == 1)
        return;
    task->held *= r->plan.locks[number];
    task->holds++;
}

/* Takes a lock. Returns false if the task has to wait. */
static bool lock_take(struct replay *r, struct task *task, uint32_t number)
{
    struct lock *lock = &r->locks[number];
    uint32_t self = number_of(r, task);
    if (r->chains->locks[number].modelled && !r->plan.free[number]) {
        bool own = lock->holder == self;
        if (lock->holder != CHAIN_NONE && !own) {
            task->next = CHAIN_NONE;
            if (lock->first == CHAIN_NONE)
                lock->first = self;
            else
                r->tasks[lock->last].next = self;
            lock->last = self;
            return false;
        }
        lock->holder = self;
        lock->kept = false;
    }
    hold_begins(r, task, number);
    return true;
}

static void lock_release(struct replay *r, struct task *task, const struct chain_step *step)
{
    struct lock *lock = &r->locks[step->of];
    if (r->plan.locks[step->of] != 1 && task->holds > 0)
        task->held = --task->holds == 0 ? 1 : task->held / r->plan.locks[step->of];
    if (lock->holder != number_of(r, task))
        return;
    if (step->flags & CHAIN_AGAIN && lock->first != CHAIN_NONE)
        lock->kept = true;
    else
        lock_pass(r, lock);
}

static void region(struct replay *r, struct task *task, const struct chain_step *step)
{
    bool begins = step->op == CHAIN_REGION_BEGIN;
    if (!begins && r->region != 0 && step->of == r->region)
        r->result->regions++;
    for (size_t i = 0; i < r->plan.region_count; i++)
        if (r->plan.regions[i] == step->of) {
            if (begins) {
                task->inside *= r->plan.region_factors[i];
                task->regions++;
            } else if (task->regions > 0) { /* else it began before the trace */
                task->inside = --task->regions == 0 ? 1 : task->inside / r->plan.region_factors[i];
            }
        }
}

static void user_task(struct replay *r, const struct chain_step *step)
{
    const struct chain_task *task = &r->chains->tasks[step->of];
    if (step->op == CHAIN_TASK_BEGIN) {
        r->task_begins[step->of] = r->now_ns + 1;
        return;
    }
    if (r->task_begins[step->of] == 0 || r->goal->of != GOAL_TASK ||
        r->result->task_count >= r->chains->task_count ||
        !text_is(names_text(r->chains->names, task->name), r->goal->name))
        return;
    r->result->tasks[r->result->task_count++] = r->now_ns + 1 - r->task_begins[step->of];
}

/* Where a task continues after a step. */
enum after { AFTER_NEXT, AFTER_SLEEP, AFTER_WAIT, AFTER_RUN, AFTER_END };

static double wait_factor(const struct replay *r, uint32_t wait)
{
    return wait == CHAIN_NONE ? 1 : (double)r->plan.waits[wait];
}

/* Whether a change has removed the wait. */
static bool is_no_wait(const struct replay *r, uint32_t number)
{
    uint32_t lock = r->chains->waits[number].lock;
    return wait_factor(r, number) == 0 || (lock != CHAIN_NONE && r->plan.free[lock]);
}

static enum after begin_wait(struct replay *r, struct task *task, uint32_t number)
{
    if (r->waiting[number] == CHAIN_NONE || is_no_wait(r, number))
        return AFTER_NEXT;
    r->waiting[number] = number_of(r, task) + 1;
    return AFTER_WAIT;
}

static bool is_gone(const struct replay *r, const struct task *task)
{
    return r->plan.no_gc && (task->gc || task->thread->gc);
}

static enum after begin_delay(struct replay *r, struct task *task, const struct chain_step *step)
{
    double factor = wait_factor(r, step->of) * (double)task->held;
    if (is_gone(r, task))
        return AFTER_NEXT;
    at(r, number_of(r, task), r->now_ns + scaled(step->ns, factor));
    return AFTER_SLEEP;
}

static double run_factor(const struct replay *r, const struct task *task, uint32_t class)
{
    return (double)r->plan.classes[class] * (double)task->held * (double)task->inside;
}

static enum after begin_run(struct replay *r, struct task *task, const struct chain_step *step)
{
    task->left_ns = is_gone(r, task) ? 0 : scaled(step->ns, run_factor(r, task, step->of));
    return task->left_ns > 0 ? AFTER_RUN : AFTER_NEXT;
}

static enum after begin_stall(const struct replay *r, struct task *task,
                              const struct chain_step *step)
{
    bool gone = r->plan.no_gc && step->flags & CHAIN_STOPPED;
    double factor = step->flags & CHAIN_SHARED ? run_factor(r, task, step->of) : 1;
    task->left_ns = gone || is_gone(r, task) ? 0 : scaled(step->ns, factor * r->goal->stall);
    return task->left_ns > 0 ? AFTER_RUN : AFTER_NEXT;
}

/* The creator lets a thread begin. */
static void begin(struct replay *r, struct task *task, const struct task *creator)
{
    if (task->state != TASK_UNBORN)
        return;
    task->state = TASK_SLEEPS;
    task->spent_ns = creator ? creator->spent_ns : 0;
    if (creator)
        notify(r, task, (struct replay_event){.what = REPLAY_CREATED, .by = number_of(r, creator)});
    at(r, number_of(r, task), r->now_ns);
    if (!task->worker || r->others_begun)
        return;
    r->others_begun = true;
    for (size_t i = r->chains->thread_count; i < r->task_count; i++)
        begin(r, &r->tasks[i], creator);
}

/* Lets the workers that have nothing to do look again. */
static void call_workers(struct replay *r)
{
    for (; r->idle_count > 0; r->idle_count--) {
        r->tasks[r->idle[r->idle_count - 1]].state = TASK_SLEEPS;
        at(r, r->idle[r->idle_count - 1], r->now_ns);
    }
}

/* The thread's steps are done. A worker gets its next piece of work, or waits for one. */
static enum after after_last(struct replay *r, struct task *task)
{
    if (!task->worker || (size_t)(task->worker - r->workers) >= r->plan.pool_size)
        return AFTER_END;
    const struct pool_piece *piece = pool_next(&r->pool, task->working);
    task->working = piece && !pool_is_done(&r->pool);
    task->worker->first = piece ? piece->first : 0;
    task->worker->count = piece ? piece->count : 0;
    task->at = 0;
    if (piece)
        return AFTER_NEXT;
    if (pool_is_done(&r->pool)) {
        call_workers(r);
        return AFTER_END;
    }
    r->idle[r->idle_count++] = number_of(r, task);
    return AFTER_WAIT;
}

/* A wait has ended: the pieces of work that follow it can be taken. */
static void offer(struct replay *r, uint32_t wait)
{
    if (r->plan.pool != 0 && pool_wait_ends(&r->pool, wait))
        call_workers(r);
}

static enum after begin_step(struct replay *r, struct task *task, const struct chain_step *step)
{
    switch ((enum chain_op)step->op) {
    case CHAIN_RUN:
        return begin_run(r, task, step);
    case CHAIN_STALL:
        return begin_stall(r, task, step);
    case CHAIN_DELAY:
        return begin_delay(r, task, step);
    case CHAIN_UNTIL:
        if (step->ns <= r->now_ns)
            return AFTER_NEXT;
        at(r, number_of(r, task), step->ns);
        return AFTER_SLEEP;
    case CHAIN_QUEUE:
        task->queued_ns = step->ns;
        return AFTER_NEXT;
    case CHAIN_WAIT:
        return begin_wait(r, task, step->of);
    case CHAIN_WAKE:
        offer(r, step->of);
        if (r->waiting[step->of] != 0 && r->waiting[step->of] != CHAIN_NONE)
            wake(r, &r->tasks[r->waiting[step->of] - 1]);
        r->waiting[step->of] = CHAIN_NONE;
        return AFTER_NEXT;
    case CHAIN_CREATE:
        begin(r, &r->tasks[step->of], task);
        return AFTER_NEXT;
    case CHAIN_TAKE:
        return lock_take(r, task, step->of) ? AFTER_NEXT : AFTER_WAIT;
    case CHAIN_RELEASE:
        lock_release(r, task, step);
        return AFTER_NEXT;
    case CHAIN_REGION_BEGIN:
    case CHAIN_REGION_END:
        region(r, task, step);
        return AFTER_NEXT;
    case CHAIN_TASK_BEGIN:
    case CHAIN_TASK_END:
        user_task(r, step);
        return AFTER_NEXT;
    case CHAIN_GC_BEGIN:
    case CHAIN_GC_END:
        task->gc = step->op == CHAIN_GC_BEGIN;
        return AFTER_NEXT;
    case CHAIN_FINISH:
    default:
        return AFTER_END;
    }
}

/* MARK: Threads */

/* The task's wait has ended: it continues with its next step. */
static void wake(struct replay *r, struct task *task)
{
    const struct chain_step *step = &r->chains->steps[task->thread->first + task->at];
    if (__builtin_add_overflow(r->result->waits_ns, r->now_ns - task->since_ns,
                               &r->result->waits_ns))
        r->result->waits_ns = INT64_MAX;
    if (step->op == CHAIN_TAKE)
        hold_begins(r, task, step->of);
    task->at++;
    task->state = TASK_SLEEPS;
    task->waker = r->current;
    at(r, number_of(r, task), r->now_ns);
}

static void slice(struct replay *r, struct task *task)
{
    task->state = TASK_RUNS;
    int64_t most = r->slice_ns - task->used_ns;
    task->run_ns = task->left_ns < most ? task->left_ns : most;
    task->sliced_ns = r->now_ns;
    at(r, number_of(r, task), r->now_ns + task->run_ns);
}

static bool decides(const struct chains *chains, const struct task *task)
{
    return task->thread->joined || task->thread == &chains->threads[chains->goal];
}

static void over(struct replay *r, struct task *task)
{
    task->state = TASK_OVER;
    if (decides(r->chains, task)) {
        r->result->end_ns = r->now_ns;
        r->open--;
    }
}

static void stops(struct replay *r, const struct task *task, const struct chain_step *why)
{
    notify(r, task, (struct replay_event){.what = REPLAY_STOPS, .by = CHAIN_NONE, .step = why});
}

static void runs(struct replay *r, const struct task *task)
{
    const struct chain_step *step = &r->chains->steps[task->thread->first + task->at - 1];
    notify(r, task, (struct replay_event){.what = REPLAY_RUNS, .by = CHAIN_NONE, .step = step});
}

/* Performs the task's steps until one takes time. `has_cpu`: it has a CPU. */
static void go_on(struct replay *r, struct task *task, bool has_cpu)
{
    static const struct chain_step finish = {.op = CHAIN_FINISH, .of = CHAIN_NONE};
    const struct chain_step *step = &finish;
    enum after after = AFTER_NEXT;
    while (after == AFTER_NEXT && !r->failed) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): prepare_task has set it. */
        if (task->at < task->thread->count) {
            step = &r->chains->steps[task->thread->first + task->at];
            after = begin_step(r, task, step);
        } else {
            after = AFTER_END;
        }
        if (after == AFTER_END) {
            after = after_last(r, task);
            continue;
        }
        if (after == AFTER_NEXT || after == AFTER_SLEEP || after == AFTER_RUN)
            task->at++;
    }
    if (after == AFTER_RUN && has_cpu && task->used_ns < r->slice_ns) {
        runs(r, task);
        slice(r, task);
        return;
    }
    if (has_cpu)
        leave_cpu(r, task);
    if (has_cpu || after == AFTER_END) {
        stops(r, task, after == AFTER_RUN ? NULL : step);
        if (task->of_goal)
            r->result->threads_ns = r->now_ns;
    }
    if (after == AFTER_RUN)
        make_ready(r, task);
    else if (after == AFTER_SLEEP)
        task->state = TASK_SLEEPS;
    else if (after == AFTER_END)
        over(r, task);
    else
        task->state = TASK_WAITS;
    if (after == AFTER_WAIT)
        task->since_ns = r->now_ns;
}

static void has_run(struct replay *r, struct task *task, int64_t ns)
{
    task->left_ns -= ns;
    task->spent_ns += ns;
    task->used_ns += ns;
    if (task->spent_ns > r->least_ns)
        r->least_ns = task->spent_ns;
}

/* A slice has ended. */
static void slice_ends(struct replay *r, struct task *task)
{
    has_run(r, task, task->run_ns);
    if (task->used_ns >= r->slice_ns && r->ready_count == 0)
        task->used_ns = 0;
    if (task->left_ns == 0) {
        go_on(r, task, true);
    } else if (task->used_ns < r->slice_ns) {
        slice(r, task);
    } else {
        leave_cpu(r, task);
        stops(r, task, NULL);
        make_ready(r, task);
    }
}

/* If a mark worker is the next of the ready ones, the task that has run longest leaves its CPU.
 * Returns false if none does. */
static bool preempt(struct replay *r)
{
    struct task *longest = NULL;
    if (!r->tasks[r->ready[0].task].thread->marks)
        return false;
    for (size_t i = 0; i < r->runner_count; i++) {
        struct task *task = &r->tasks[r->runners[i]];
        if (!task->thread->marks &&
            (!longest || task->sliced_ns - task->used_ns < longest->sliced_ns - longest->used_ns))
            longest = task;
    }
    if (!longest)
        return false;
    has_run(r, longest, r->now_ns - longest->sliced_ns);
    longest->event = UINT64_MAX;
    leave_cpu(r, longest);
    stops(r, longest, NULL);
    make_ready(r, longest);
    return true;
}

static void give_cpus(struct replay *r)
{
    while (r->ready_count > 0 && (r->cpus_free > 0 || preempt(r))) {
        struct task *task = next_ready(r);
        r->cpus_free--;
        r->runners[r->runner_count++] = number_of(r, task);
        runs(r, task);
        slice(r, task);
    }
}

static void play(struct replay *r)
{
    while (r->event_count > 0 && !r->failed) {
        struct queued first = r->events[0], last = r->events[--r->event_count];
        if (r->event_count > 0)
            queue_down(r->events, r->event_count, 0, last);
        struct task *task = &r->tasks[first.task];
        r->now_ns = first.key;
        r->current = first.task;
        if (task->event == first.nth && task->state == TASK_RUNS)
            slice_ends(r, task);
        else if (task->event == first.nth)
            go_on(r, task, false);
        /* Process all events of this time before giving out a CPU. */
        if (r->event_count == 0 || r->events[0].key > r->now_ns)
            give_cpus(r);
    }
}

/* MARK: Running */

static void *list(size_t count, size_t size)
{
    return calloc(count + 1, size);
}

/* Threads of the pool get their steps piece by piece; there are others if it has more than in the
 * trace. */
static bool prepare_pool(struct replay *r)
{
    const struct chains *chains = r->chains;
    if (r->plan.pool == 0)
        return true;
    if (!pool_make(&r->pool, chains, r->plan.pool))
        return false;
    if (r->plan.pool_size > r->pool.members)
        r->task_count += r->plan.pool_size - r->pool.members;
    r->workers = list(r->pool.members + r->plan.pool_size, sizeof *r->workers);
    r->idle = list(r->pool.members + r->plan.pool_size, sizeof *r->idle);
    if (!r->workers || !r->idle)
        return false;
    for (size_t i = 0; i < r->pool.count; i++)
        if (r->pool.pieces[i].wait == CHAIN_NONE)
            pool_offer(&r->pool, i);
    for (size_t i = 0; i < chains->wait_count; i++)
        if (is_no_wait(r, (uint32_t)i))
            (void)pool_wait_ends(&r->pool, (uint32_t)i);
    return true;
}

static void prepare_task(struct replay *r, struct task *task, const struct chain_thread *thread)
{
    *task = (struct task){.thread = thread, .held = 1, .inside = 1, .waker = CHAIN_NONE};
    if (r->plan.pool != 0 && names_kind(r->chains->names, thread->name) == r->plan.pool) {
        task->worker = &r->workers[r->worker_count++];
        *task->worker = *thread;
        task->worker->count = 0;
        task->thread = task->worker;
    }
    task->of_goal = r->kind != 0 && names_kind(r->chains->names, thread->name) == r->kind;
    r->open += decides(r->chains, task);
}

/* NOLINTBEGIN(clang-analyzer-unix.Malloc): replay_run frees all lists. */
static void prepare_tasks(struct replay *r)
{
    const struct chains *chains = r->chains;
    for (size_t i = 0; i < r->task_count; i++)
        prepare_task(r, &r->tasks[i], i < chains->thread_count ? &chains->threads[i] : r->workers);
    for (size_t i = 0; i < chains->thread_count; i++)
        if (!chains->threads[i].created)
            begin(r, &r->tasks[i], NULL);
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

static bool prepare(struct replay *r, const struct change *changes, size_t count)
{
    const struct chains *chains = r->chains;
    r->task_count = chains->thread_count;
    r->locks = list(chains->lock_count, sizeof *r->locks);
    r->waiting = list(chains->wait_count, sizeof *r->waiting);
    r->task_begins = list(chains->task_count, sizeof *r->task_begins);
    r->result->tasks = list(chains->task_count, sizeof *r->result->tasks);
    if (!plan_make(&r->plan, chains, changes, count) || !r->locks || !r->waiting ||
        !r->task_begins || !r->result->tasks || !prepare_pool(r))
        return false;
    r->tasks = list(r->task_count, sizeof *r->tasks);
    r->cpus_free = r->plan.cpus;
    r->runners = list(r->plan.cpus, sizeof *r->runners);
    if (!r->tasks || !r->runners)
        return false;
    r->slice_ns = chains->is_go ? SLICE_GO_NS : SLICE_LINUX_NS;
    if (r->slice_ns < (chains->end_ns - chains->begin_ns) / SLICES_MOST)
        r->slice_ns = (chains->end_ns - chains->begin_ns) / SLICES_MOST;
    for (size_t i = 0; i < chains->lock_count; i++)
        r->locks[i] = (struct lock){.holder = CHAIN_NONE, .first = CHAIN_NONE, .last = CHAIN_NONE};
    if (r->goal->of == GOAL_THREADS)
        r->kind = plan_thread_name(chains, r->goal->name);
    prepare_tasks(r);
    for (size_t i = 0; r->goal->of == GOAL_RATE && i < chains->step_count && r->region == 0; i++)
        if (chains->steps[i].op == CHAIN_REGION_END &&
            text_is(names_text(chains->names, chains->steps[i].of), r->goal->name))
            r->region = chains->steps[i].of;
    return !r->failed;
}

/* A thread may wait at its end, as in the trace. */
static bool has_worked(const struct task *task)
{
    return task->state == TASK_OVER ||
           (task->state == TASK_WAITS && task->at + 1 >= task->thread->count);
}

static void finish_threads(const struct replay *r)
{
    for (size_t i = 0; i < r->task_count; i++)
        if (r->tasks[i].of_goal && !has_worked(&r->tasks[i]))
            r->result->threads_ns = -1;
}

bool replay_run(const struct chains *chains, const struct change *changes, size_t count,
                const struct replay_goal *goal, const struct replay_watch *watch,
                struct replay_result *result)
{
    struct replay r = {.chains = chains, .goal = goal, .result = result, .watch = watch};
    *result = (struct replay_result){.end_ns = -1, .threads_ns = -1};
    if (chains->goal == CHAIN_NONE) {
        result->stuck = true;
        return true;
    }
    bool good = prepare(&r, changes, count);
    if (good)
        play(&r);
    if (good)
        finish_threads(&r);
    result->stuck = r.open > 0;
    if (good)
        qsort(result->tasks, result->task_count, sizeof *result->tasks, order_numbers);
    plan_free(&r.plan);
    pool_free(&r.pool);
    free(r.workers);
    free(r.idle);
    free(r.tasks);
    free(r.locks);
    free(r.waiting);
    free(r.task_begins);
    free(r.events);
    free(r.ready);
    free(r.runners);
    return good && !r.failed;
}

void replay_result_free(struct replay_result *result)
{
    free(result->tasks);
    result->tasks = NULL;
}

double replay_value(const struct replay_goal *goal, const struct replay_result *result)
{
    if (result->stuck)
        return -1;
    switch (goal->of) {
    case GOAL_TASK: {
        if (result->task_count == 0)
            return -1;
        return (double)result->tasks[quantile_index(goal->quantile, result->task_count)];
    }
    case GOAL_RATE:
        return result->regions == 0 || result->end_ns <= 0
                   ? -1
                   : (double)result->regions / ((double)result->end_ns / 1e9);
    case GOAL_WAITS:
        return (double)result->waits_ns;
    case GOAL_THREADS:
        return (double)result->threads_ns;
    default:
        return (double)result->end_ns;
    }
}

int64_t replay_real_ns(const struct chains *chains)
{
    return chains->goal == CHAIN_NONE ? 0 : chains->threads[chains->goal].ran_ns - chains->begin_ns;
}

/* Sets *off to the difference with this factor; 1 if the replay has no result. Returns false if out
 * of memory. */
static bool try_stall(const struct chains *chains, struct replay_goal *goal, double stall,
                      double *off)
{
    struct replay_result result;
    goal->stall = stall;
    bool good = replay_run(chains, NULL, 0, goal, NULL, &result);
    int64_t real = replay_real_ns(chains);
    *off = result.stuck || real <= 0 ? 1 : (double)(result.end_ns - real) / (double)real;
    replay_result_free(&result);
    return good;
}

bool replay_calibrate(const struct chains *chains, struct replay_goal *goal, double *off)
{
    enum { TRIES = 5 };
    const double near = 0.005;
    double low = 0, high = 1, best = 1;
    if (!try_stall(chains, goal, 1, off))
        return false;
    double best_off = *off;
    for (int i = 0; i < TRIES && best_off > near && best_off < 1; i++) {
        double middle = (low + high) / 2, now;
        if (!try_stall(chains, goal, middle, &now))
            return false;
        if (fabs(now) < fabs(best_off)) {
            best = middle;
            best_off = now;
        }
        if (fabs(now) <= near)
            break;
        if (now > 0)
            high = middle;
        else
            low = middle;
    }
    goal->stall = best;
    *off = best_off;
    return true;
}
