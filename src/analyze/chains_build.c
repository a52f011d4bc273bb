/* The steps of chains, made of their marks. */
#include <stdlib.h>

#include "analyze/chains.h"
#include "analyze/part.h"
#include "base/grow.h"
#include "base/order.h"

/* One goroutine while its marks become steps. */
struct builder {
    struct chains *chains;
    const struct chain_thread *thread;
    int64_t at_ns;
    int64_t shared_ns;   /* stalls between its parts */
    int64_t run_ns;      /* running that is no step yet */
    trail_stack from;    /* the last known stack */
    uint32_t wait;       /* of the current wait or call */
    size_t wait_step;    /* index of its step */
    unsigned holds;      /* locks that it has */
    uint8_t state;       /* MARK_* */
    size_t sample_count; /* in `pending` */
    trail_stack *pending;
    size_t pending_capacity;
};

static bool step(struct builder *b, unsigned op, int64_t ns, uint32_t of, unsigned flags)
{
    struct chains *chains = b->chains;
    if (!GROW(chains->steps, chains->step_capacity, chains->step_count + 1))
        return false;
    if (op == CHAIN_TAKE)
        b->holds++;
    else if (op == CHAIN_RELEASE && b->holds > 0)
        b->holds--;
    chains->steps[chains->step_count++] =
        (struct chain_step){.ns = ns, .of = of, .op = (uint8_t)op, .flags = (uint8_t)flags};
    return true;
}

/* MARK: Running */

/* Returns the number of a class; CHAIN_NONE if out of memory. */
static uint32_t class_of(struct builder *b, trail_stack to)
{
    struct chains *chains = b->chains;
    const uint32_t key[] = {b->thread->name, b->from, to};
    bool fresh;
    uint64_t number = intern_put(&chains->class_ids, key, sizeof key, &fresh);
    if (number == 0 || !GROW(chains->classes, chains->class_capacity, (size_t)number))
        return CHAIN_NONE;
    if (fresh) {
        chains->classes[number - 1] =
            (struct chain_class){.thread = b->thread->name, .from = b->from, .to = to};
        chains->class_count = (size_t)number;
    }
    return (uint32_t)(number - 1);
}

static bool count_sample(struct chains *chains, uint32_t class, trail_stack stack)
{
    const uint32_t key[] = {class, stack};
    bool fresh;
    uint64_t number = intern_put(&chains->sample_ids, key, sizeof key, &fresh);
    if (number == 0 || !GROW(chains->samples, chains->sample_capacity, (size_t)number))
        return false;
    if (fresh) {
        chains->samples[number - 1] = (struct chain_sample){.of = class, .stack = stack};
        chains->sample_count = (size_t)number;
    }
    chains->samples[number - 1].count++;
    chains->classes[class].samples++;
    return true;
}

/* Ends a stretch of running at a place with this stack. */
static bool run_ends(struct builder *b, trail_stack to)
{
    if (b->run_ns == 0 && b->sample_count == 0)
        return true;
    uint32_t class = class_of(b, to);
    if (class == CHAIN_NONE)
        return false;
    for (size_t i = 0; i < b->sample_count; i++)
        if (!count_sample(b->chains, class, b->pending[i]))
            return false;
    ns_add(&b->chains->classes[class].ns, b->run_ns);
    if (b->thread->gc)
        ns_add(&b->chains->gc_ns, b->run_ns);
    int64_t ns = b->run_ns, shared = b->shared_ns;
    b->run_ns = b->shared_ns = 0;
    b->sample_count = 0;
    return step(b, CHAIN_RUN, ns, class, 0) &&
           (shared == 0 || step(b, CHAIN_STALL, shared, class, CHAIN_SHARED));
}

static bool keep_sample(struct builder *b, trail_stack stack)
{
    return APPEND(b->pending, b->pending_capacity, b->sample_count, stack);
}

/* MARK: States */

static bool starts(struct builder *b, const struct chain_mark *mark)
{
    int64_t stopped = mark->of;
    if (b->run_ns == 0 && mark->stack > 0 && !step(b, CHAIN_QUEUE, mark->stack, 0, 0))
        return false;
    if (mark->ns <= 0)
        return true;
    if (b->run_ns > 0)
        b->shared_ns += mark->ns - stopped;
    if (b->run_ns > 0 && stopped == 0)
        return true;
    return (stopped == 0 || step(b, CHAIN_STALL, stopped, CHAIN_NONE, CHAIN_STOPPED)) &&
           (b->run_ns > 0 || mark->ns == stopped ||
            step(b, CHAIN_STALL, mark->ns - stopped, CHAIN_NONE, 0));
}

