/* Finds for each wait what ended it: a release, or the end of a thread or process. */
#include "collect/release_search.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/order.h"
#include "collect/parts.h"

/* Waits that ended since the step began are kept for the next one, up to this many. */
#define MAX_ENDED 65536

/*
 * Releases of OpenMP locks are recorded after they happened. If the releasing thread loses its CPU
 * before that, the wait stays unmatched for nearly as long as the model waits.
 */
#define AFTER_THE_FACT_NS (INT64_C(3) * COLLECT_DELAY_NS / 4)

/* The end of a process is noticed this late at most, however busy the machine is. */
#define NOTICED_NS 2000000000

/* MARK: Wakers */

/* Returns the op of a wait's end by its number; NULL: already written. */
static struct op *wake_op(const struct collect *c, uint64_t serial, uint64_t wake)
{
    struct thread *thread = thread_of(c, serial);
    struct op *op = thread ? op_at(thread, wake) : NULL;
    return op && op->kind == OP_WAKE ? op : NULL;
}

/*
 * Sets the waker in the op of a wait's end: the kernel may show that the thread was woken before
 * the release is written, or the release is already written because its thread waited long for a
 * CPU.
 */
static void set_waker(const struct collect *c, uint64_t waker, uint64_t stack, uint64_t serial,
                      uint64_t wake)
{
    struct op *op = wake_op(c, serial, wake);
    if (!op)
        return;
    op->object = waker;
    op->stack = stack;
}

/* The release ended the wait, though perhaps not the call. */
static void set_final(const struct collect *c, uint64_t serial, uint64_t wake)
{
    struct op *op = wake_op(c, serial, wake);
    if (op)
        op->final = true;
}

/* Sets the time at which the release will be written. */
static void set_release_time(const struct collect *c, uint64_t time, uint64_t serial, uint64_t wake)
{
    struct op *op = wake_op(c, serial, wake);
    if (op)
        op->object2 = time;
}

/* Adds a wait to a list of those that are ended together. */
static void push_woken(struct collect *c, struct woken **list, uint64_t serial,
                       uint64_t wait_number)
{
    struct woken *woken = malloc(sizeof *woken);
    if (!woken) {
        collect_no_memory(c);
        return;
    }
    *woken = (struct woken){*list, serial, wait_number};
    *list = woken;
}

/* `wake` is the number of the op that ends the wait. */
static void add_woken(struct collect *c, struct release *release, uint64_t serial,
                      uint64_t wait_number, uint64_t wake)
{
    release_take(release);
    set_waker(c, release->serial, release->stack, serial, wake);
    if (release->written)
        return;
    set_release_time(c, release->time, serial, wake);
    /* A thread that wakes itself does so in a signal handler. */
    push_woken(c, &release->woken, serial, wait_number);
}

/* Makes the end of `target` end the wait. */
static void add_joiner(struct collect *c, struct thread *target, const struct ended_wait *wait)
{
    if (!target || target->g.state == G_DEAD || target->serial == wait->serial)
        return;
    push_woken(c, &target->joiners, wait->serial, wait->number);
    set_waker(c, target->serial, 0, wait->serial, wait->op);
}

/* MARK: Ends of processes */

/* Returns the program that a process of the trace executed last; NULL: none. PIDs of other
 * namespaces mean other processes. */
static struct collect *program_of(const struct trace *t, const struct collect *parent, pid_t pid)
{
    struct collect *found = NULL;
    if (parent->options.process.nested)
        return NULL;
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (collect_pid(c) == pid && (!found || c->number > found->number))
            found = c;
    }
    return found;
}

/* Returns the process whose end may have ended the wait; 0: none. */
static pid_t awaited_process(const struct shm_record *r)
{
    if (r->wait == SHM_FILE_LOCK)
        return (pid_t)r->release2;
    return r->wait == SHM_CHILD && shm_is_process(r->object) ? (pid_t)(uint32_t)r->object : 0;
}

/* Returns the collector of that process; NULL: not recorded. */
static struct collect *child_of(const struct trace *t, const struct ended_wait *wait)
{
    const struct thread *thread = idmap_find(&t->threads, wait->serial);
    pid_t pid = awaited_process(&wait->record);
    return thread && pid ? program_of(t, thread->of, pid) : NULL;
}

