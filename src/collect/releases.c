/*
 * Matches waits with the releases that ended them.
 *
 * The record of a wait has the number of its object's last release when the wait ended. For a lock
 * that only one thread can hold, that release ended the wait. A thread that gets no CPU when a barrier
 * opens may see arrivals of the next round: the release that ended another wait since its own began,
 * or the last before a thread came again, ended its own as well. A reader was woken
 * by a writer; readers that were woken with it may have released the lock since. Condition
 * variables and semaphores may have been released several times by then: the oldest release since
 * the wait began that has not woken a thread yet is taken. A thread may take a permit of a
 * semaphore without a wait, which is not recorded: another wait that began later shows that no
 * permit was left, so only posts since then can have ended the wait. For descriptors it is the
 * oldest since the wait began, because any number of threads may poll for it. For a file lock it is
 * the last release of a lock that excluded the one waited for.
 */
#include "collect/releases.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/parts.h"

/* How many releases of other locks in the same slot are skipped. */
#define MAX_TRIES 64

/* Waits that ended since the step began are kept for the next one, up to this many. */
#define MAX_ENDED 65536

/* Releases of OpenMP locks are recorded after they happened: this late at most, unless the thread
 * was preempted. */
#define AFTER_THE_FACT_NS 20000000

/* The end of a process is noticed this late at most, however busy the machine is. */
#define NOTICED_NS 2000000000

/* MARK: Releases */

/* Numbers count the releases of the object's slot: on the board, or in the program's area. (There
 * are few programs at a time.) */
static uint64_t release_key(const struct collect *c, uint64_t object, uint32_t number)
{
    uint64_t program = shm_is_shared(object) ? 0 : 1 + c->number % ((1u << 18) - 1);
    return program << 45 | (uint64_t)(shm_object_slot(object) + 1) << 32 | number;
}

/* Returns the block of a release's key; NULL: it has no releases. */
static struct release_block *block_of(const struct releases *r, uint64_t key)
{
    return objects_find(&r->blocks, key / RELEASE_BLOCK);
}

static struct release *find_key(const struct releases *r, uint64_t key)
{
    const struct release_block *block = block_of(r, key);
    return block ? block->at[key % RELEASE_BLOCK] : NULL;
}

static bool put_key(struct releases *r, struct release *release)
{
    struct release_block *block;
    r->blocks.slab.object_size = sizeof *block;
    block = objects_get(&r->blocks, release->key / RELEASE_BLOCK);
    if (!block)
        return false;
    block->used += !block->at[release->key % RELEASE_BLOCK];
    block->at[release->key % RELEASE_BLOCK] = release;
    return true;
}

/* A program that overwrites the area may have used a number twice: the newer release then has the
 * place. */
static void remove_key(struct releases *r, const struct release *release)
{
    struct release_block *block = block_of(r, release->key);
    if (!block || block->at[release->key % RELEASE_BLOCK] != release)
        return;
    block->at[release->key % RELEASE_BLOCK] = NULL;
    if (--block->used == 0)
        objects_drop(&r->blocks, release->key / RELEASE_BLOCK);
}

static void set_taken(struct release *release)
{
    release->taken = true;
    release->skip = release->number + 1;
}

struct release *release_add(struct collect *c, struct thread *thread,
                            const struct shm_record *record)
{
    struct releases *releases = &c->trace->releases;
    struct release *release;
    releases->slab.object_size = sizeof *release;
    release = slab_get(&releases->slab);
    if (!release) {
        collect_no_memory(c);
        return NULL;
    }
    release->key = release_key(c, record->object, record->release);
    if (!put_key(releases, release)) {
        slab_put(&releases->slab, release);
        collect_no_memory(c);
        return NULL;
    }
    release->time = record->time;
    release->object = record->object;
    release->serial = thread->serial;
    release->number = record->release;
    release->stack = record->stack;
    release->all = record->flags & SHM_ALL;
    release->by_reader = record->wait == SHM_RDLOCK;
    release->part = record->object2;
    if (shm_is_shared_end(record->object) && record->flags & SHM_CLOSES) {
        /* Only if no other ended the wait: see find_shared. */
        release->closes = true;
        set_taken(release);
    }
    if (releases->newest)
        releases->newest->newer = release;
    else
        releases->oldest = release;
    releases->newest = release;
    return release;
}

struct woken *release_is_written(struct release *release)
{
    struct woken *woken = release->woken;
    release->woken = NULL;
    release->written = true;
    return woken;
}

void woken_free(struct woken *woken)
{
    while (woken) {
        struct woken *next = woken->next;
        free(woken);
        woken = next;
    }
}