static bool waits(struct builder *b, uint32_t number)
{
    const struct chains *chains = b->chains;
    const struct chain_wait *wait = &chains->waits[number];
    const struct chain_lock *lock = wait->lock != CHAIN_NONE ? &chains->locks[wait->lock] : NULL;
    bool takes = lock && lock->kind != WIRE_WAIT_NONE && wait->end == CHAIN_WOKEN;
    switch ((enum chain_end)wait->end) {
    case CHAIN_WOKEN:
        if (takes && lock->modelled)
            return step(b, CHAIN_TAKE, 0, wait->lock, 0);
        return step(b, CHAIN_WAIT, 0, number, 0) &&
               (!takes || step(b, CHAIN_TAKE, 0, wait->lock, 0));
    case CHAIN_TIMED:
        return step(b, CHAIN_DELAY, wait->end_ns - wait->begin_ns, number, 0);
    case CHAIN_ARRIVED:
        return step(b, CHAIN_UNTIL, wait->end_ns - chains->begin_ns, number, 0);
    case CHAIN_INTERRUPTED:
        return true;
    default:
        return step(b, CHAIN_FINISH, 0, number, 0);
    }
}

/* Time passed in the current state. */
static bool pass(struct builder *b, int64_t ns)
{
    if (b->state == MARK_RUN || b->state == MARK_CALL)
        b->run_ns += ns;
    else if (b->state == MARK_LEFT && ns > 0)
        return step(b, CHAIN_DELAY, ns, b->wait, 0);
    return true;
}

/*
 * Holds are known to three digits, so that a lock may seem to be taken in the wait that follows, or
 * in the one before. Returns whether it was taken before the current wait.
 */
static bool taken_before(const struct builder *b, const struct chain_mark *mark)
{
    const struct chain_wait *wait;
    if (mark->op != CHAIN_TAKE || (b->state != MARK_WAIT && b->state != MARK_LEFT))
        return false;
    wait = &b->chains->waits[b->wait];
    return wait->end == CHAIN_OPEN || mark->time_ns - wait->begin_ns < wait->end_ns - mark->time_ns;
}

/* Adds the step of a mark in front of the step `at`. */
static bool step_before(struct builder *b, size_t at, const struct chain_mark *mark)
{
    struct chain_step *steps;
    if (!step(b, mark->op, 0, mark->of, mark->flags))
        return false;
    steps = b->chains->steps;
    struct chain_step last = steps[b->chains->step_count - 1];
    for (size_t i = b->chains->step_count - 1; i > at; i--)
        steps[i] = steps[i - 1];
    steps[at] = last;
    return true;
}

static bool step_before_wait(struct builder *b, const struct chain_mark *mark)
{
    /* The step of a call follows when it ends. */
    size_t at = b->state == MARK_LEFT ? b->chains->step_count : b->wait_step++;
    return step_before(b, at, mark);
}

/*
 * Adds the wait for the start of a task. The beginner might need a lock that this thread holds: so
 * the wait comes before the lock is taken, unless the thread has done more with it than run.
 */
static bool wait_for_task(struct builder *b, const struct chain_mark *mark)
{
    size_t at = b->chains->step_count;
    for (unsigned holds = b->holds; holds > 0; at--) {
        unsigned op = at > b->thread->first ? b->chains->steps[at - 1].op : CHAIN_FINISH;
        if (op == CHAIN_TAKE)
            holds--;
        else if (op != CHAIN_RUN && op != CHAIN_STALL)
            return true;
    }
    return step_before(b, at, mark);
}