/* Whether the process's end may have sent SIGCHLD to the other one. */
static bool is_child_of(const struct trace *t, const struct collect *c,
                        const struct collect *parent)
{
    return c != parent && trace_parent(t, c) != 0 && trace_parent(t, c) == collect_pid(parent) &&
           program_of(t, parent, collect_pid(c)) == c;
}

/* Whether the process has recorded nothing after `time`. */
static bool is_quiet_after(const struct collect *c, uint64_t time)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        for (size_t i = 0; i < thread->ops.count; i++) {
            const struct op *op = op_in_ring(thread, i);
            if (op->time > time && op->kind != OP_GONE)
                return false;
        }
    }
    return true;
}

/* Whether SIGCHLD, which is not sent by a thread, may have ended the wait. */
static bool is_by_child(const struct shm_record *r)
{
    return shm_is_signals(r->object) && r->object2 & shm_signal_bit(SIGCHLD) &&
           !(r->flags & (SHM_EXPIRED | SHM_LEFT));
}

/* Whether the process may have ended in the wait: it was not seen alive after it. */
static bool may_have_ended(const struct collect *c, const struct shm_record *r)
{
    return c->alive_ticks <= r->end && (!c->ended || c->end_ticks >= r->time);
}

/*
 * Returns the only child known to have ended during the wait; NULL: none, or several, and it is not
 * known which was first.
 */
static struct collect *ended_child(const struct trace *t, const struct collect *parent,
                                   const struct shm_record *r)
{
    struct collect *found = NULL;
    if (parent->options.process.nested)
        return NULL;
    for (struct collect *c = t->programs; c; c = c->next_in_trace) {
        if (!c->ended || !may_have_ended(c, r) || !is_child_of(t, c, parent) ||
            !is_quiet_after(c, r->end))
            continue;
        if (found)
            return NULL;
        found = c;
    }
    return found;
}

static void match_child(struct collect *child, const struct ended_wait *wait)
{
    struct thread *first = thread_with_tid(child, (uint64_t)collect_pid(child));
    if (!first || !child->ended || child->end_ticks < wait->record.time)
        return;
    collect_ended_before(child, wait->record.end);
    add_joiner(child, first, wait);
}

/* MARK: Matching */

/*
 * A file lock: the last release of a lock that excluded this one; or the end of a process that had
 * left one. If both exist, it is not known which was last.
 */
static void match_file_lock(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct collect *holder = child_of(c->trace, wait);
    struct release *found = release_find_conflicting(release_search_of(c, r), r->object2);
    if (!r->release2 && found)
        add_woken(c, found, wait->serial, wait->number, wait->op);
    else if (!found && holder)
        match_child(holder, wait);
}

/* Returns what a signal handler has written, in an interrupted wait, to a descriptor that the wait
 * was for; NULL: nothing. */
static struct release *written_by_handler(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct release *release =
        wait->polled_release
            ? release_find(
                  (struct release_search){c, wait->polled, wait->polled_release, r->time, r->end},
                  SHM_POLL)
            : NULL;
    return release && release->serial == wait->serial ? release : NULL;
}

/* A signal to the process, or else to its group, where each process has its own copy. Other
 * namespaces have other groups. */
static void match_signal(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    const struct thread *thread = thread_of(c, wait->serial);
    struct release_search s = release_search_of(c, r);
    struct release *sent = written_by_handler(c, wait);
    struct collect *child;
    if (thread && !sent)
        sent = release_find_signal(s, r, thread);
    if (thread && !sent && r->release2 && !c->options.process.nested) {
        s.object = shm_group_signals(r->generation);
        s.number = r->release2;
        sent = release_find_signal(s, r, thread);
    }
    if (sent) {
        add_woken(c, sent, wait->serial, wait->number, wait->op);
        set_final(c, wait->serial, wait->op);
    } else if (is_by_child(r) && (child = ended_child(c->trace, c, r)) != NULL) {
        match_child(child, wait);
    }
}

/* A call that did not return: if the thread was cancelled in the meantime, that ended the call. */
static void match_left(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    const struct thread *thread = thread_of(c, wait->serial);
    struct release *release = NULL;
    /* The record of a wait for a condition variable has two ops: see take_waited. */
    uint64_t op = wait->op + (r->wait == SHM_COND);
    if (thread && thread->handle && r->release)
        release = release_find_last(
            (struct release_search){c, thread->handle, r->release, r->time, r->end});
    if (!release)
        return;
    add_woken(c, release, wait->serial, wait->number, op);
    set_final(c, wait->serial, op);
}