void releases_drop_old(struct trace *t, uint64_t before)
{
    struct releases *r = &t->releases;
    struct release *oldest;
    while ((oldest = r->oldest) && oldest->written && oldest->time < before) {
        remove_key(r, oldest);
        r->oldest = oldest->newer;
        if (!r->oldest)
            r->newest = NULL;
        slab_put(&r->slab, oldest);
    }
}

static bool is_exclusive(uint8_t wait)
{
    return wait == SHM_MUTEX || wait == SHM_WRLOCK || wait == SHM_ONCE || wait == SHM_OMP_TASKS;
}

static struct release *release_at(struct collect *c, uint64_t object, uint32_t number)
{
    return find_key(&c->trace->releases, release_key(c, object, number));
}

/* Where the release that ended a wait is looked for. */
struct search {
    struct collect *c;
    uint64_t object;
    uint32_t number;     /* of the object's last release when the wait ended */
    uint64_t begin, end; /* of the wait */
};

static struct search search_for(struct collect *c, const struct shm_record *r)
{
    return (struct search){c, r->object, r->release, r->time, r->end};
}

/* Whether the release was for the object, in the time of the wait: other objects may have the same
 * slot. */
static bool is_within(const struct release *r, struct search s)
{
    return r && r->object == s.object && r->time >= s.begin && r->time <= s.end;
}

/*
 * Returns the first number whose release is not older than the wait; at most number + 1. It is
 * usually one of the last, so these are tried first, in growing steps.
 */
static uint32_t first_since(struct search s)
{
    uint32_t low = 1, high = s.number + 1;
    for (uint64_t step = 1; step <= s.number && low == 1; step *= 2) {
        uint32_t at = (uint32_t)(s.number + 1 - step);
        const struct release *r = release_at(s.c, s.object, at);
        if (r && r->time < s.begin)
            low = at + 1;
        else if (r)
            high = at;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct release *r = release_at(s.c, s.object, middle);
        if (!r || r->time < s.begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_left_over(const struct release *r)
{
    return !r || r->all || !r->taken;
}

/* Returns the first number from `number` on whose release can end a wait. Shortens the path for the
 * next search. */
static uint32_t next_left_over(struct collect *c, uint64_t object, uint32_t number)
{
    struct release *r = release_at(c, object, number);
    while (!is_left_over(r)) {
        struct release *next = release_at(c, object, r->skip);
        number = r->skip;
        if (!is_left_over(next))
            r->skip = next->skip;
        r = next;
    }
    return number;
}

/*
 * Returns the oldest release since the wait began that has not ended a wait yet. It may be newer
 * than the number in the wait's record: waits with higher numbers may have been matched with the
 * older releases.
 */
static struct release *find_left_over(struct search s)
{
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n != 0; tries++) {
        struct release *r;
        n = next_left_over(s.c, s.object, n);
        r = release_at(s.c, s.object, n);
        if (!r && n > s.number)
            break;
        if (is_within(r, s))
            return r;
        n++;
    }
    return NULL;
}

/* MARK: Semaphores */

static struct empty_semaphore *empty_of(struct collect *c, uint64_t object, uint64_t *program)
{
    *program = release_key(c, object, 0);
    return &c->trace->releases.empty[shm_object_slot(object) % EMPTY_PLACES];
}

void releases_empty(struct collect *c, uint64_t object, uint64_t time)
{
    uint64_t program;
    struct empty_semaphore *at = empty_of(c, object, &program);
    if (at->object != object || at->program != program)
        *at = (struct empty_semaphore){.object = object, .program = program};
    at->times[at->next++ % EMPTY_TIMES] = time;
}

/* Returns when the semaphore was last seen without permits before `end`, but not before the wait. */
static uint64_t last_empty(struct search s, uint64_t end)
{
    uint64_t program, last = s.begin;
    const struct empty_semaphore *at = empty_of(s.c, s.object, &program);
    if (at->object == s.object && at->program == program)
        for (size_t i = 0; i < EMPTY_TIMES; i++)
            last = at->times[i] > last && at->times[i] < end ? at->times[i] : last;
    return last;
}

/*
 * The release that ended a wait for a semaphore: the oldest one since no permit was left. Where
 * there is none, it came earlier: the thread that took it recorded its end after another one had
 * found none left, or that one its begin after a post that followed its attempt.
 */
static struct release *find_post(struct search s)
{
    struct search since = s;
    struct release *r = NULL;
    for (since.begin = s.end; !r && since.begin > s.begin;) {
        since.begin = last_empty(s, since.begin);
        r = find_left_over(since);
    }
    return r;
}

/* Returns the oldest release since the wait began: readiness wakes all threads that poll for it. */
static struct release *find_first(struct search s)
{
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n <= s.number && n != 0; tries++, n++) {
        struct release *r = release_at(s.c, s.object, n);
        if (is_within(r, s) && !r->closes)
            return r;
    }
    return NULL;
}

static struct release *find_last(struct search s)
{
    for (uint32_t back = 0; back < MAX_TRIES && s.number > back; back++) {
        struct release *r = release_at(s.c, s.object, s.number - back);
        if (!r || r->time < s.begin)
            break;
        if (is_within(r, s))
            return r;
    }
    return NULL;
}

/* Returns the arrival that opened a barrier. */
static struct release *find_opening(struct search s)
{
    struct release *last = NULL;
    uint32_t n = first_since(s);
    for (int tries = 0; tries < MAX_TRIES && n <= s.number && n != 0; tries++, n++) {
        struct release *r = release_at(s.c, s.object, n);
        if (!is_within(r, s))
            continue;
        if (r->taken)
            return r;
        if (last && last->serial == r->serial)
            return last;
        last = r;
    }
    return n > s.number ? last : find_last(s);
}

/* Returns the last release by a writer. A writer that stopped waiting has none: then the last by a
 * reader. */
static struct release *find_writer(struct search s)
{
    struct release *last = find_last(s), *r = last;
    while (r && r->by_reader) {
        s.number = r->number - 1;
        r = find_last(s);
    }
    return r ? r : last;
}

/*
 * For an object of several processes: a write, or else the last close, which was the end of the
 * data if no other process still had that end.
 */
static struct release *find_shared(struct search s, uint8_t wait)
{
    struct release *r = wait == SHM_POLL ? find_first(s) : find_left_over(s);
    if (r)
        return r;
    r = find_last(s);
    return r && r->closes ? r : NULL;
}

/* Returns the release that ended a wait of this kind; NULL: not known. */
static struct release *find_release(struct search s, uint8_t wait)
{
    if (shm_is_shared_end(s.object))
        return find_shared(s, wait);
    if (is_exclusive(wait))
        return find_last(s);
    if (wait == SHM_BARRIER)
        return find_opening(s);
    if (wait == SHM_RDLOCK)
        return find_writer(s);
    if (wait == SHM_SEMAPHORE)
        return find_post(s);
    return wait == SHM_POLL ? find_first(s) : find_left_over(s);
}

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
    set_taken(release);
    set_waker(c, release->serial, release->stack, serial, wake);
    if (release->written)
        return;
    set_release_time(c, release->time, serial, wake);
    /* A thread that wakes itself does so in a signal handler. */
    push_woken(c, &release->woken, serial, wait_number);
}