static bool take_mark(struct builder *b, const struct chain_mark *mark)
{
    const struct chains *chains = b->chains;
    if (taken_before(b, mark))
        return step_before_wait(b, mark);
    int64_t ns = mark->time_ns > b->at_ns ? mark->time_ns - b->at_ns : 0;
    if (!pass(b, ns))
        return false;
    b->at_ns += ns;
    if (mark->op == MARK_SAMPLE)
        return b->state != MARK_RUN || keep_sample(b, mark->stack);
    /* A goroutine that is ready again, or preempted, goes on with the same stretch. */
    bool same = mark->op == MARK_READY || mark->op == MARK_RUN;
    if (!same && !run_ends(b, mark->stack))
        return false;
    if (mark->stack != 0 && !same)
        b->from = mark->stack;
    if (mark->op >= MARK_RUN)
        b->state = mark->op;
    switch (mark->op) {
    case MARK_RUN:
        return starts(b, mark);
    case MARK_READY:
        return true;
    case MARK_WAIT:
        b->wait = mark->of;
        b->wait_step = chains->step_count;
        return waits(b, mark->of);
    case MARK_CALL:
    case MARK_LEFT:
        b->wait = mark->of;
        return true;
    case MARK_END:
        return step(b, CHAIN_FINISH, 0, CHAIN_NONE, 0);
    case CHAIN_WAKE:
        if (chains->waits[mark->of].lock != CHAIN_NONE &&
            chains->locks[chains->waits[mark->of].lock].modelled)
            return true; /* the release does it */
        return chains->waits[mark->of].end != CHAIN_WOKEN || step(b, CHAIN_WAKE, 0, mark->of, 0);
    case CHAIN_WAIT:
        return wait_for_task(b, mark);
    default:
        return step(b, mark->op, 0, mark->of, mark->flags);
    }
}

/* MARK: All */

static int by_time(const void *a, const void *b)
{
    const struct chain_mark *m = *(const struct chain_mark *const *)a,
                            *n = *(const struct chain_mark *const *)b;
    return ORDER(m->time_ns, n->time_ns) ?: ORDER(m, n);
}

static bool build_thread(struct builder *b, struct chain_thread *thread,
                         const struct chain_mark **marks, size_t count)
{
    struct chains *chains = b->chains;
    thread->first = chains->step_count;
    b->thread = thread;
    b->run_ns = b->shared_ns = 0;
    b->sample_count = 0;
    b->holds = 0;
    b->from = 0;
    b->state = MARK_READY;
    b->at_ns = thread->begin_ns;
    if (!thread->created && thread->begin_ns > chains->begin_ns &&
        !step(b, CHAIN_UNTIL, thread->begin_ns - chains->begin_ns, CHAIN_NONE, 0))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!take_mark(b, marks[i]))
            return false;
        if (chains->step_count > thread->first &&
            chains->steps[chains->step_count - 1].op == CHAIN_FINISH)
            break;
    }
    thread->count = chains->step_count - thread->first;
    return true;
}

/* Sorts marks by thread into *first: the first of each, and the end. NULL: out of memory. */
static const struct chain_mark **by_thread(const struct chains *chains, size_t *first)
{
    const struct chain_mark **sorted = calloc(chains->mark_count + 1, sizeof(void *));
    if (!sorted)
        return NULL;
    for (size_t i = 0; i < chains->mark_count; i++)
        first[chains->marks[i].thread + 1]++;
    for (size_t i = 0; i < chains->thread_count; i++)
        first[i + 1] += first[i];
    for (size_t i = 0; i < chains->mark_count; i++)
        sorted[first[chains->marks[i].thread]++] = &chains->marks[i];
    for (size_t i = chains->thread_count; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
    return sorted;
}

/* Marks of holds come late; all others are in the order of time. */
static void sort_thread(const struct chain_mark **marks, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (marks[i]->time_ns < marks[i - 1]->time_ns) {
            qsort(marks, count, sizeof(void *), by_time);
            return;
        }
}

/*
 * A lock is modelled if its waits, but for 0.5 % of the length of the trace, were ended by holders
 * that the trace knows.
 */
static void choose_modelled(struct chains *chains)
{
    int64_t most = (chains->end_ns - chains->begin_ns) / 200;
    EACH(struct chain_lock, lock, chains->locks, chains->lock_count) {
        bool alone = lock->kind == WIRE_WAIT_MUTEX || lock->kind == WIRE_WAIT_SPIN ||
                     lock->kind == WIRE_WAIT_OMP_CRITICAL || lock->kind == WIRE_WAIT_OMP_LOCK;
        lock->modelled = alone && lock->unmatched_ns <= most;
    }
}

bool chains_build(struct chains *chains)
{
    struct builder builder = {.chains = chains};
    size_t *first = calloc(chains->thread_count + 2, sizeof *first);
    const struct chain_mark **marks = first ? by_thread(chains, first) : NULL;
    bool good = marks != NULL;
    choose_modelled(chains);
    for (size_t i = 0; good && i < chains->thread_count; i++) {
        size_t count = first[i + 1] - first[i];
        sort_thread(marks + first[i], count);
        good = build_thread(&builder, &chains->threads[i], marks + first[i], count);
    }
    free(builder.pending);
    free(marks);
    free(first);
    free(chains->marks);
    chains->marks = NULL;
    chains->mark_capacity = 0;
    return good;
}