/*
 * A wait for a condition variable lasts until its signal or time limit; if the mutex was released
 * later than that, a wait for the mutex follows.
 */
static void match_condition(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct thread *thread = thread_of(c, wait->serial);
    struct release *signal = NULL, *mutex;
    uint64_t over = wait->expired > c->trace->watermark ? wait->expired : 0;
    struct op *op;
    if (!(r->flags & SHM_TIMED_OUT))
        signal = release_find(release_search_of(c, r), SHM_COND);
    if (signal) {
        add_woken(c, signal, wait->serial, wait->number, wait->op + 1);
        over = signal->time;
    }
    mutex =
        over ? release_find((struct release_search){c, r->object2, r->release2, over + 1, r->end},
                            SHM_MUTEX)
             : NULL;
    op = thread ? op_at(thread, wait->op) : NULL;
    if (!mutex || (signal && signal->written) || !op || op->kind != OP_NOTHING) {
        if (signal)
            set_final(c, wait->serial, wait->op + 1);
        return;
    }
    op->kind = OP_BLOCK;
    op->time = over + 1;
    op->flags = r->flags & SHM_EXPIRED;
    add_woken(c, mutex, wait->serial, wait->number + 1, wait->op + 1);
}

/*
 * An OpenMP lock: the release with the number ended the wait. It is recorded after the fact, so its
 * time may be later than the end of the wait.
 */
static void match_openmp_lock(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct release *release = release_at(c, r->object, r->release);
    if (!release || release->object != r->object || release->time < r->time)
        return;
    if (release->time < r->end)
        add_woken(c, release, wait->serial, wait->number, wait->op);
    else
        set_waker(c, release->serial, release->stack, wait->serial, wait->op);
    release->taken = true;
}

/*
 * An OpenMP barrier: if no thread had to wait for long, the release was not recorded, but the last
 * thread to arrive is known.
 */
static void match_openmp_barrier(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct release *release = release_find_last(release_search_of(c, r));
    uint64_t last = thread_serial(c, r->release2);
    if (release)
        add_woken(c, release, wait->serial, wait->number, wait->op);
    else if (r->release2 && last != wait->serial)
        set_waker(c, last, 0, wait->serial, wait->op);
}

/* An OpenMP worker: the next parallel region ended the wait. */
static void match_openmp_work(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct release *release =
        release_find_last((struct release_search){c, r->object2, r->release2, r->time, r->end});
    if (release)
        add_woken(c, release, wait->serial, wait->number, wait->op);
}

/* A permit that was taken without a wait. */
static void match_taken(struct collect *c, const struct shm_record *r)
{
    struct release *release = release_find_post(release_search_of(c, r));
    if (release)
        release_take(release);
}

static void match(const struct trace *t, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct thread *thread = idmap_find(&t->threads, wait->serial);
    struct collect *c = thread ? thread->of : NULL;
    struct release *release;
    if (!c)
        return;
    if (r->kind == SHM_TAKEN) {
        match_taken(c, r);
    } else if (r->flags & SHM_LEFT) {
        match_left(c, wait);
    } else if (r->flags & SHM_OWNER_DIED) {
        if (r->release2)
            add_joiner(c, thread_of(c, thread_serial(c, r->release2)), wait);
    } else if (shm_is_signals(r->object)) {
        if (!(r->flags & SHM_EXPIRED))
            match_signal(c, wait);
    } else if (r->wait == SHM_FILE_LOCK) {
        if (!(r->flags & SHM_TIMED_OUT))
            match_file_lock(c, wait);
    } else if (r->wait == SHM_COND) {
        match_condition(c, wait);
    } else if (r->wait == SHM_JOIN) {
        /* The C library reuses a thread's handle. */
        if (!(r->flags & (SHM_TIMED_OUT | SHM_EXPIRED)))
            add_joiner(c, thread_joined(c, r->object, r->end), wait);
    } else if (r->wait == SHM_CHILD) {
        struct collect *child = child_of(t, wait);
        if (child)
            match_child(child, wait);
    } else if (shm_is_openmp_lock(r->wait)) {
        match_openmp_lock(c, wait);
    } else if (r->wait == SHM_OMP_BARRIER) {
        match_openmp_barrier(c, wait);
    } else if (r->wait == SHM_OMP_JOIN || r->wait == SHM_OMP_WORK) {
        match_openmp_work(c, wait);
    } else if (r->release && !(r->flags & (SHM_TIMED_OUT | SHM_EXPIRED))) {
        release = release_find(release_search_of(c, r), r->wait);
        if (release)
            add_woken(c, release, wait->serial, wait->number, wait->op);
    }
}