/* MARK: Matching */

/* Makes the end of `target` end the wait. */
static void add_joiner(struct collect *c, struct thread *target, const struct ended_wait *wait)
{
    if (!target || target->g.state == G_DEAD || target->serial == wait->serial)
        return;
    push_woken(c, &target->joiners, wait->serial, wait->number);
    set_waker(c, target->serial, 0, wait->serial, wait->op);
}

/* MARK: Children */

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

/*
 * A file lock: the last release of a lock that excluded this one; or the end of a process that had
 * left one. If both exist, it is not known which was last.
 */
static void match_file_lock(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct collect *holder = child_of(c->trace, wait);
    struct search s = search_for(c, r);
    struct release *found = NULL;
    for (uint32_t back = 0; back < MAX_TRIES && r->release > back && !found; back++) {
        struct release *at = release_at(c, r->object, r->release - back);
        if (!at || at->time < r->time)
            break;
        if (is_within(at, s) && shm_locked_conflict(at->part, r->object2))
            found = at;
    }
    if (!r->release2 && found)
        add_woken(c, found, wait->serial, wait->number, wait->op);
    else if (!found && holder)
        match_child(holder, wait);
}

/* Whether a sent signal can have ended a wait of the thread. */
static bool ends_wait(const struct release *sent, uint64_t signals, const struct thread *thread)
{
    unsigned number = (unsigned)(sent->part >> 56);
    uint64_t to = sent->part & UINT64_MAX >> 8;
    if (number == 0 || number > 64 || !(signals & shm_signal_bit(number)))
        return false;
    if (to == 0)
        return signals & SHM_SIGNALS_OF_PROCESS;
    return to & SHM_SIGNAL_TID ? (to ^ SHM_SIGNAL_TID) == thread->tid : to == thread->handle;
}

/* Returns the first signal to the object since the wait began that can have ended it. A signal that
 * was taken cannot wake another thread. */
static struct release *find_signal(struct collect *c, const struct ended_wait *wait,
                                   uint64_t object, uint32_t number)
{
    const struct shm_record *r = &wait->record;
    const struct thread *thread = thread_of(c, wait->serial);
    struct search s = {c, object, number, r->time, r->end};
    uint32_t n = first_since(s);
    for (int tries = 0; thread && tries < MAX_TRIES && n <= number && n != 0; tries++, n++) {
        struct release *sent = release_at(c, object, n);
        if (is_within(sent, s) && (r->wait == SHM_POLL || !sent->taken || object != r->object) &&
            ends_wait(sent, r->object2, thread))
            return sent;
    }
    return NULL;
}

/* A signal to the process, or else to its group, where each process has its own copy. Other
 * namespaces have other groups. */
static void match_signal(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    struct release *sent = find_signal(c, wait, r->object, r->release);
    struct collect *child;
    if (!sent && r->release2 && !c->options.process.nested)
        sent = find_signal(c, wait, shm_group_signals(r->generation), r->release2);
    if (sent)
        add_woken(c, sent, wait->serial, wait->number, wait->op);
    else if (is_by_child(r) && (child = ended_child(c->trace, c, r)) != NULL)
        match_child(child, wait);
}

/* A call that did not return: if the thread was cancelled in the meantime, that ended the call. */
static void match_left(struct collect *c, const struct ended_wait *wait)
{
    const struct shm_record *r = &wait->record;
    const struct thread *thread = thread_of(c, wait->serial);
    struct release *release = NULL;
    if (thread && thread->handle && r->release)
        release = find_last((struct search){c, thread->handle, r->release, r->time, r->end});
    /* The record of a wait for a condition variable has two ops: see take_waited. */
    if (release)
        add_woken(c, release, wait->serial, wait->number, wait->op + (r->wait == SHM_COND));
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
        signal = find_release(search_for(c, r), SHM_COND);
    if (signal) {
        add_woken(c, signal, wait->serial, wait->number, wait->op + 1);
        over = signal->time;
    }
    mutex = over ? find_release((struct search){c, r->object2, r->release2, over + 1, r->end},
                                SHM_MUTEX)
                 : NULL;
    op = thread ? op_at(thread, wait->op) : NULL;
    if (!mutex || (signal && signal->written) || !op || op->kind != OP_NOTHING)
        return;
    op->kind = OP_BLOCK;
    op->time = over + 1;
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
    struct release *release = find_last(search_for(c, r));
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
        find_last((struct search){c, r->object2, r->release2, r->time, r->end});
    if (release)
        add_woken(c, release, wait->serial, wait->number, wait->op);
}

/* A permit that was taken without a wait. */
static void match_taken(struct collect *c, const struct shm_record *r)
{
    struct release *release = find_post(search_for(c, r));
    if (release)
        set_taken(release);
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
        release = find_release(search_for(c, r), r->wait);
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
    if (a->object != b->object)
        return a->object < b->object ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->release < b->release ? -1 : a->release > b->release;
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
 * Whether the wait was ended by the end of a process that has not been noticed yet. A process gives
 * its locks of files back before it has ended: it may be seen alive after that.
 */
static bool is_ending(const struct trace *t, const struct ended_wait *wait, uint64_t time,
                      uint64_t late)
{
    const struct shm_record *r = &wait->record;
    const struct collect *process;
    if (time == UINT64_MAX || time - r->end >= late)
        return false;
    process = child_of(t, wait);
    if (process && !process->ended && (r->wait == SHM_FILE_LOCK || may_have_ended(process, r)))
        return true;
    return is_by_child(r) && has_ending_child(t, wait);
}

/*
 * All waits that ended before `time` have been read, and so have their releases, which are recorded
 * before they happen.
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
        const struct shm_record *r = &releases->ended[i].record;
        uint64_t known =
            time != UINT64_MAX && shm_is_openmp_lock(r->wait) ? r->end + grace : r->end;
        if (known < time && !is_ending(t, &releases->ended[i], time, late)) {
            struct ended_wait wait = releases->ended[i];
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
    if (!GROW(r->ended, r->ended_room, r->ended_count + 1)) {
        collect_no_memory(c);
        return;
    }
    r->ended[r->ended_count++] = *wait;
}

void releases_dispose(struct releases *r)
{
    for (struct release *release = r->oldest; release; release = release->newer)
        woken_free(release->woken);
    slab_free(&r->slab);
    objects_free(&r->blocks);
    free(r->ended);
}