/* Marks a wait as matched, or as having no recorded release. */
static void set_matched(const struct trace *t, const struct ended_wait *wait)
{
    const struct thread *thread = idmap_find(&t->threads, wait->serial);
    /* The record of a wait for a condition variable has two ops: see take_waited. */
    struct op *op =
        thread && wait->record.kind != SHM_TAKEN
            ? wake_op(thread->of, wait->serial, wait->op + (wait->record.wait == SHM_COND))
            : NULL;
    if (op)
        op->unmatched = false;
}

/* Orders the waits for one object by their end: each was ended by an earlier release, so those that
 * end first have the fewest to choose from. A thread may lose its CPU between reading the number of
 * its record and the end. */
static int by_end(const void *a_, const void *b_)
{
    const struct shm_record *a = &((const struct ended_wait *)a_)->record;
    const struct shm_record *b = &((const struct ended_wait *)b_)->record;
    return ORDER(a->object, b->object) ?: ORDER(a->end, b->end) ?: ORDER(a->release, b->release);
}

/* Whether a recorded child may have ended the wait of its parent, which is not known yet. */
static bool has_ending_child(const struct trace *t, const struct ended_wait *wait)
{
    const struct thread *thread = idmap_find(&t->threads, wait->serial);
    for (const struct collect *c = t->programs; c && thread; c = c->next_in_trace) {
        if (!c->ended && may_have_ended(c, &wait->record) && is_child_of(t, c, thread->of))
            return true;
    }
    return false;
}

/*
 * Whether the wait was ended by the end of a process that has not been noticed yet. A process
 * releases its file locks before it has ended, and may be seen alive after that.
 */
static bool is_ending(const struct trace *t, const struct ended_wait *wait, uint64_t time,
                      uint64_t late)
{
    const struct shm_record *r = &wait->record;
    if (time == UINT64_MAX || time - r->end >= late)
        return false;
    const struct collect *process = child_of(t, wait);
    if (process && !process->ended && (r->wait == SHM_FILE_LOCK || may_have_ended(process, r)))
        return true;
    return is_by_child(r) && has_ending_child(t, wait);
}

/* Whether the release of the OpenMP lock that was waited for may still be recorded. */
static bool is_after_the_fact(const struct trace *t, const struct ended_wait *wait, uint64_t time,
                              uint64_t grace)
{
    const struct shm_record *r = &wait->record;
    const struct thread *thread = idmap_find(&t->threads, wait->serial);
    return shm_is_openmp_lock(r->wait) && time != UINT64_MAX && time - r->end < grace && thread &&
           !release_at(thread->of, r->object, r->release);
}

/*
 * All waits that ended before `time` have been read, and so have their releases, which are recorded
 * before they happen, but for OpenMP's.
 */
void releases_match(struct trace *t, const struct ticks *ticks, uint64_t time)
{
    struct releases *releases = &t->releases;
    uint64_t grace = ticks_of_ns(ticks, AFTER_THE_FACT_NS);
    uint64_t late = ticks_of_ns(ticks, NOTICED_NS);
    size_t count = 0;
    /* Waits with an end in the future must not pile up. */
    if (releases->ended_count > MAX_ENDED)
        time = UINT64_MAX;
    for (size_t i = 0; i < releases->ended_count; i++) {
        struct ended_wait wait = releases->ended[i];
        if (wait.record.end < time && !is_ending(t, &wait, time, late) &&
            !is_after_the_fact(t, &wait, time, grace)) {
            releases->ended[i] = releases->ended[count];
            releases->ended[count++] = wait;
        }
    }
    if (count == 0)
        return;
    qsort(releases->ended, count, sizeof releases->ended[0], by_end);
    for (size_t i = 0; i < count && !deadline_is_over(t); i++) {
        match(t, &releases->ended[i]);
        set_matched(t, &releases->ended[i]);
    }
    releases->ended_count -= count;
    memmove(releases->ended, releases->ended + count,
            releases->ended_count * sizeof releases->ended[0]);
}

void releases_wait_ended(struct collect *c, const struct ended_wait *wait)
{
    struct releases *r = &c->trace->releases;
    if (!APPEND(r->ended, r->ended_room, r->ended_count, *wait)) {
        collect_no_memory(c);
        return;
    }
}
