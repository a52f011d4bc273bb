/*
 * Makes ops of records: see feed.h.
 *
 * A thread's life is a small state machine (enum life): its start comes once and first, and nothing
 * follows its exit. A record that does not fit is counted as damage and left out. The start may be
 * missing: there may have been no room for that record.
 */
#include "collect/feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/present_memory.h"
#include "collect/parts.h"

/* How long to wait for a record that is being written: a thread stopped at that point must not
 * delay all others. */
#define MAX_WRITING_NS 2000000000

/* A processor reads its clock at most this long before its earlier stores are visible to others. */
#define STORED_LATE_NS 10000

/* MARK: Records */

static struct op *add_block(struct collect *c, struct thread *thread, uint64_t time, uint8_t wait,
                            uint64_t object, uint64_t held_pc, uint32_t stack, uint32_t detail,
                            uint32_t generation, uint64_t pc)
{
    struct op *op = op_insert(c, thread, OP_BLOCK, time);
    if (!op)
        return NULL;
    op->wait = wait;
    op->object = wait == SHM_SLEEP ? 0 : object;
    op->object2 = held_pc & ~SHM_FIRST_READER;
    op->no_holder = held_pc & SHM_FIRST_READER;
    op->stack = stack;
    if (wait == SHM_MUTEX && detail) {
        open_name_stream(c, object, detail, generation);
        detail = 0;
    }
    /* -1 is no descriptor, nor are the numbers that stdio gives to streams without one. */
    op->detail = detail <= INT32_MAX && wait != SHM_SLEEP ? detail : 0;
    op->name = shm_is_numbered(object) ? numbered_name(c, object)
                                       : descriptors_name(c, op->detail, generation);
    if (thread->feed.name && thread->feed.name_time == time)
        op->name = thread->feed.name;
    op->pc = pc;
    open_replace(thread, time, op);
    op->wait_number = ++thread->feed.wait_numbers;
    /* A wait for a System V semaphore set may be for several permits, of which one is left. */
    if (wait == SHM_SEMAPHORE && !shm_is_numbered(object))
        releases_empty(c, object, time);
    if (!thread->first_stack)
        thread->first_stack = op->stack;
    return op;
}

/* Returns the name that the last record gave to a wait for several descriptors; NULL: it was for
 * one. */
static const char *name_of_several(struct collect *c, struct thread *thread,
                                   const struct shm_record *r)
{
    const struct shm_record *polled = &thread->feed.polled;
    return polled->kind == SHM_POLLED && polled->time == r->time ? polled_name(c, polled) : NULL;
}

/* Completes the op of an open call with what only the record of its end has. */
static struct op *complete_block(struct collect *c, struct thread *thread,
                                 const struct shm_record *r)
{
    for (size_t i = thread->ops.count; i-- > 0;) {
        struct op *op = op_in_ring(thread, i);
        if (op->kind != OP_BLOCK || op->wait_number != thread->feed.wait_numbers)
            continue;
        op->stack = r->stack;
        op->object = r->wait == SHM_SLEEP ? 0 : r->object;
        if (!op->name && shm_is_numbered(r->object))
            op->name = numbered_name(c, r->object);
        return op;
    }
    return NULL;
}

/* Whether a signal has interrupted the call of a record. */
static bool is_interrupted(const struct thread *thread, const struct shm_record *r)
{
    const struct shm_record *by = &thread->feed.interrupted;
    return by->kind == SHM_INTERRUPTED && by->time == r->time;
}

/* Returns the record whose fields select the releases that may have ended a wait. */
static struct shm_record ended_by(const struct thread *thread, const struct shm_record *r)
{
    const struct shm_record *by = &thread->feed.interrupted;
    struct shm_record ended = *r;
    if (r->wait == SHM_SLEEP)
        ended.object = 0;
    /* A wait for several futexes is recorded with the first one, but the release of any ends it. */
    if (r->wait == SHM_FUTEX && r->object2)
        ended.object = r->object2;
    if (is_interrupted(thread, r)) {
        ended.object = by->object;
        ended.object2 = by->object2;
        ended.release = by->release;
        ended.release2 = by->release2;
        ended.generation = by->generation;
    }
    return ended;
}

/* How much later the kernel may fire the timers of ordinary threads (PR_SET_TIMERSLACK); for
 * select, poll and epoll_wait, a fraction of their length, and at most this. */
#define SLACK_NS       50000
#define POLL_SLACK     1000
#define POLL_SLACK_MAX 100000000

static uint64_t slack_ns(uint8_t wait, uint64_t length_ns)
{
    uint64_t of_poll = length_ns / POLL_SLACK;
    if (wait != SHM_POLL || of_poll < SLACK_NS)
        return SLACK_NS;
    return of_poll < POLL_SLACK_MAX ? of_poll : POLL_SLACK_MAX;
}

/*
 * A thread is ready from the end of its sleep or time limit, not only once it is on a CPU. Returns
 * that time for a wait of `us`; 0: not known.
 */
static uint64_t length_over(const struct collect *c, uint64_t begin, uint8_t wait, uint64_t us)
{
    if (us == 0 || us > UINT32_MAX)
        return 0;
    return begin + ticks_of_ns(c->ticks, us * 1000 + slack_ns(wait, us * 1000));
}

/* The same for a limit by a clock (shm_limit). */
static uint64_t clock_over(const struct collect *c, uint64_t limit)
{
    int64_t ns = (int64_t)((limit & UINT64_MAX >> 2) % (INT64_MAX / 1000)) * 1000;
    if (limit >> 62 == SHM_LIMIT_REALTIME)
        ns -= (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
    return ticks_from_ns(c->ticks, ns + SLACK_NS);
}

static uint64_t limit_over(const struct collect *c, const struct shm_record *r)
{
    uint64_t limit = r->release;
    if (r->wait == SHM_SLEEP)
        return r->object >> 63 ? clock_over(c, r->object)
                               : length_over(c, r->time, r->wait, r->detail);
    if (!(r->flags & SHM_EXPIRED))
        return 0;
    if (!r->detail)
        limit |= (uint64_t)r->generation << 32;
    return limit >> 63 ? clock_over(c, limit) : length_over(c, r->time, r->wait, limit);
}

/* Everything before the trace's watermark may have been written: no earlier time is used. */
static void be_ready(struct collect *c, struct thread *thread, uint64_t over)
{
    oncpu_is_ready(c, thread, over < c->trace->watermark ? c->trace->watermark : over);
}

/*
 * Makes the thread ready from the end of its sleep or time limit, unless the kernel's wake-ups are
 * read, which show it. Returns that time; 0: not known.
 */
static uint64_t end_timed(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    uint64_t over = limit_over(c, r);
    bool is_noted = r->time == thread->feed.sleep_time && !thread->feed.sleep_over;
    if (over <= r->time || over >= r->end)
        return 0;
    if (!is_noted && c->trace->watermark < r->end && !c->trace->options.wakings)
        be_ready(c, thread, over);
    return over;
}

static void take_waited(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct ended_wait ended = {.record = ended_by(thread, r)};
    const char *several = name_of_several(c, thread, r);
    struct op *op;
    ended.expired = end_timed(c, thread, r);
    if (r->time != thread->feed.open_time)
        op = add_block(c, thread, r->time, r->wait, r->object, r->wait == SHM_COND ? 0 : r->object2,
                       r->stack, r->detail, r->generation, 0);
    else
        op = complete_block(c, thread, r);
    if (op && several)
        op->name = several;
    thread->feed.open_time = 0;
    ended.serial = thread->serial;
    ended.number = thread->feed.wait_numbers;
    ended.op = op_number(thread);
    if (r->wait == SHM_POLL && is_interrupted(thread, r)) {
        ended.polled = r->object;
        ended.polled_release = r->release;
    }
    releases_wait_ended(c, &ended);
    if (c->trace->failed)
        return;
    /* Reserves an op for the wait for the mutex, in case releases_match finds one. */
    if (r->wait == SHM_COND && (op = op_add(c, thread, OP_NOTHING, r->end)) != NULL) {
        op->object = r->object2;
        op->stack = r->stack;
        op->wait = SHM_MUTEX;
        op->wait_number = ++thread->feed.wait_numbers;
    }
    op = op_add(c, thread, OP_WAKE, r->end);
    if (op) {
        op->flags = r->flags;
        op->on_time = r->wait == SHM_SLEEP && r->object >> 63;
        op->unmatched = true;
    }
    thread->feed.waited_until = r->end;
}

/* MARK: Other records */

/* The post is not what ended a wait. */
static void take_taken(struct collect *c, const struct thread *thread, const struct shm_record *r)
{
    struct ended_wait taken = {.record = *r, .serial = thread->serial};
    taken.record.wait = SHM_SEMAPHORE;
    taken.record.time = 0;
    taken.record.end = r->time;
    releases_wait_ended(c, &taken);
}

static void take_released(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_RELEASE, r->time);
    if (!op)
        return;
    op->object = r->object;
    op->stack = r->stack;
    op->wait = r->wait;
    op->object2 = r->end;
    op->pc = r->wait == SHM_FILE_LOCK ? 0 : r->object2;
    op->flags = r->flags;
    op->detail = r->release2;
    op->release = release_add(c, thread, r);
    /* Must happen before the wait that the release ended is written, possibly by a process that
     * does not know where the lock was taken. */
    if (shm_is_shared(r->object) && shm_is_lock(r->wait) && r->object2)
        lock_names_shared(c, r->object, r->object2, r->stack, r->end ? r->end : r->time);
}

/*
 * Whether the thread is a signal handler, with a slot of its own, that ran before the first
 * instruction of another thread. Its events go to another M: the kernel's records of the TID belong
 * to the thread that its creator announced.
 */
static bool is_handler_of(struct collect *c, struct thread *thread)
{
    struct thread *other = thread_with_tid(c, thread->tid);
    if (!other || other == thread || other->handle != thread->handle)
        return false;
    if (!thread->routine && other->routine && other->g.state != G_DEAD)
        return true;
    if (thread->routine && !other->routine && other->g.state == G_NONE)
        other->tid = 0;
    return false;
}

/* Whether a thread was there before the recording, and has made no recorded call yet. */
static bool is_only_announced(const struct thread *thread)
{
    return thread->handle == 0 && thread->feed.life == LIFE_STARTED;
}

static bool has_ended(const struct collect *c, const struct thread *thread)
{
    return c->options.process.pid != 0 && thread->tid != 0 && thread->tid <= UINT32_MAX &&
           !process_has_thread(&c->options.process, (uint32_t)thread->tid);
}

static void end_unnoticed(struct collect *c, struct thread *thread, uint64_t time)
{
    (void)op_insert(c, thread, OP_EXIT, time);
    thread->feed.life = LIFE_EXITED;
}

static void take_started(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_START, r->time);
    if (!op)
        return;
    thread->handle = r->object;
    thread->tid = thread_tid(c, area_thread(c->area, thread->slot).tid);
    if (r->object2)
        thread->routine = r->object2;
    thread->started = r->time;
    if (is_handler_of(c, thread)) {
        thread->tid = 0;
        return;
    }
    thread_identify(c, thread);
    /* Slots are reused; the first thread in this one has the slot's number. */
    if (c->trace->options.switches && r->object == 0 && area_waited_before(c->area, thread->slot))
        oncpu_begins_off(c, thread, r->time);
    /* It may have ended since the recorder listed the threads. */
    if (is_only_announced(thread) && has_ended(c, thread))
        end_unnoticed(c, thread, r->time);
}

static void take_created(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_CREATE, r->time);
    struct given *given = &thread->feed.given;
    given->vtable = r->end;
    if (op) {
        op->object = thread_serial(c, r->object);
        op->object2 = r->object2;
        op->stack = r->stack;
        /* If there is no memory for it, the thread is not named after what it runs. */
        op->given = given->vtable ? malloc(sizeof *given) : NULL;
        if (op->given)
            *op->given = *given;
    }
    *given = (struct given){0};
}

/* MARK: Names of threads */

/* A name is set at once, not by an op: one that is given soon after the start then names the
 * goroutine from its first event. */
static void take_name(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct feed *feed = &c->feed;
    char *name = thread->name;
    if (r->end) {
        if (feed->named_count == sizeof feed->named / sizeof *feed->named)
            return;
        feed->named[feed->named_count] = (struct named_thread){.handle = r->end, .time = r->time};
        name = feed->named[feed->named_count++].name;
    }
    memcpy(name, &r->object, sizeof r->object);
    memcpy(name + sizeof r->object, &r->object2, sizeof r->object2);
    name[sizeof thread->name - 1] = '\0';
}

static bool ended_before(const struct thread *thread, uint64_t time)
{
    return thread->feed.life == LIFE_EXITED && thread->ops.last_time < time;
}

/* Returns the thread that was named; NULL: it has not been read. It may be named before it begins
 * to run, and the C library reuses a thread's handle. */
static struct thread *thread_of_name(const struct collect *c, const struct named_thread *named)
{
    struct thread *thread = idmap_find(&c->threads.by_handle, named->handle);
    while (thread && thread->started > named->time && thread->older &&
           !ended_before(thread->older, named->time))
        thread = thread->older;
    return thread && !ended_before(thread, named->time) ? thread : NULL;
}

/* Names the threads that others have named, once all threads have been read. */
static void name_threads(struct collect *c)
{
    struct feed *feed = &c->feed;
    size_t kept = 0;
    for (size_t i = 0; i < feed->named_count; i++) {
        const struct named_thread *named = &feed->named[i];
        struct thread *thread = thread_of_name(c, named);
        if (thread)
            memcpy(thread->name, named->name, sizeof thread->name);
        else if (named->time >= c->watermark)
            feed->named[kept++] = *named;
    }
    feed->named_count = kept;
}

/* Gathers the pieces of a log's message. */
static void take_text(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    if (thread->feed.text_size + r->flags > SHM_TEXT_MAX) {
        collect_damage(c);
        return;
    }
    if (!thread->feed.text && !(thread->feed.text = malloc(SHM_TEXT_MAX + 1))) {
        collect_no_memory(c);
        return;
    }
    memcpy(thread->feed.text + thread->feed.text_size, &r->end, r->flags);
    thread->feed.text_size += r->flags;
}

static void take_annotation(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_ANNOTATION, r->time);
    if (!op)
        return;
    op->record = r->kind;
    op->wait = r->wait;
    op->object = r->object;
    op->object2 = r->object2;
    op->text = r->release;
    op->flags = r->flags;
    op->stack = r->stack;
    if (r->kind == SHM_LOGGED && thread->feed.text) {
        thread->feed.text[thread->feed.text_size] = '\0';
        op->message = thread->feed.text;
        thread->feed.text = NULL;
        thread->feed.text_size = 0;
    }
}

/* Whether a record of this kind may come at this point of its thread's life. */
static bool fits_life(struct thread *thread, uint8_t kind)
{
    if (thread->feed.life == LIFE_EXITED ||
        (kind == SHM_STARTED && thread->feed.life != LIFE_ANNOUNCED))
        return false;
    thread->feed.life = kind == SHM_EXITED ? LIFE_EXITED : LIFE_STARTED;
    return true;
}

static void take_record(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op;
    if (!fits_life(thread, r->kind)) {
        collect_damage(c);
        return;
    }
    switch (r->kind) {
    case SHM_WAITED:
        take_waited(c, thread, r);
        break;
    case SHM_RELEASED:
        take_released(c, thread, r);
        break;
    case SHM_STARTED:
        take_started(c, thread, r);
        break;
    case SHM_IDENTIFIED:
        thread->handle = r->object;
        thread_identify(c, thread);
        break;
    case SHM_NAMED:
        take_name(c, thread, r);
        break;
    case SHM_CREATED:
        take_created(c, thread, r);
        break;
    case SHM_FORKED:
        op = op_add(c, thread, OP_FORK, r->time);
        trace_forked(c->trace, r->object, collect_pid(c));
        if (op) {
            op->object = r->object;
            op->stack = r->stack;
        }
        break;
    case SHM_EXITED:
        op = op_add(c, thread, OP_EXIT, r->time);
        if (op)
            op->stack = r->stack;
        break;
    case SHM_TAKEN:
        take_taken(c, thread, r);
        break;
    case SHM_SAMPLED:
        profile_record(c, thread, r);
        break;
    case SHM_TASK_BEGAN:
    case SHM_TASK_ENDED:
    case SHM_REGION_BEGAN:
    case SHM_REGION_ENDED:
    case SHM_LOGGED:
    case SHM_COUNTED:
        take_annotation(c, thread, r);
        break;
    case SHM_FORGOTTEN:
        op = op_add(c, thread, OP_FORGET, r->time);
        if (op)
            op->object = r->object;
        break;
    case SHM_RUNS:
        thread->feed.given.runs = r->end;
        thread->feed.given.words[0] = r->object;
        thread->feed.given.words[1] = r->object2;
        thread->feed.given.words[2] = (uint64_t)r->release2 << 32 | r->release;
        break;
    case SHM_POLLED:
        thread->feed.polled = *r;
        break;
    case SHM_INTERRUPTED:
        thread->feed.interrupted = *r;
        break;
    case SHM_HEAP:
        heap_take(c, thread, r->time, (int64_t)r->object);
        break;
    case SHM_TEXT:
        take_text(c, thread, r);
        break;
    default:
        break;
    }
}

/* MARK: Draining */

/* Assumes that the descriptor is the one that the call began with. */
static uint32_t generation_of(const struct collect *c, uint32_t detail)
{
    return detail && detail <= SHM_DESCRIPTORS ? area_generation(c->area, detail - 1) : 0;
}

/* Whether a call waits in an io_uring ring. Looks up the descriptor's name for any call. */
static bool is_ring(struct collect *c, const struct area_open *open)
{
    const char *name = open->detail <= SHM_DESCRIPTORS && open->wait != SHM_SLEEP
                           ? descriptors_name(c, open->detail, generation_of(c, open->detail))
                           : NULL;
    return name && open->wait == SHM_POLL && strcmp(name, "[io_uring]") == 0;
}

/* Returns the length of an open sleep in us; 0: not known. */
static uint32_t sleep_length(struct collect *c, const struct area_open *open)
{
    struct timespec time;
    if (open->object == 0)
        return open->detail;
    if (c->refused || c->options.process.pid == 0)
        return 0;
    if (memory_of_other(c->options.process.pid, open->object, &time, sizeof time) != sizeof time) {
        /* Not retried: a security module may log each attempt. */
        c->refused |= errno == EPERM;
        return 0;
    }
    if (time.tv_sec < 0 || time.tv_sec >= UINT32_MAX / 1000000 || time.tv_nsec < 0 ||
        time.tv_nsec >= 1000000000)
        return 0;
    return (uint32_t)(time.tv_sec * 1000000 + (time.tv_nsec + 999) / 1000);
}

/* A thread still in a sleep that is over lacks a CPU, perhaps for longer than the model waits. */
static void watch_sleep(struct collect *c, struct thread *thread, const struct area_open *open)
{
    struct thread_feed *feed = &thread->feed;
    if (feed->sleep_time != open->time) {
        feed->sleep_time = open->time;
        feed->sleep_over = length_over(c, open->time, open->wait, sleep_length(c, open));
        if (!feed->sleep_over)
            feed->sleep_over = UINT64_MAX;
    }
    if (feed->sleep_over != 0 && feed->sleep_over < ticks_now(c->ticks)) {
        be_ready(c, thread, feed->sleep_over);
        feed->sleep_over = 0;
    }
}

#define LOOK_NS 100000000

/*
 * A thread that was there before the recording and makes no recorded call ends unnoticed, unless
 * the kernel reports it. It must be gone at two looks: the process may be about to end.
 */
static void look_for_end(struct collect *c, struct thread *thread)
{
    struct thread_feed *feed = &thread->feed;
    bool was_gone = feed->is_gone;
    if (!is_only_announced(thread) || thread->g.state == G_DEAD ||
        c->feed.fed_at - feed->looked_at < ticks_of_ns(c->ticks, LOOK_NS))
        return;
    feed->is_gone = has_ended(c, thread);
    if (feed->is_gone && was_gone)
        end_unnoticed(c, thread, feed->looked_at);
    feed->looked_at = c->feed.fed_at;
}

/* Takes a call that has been open for so long that it is written before it ends. */
static void take_open(struct collect *c, struct thread *thread, uint64_t before)
{
    struct area_open open;
    if (!area_open_call(c->area, thread->slot, &open))
        return;
    if (open.wait == SHM_SLEEP && !c->trace->options.wakings)
        watch_sleep(c, thread, &open);
    /* Looks the name up now, while the descriptor is still open or the process still exists. */
    if (shm_is_path(open.object) || shm_is_pollfds(open.object))
        numbered_read_open(c, thread, &open);
    else if (shm_is_numbered(open.object))
        (void)numbered_name(c, open.object);
    else if (is_ring(c, &open))
        numbered_read_open(c, thread, &open);
    open.stack = open_stack(c, thread, &open);
    open_guards(c, thread, &open);
    open_look_within(c, thread, &open);
    if (open.time >= before || open.time == thread->feed.open_time ||
        open.time < thread->feed.waited_until || thread->feed.life == LIFE_EXITED)
        return;
    (void)add_block(c, thread, open.time, open.wait, open.object, open.held_pc, open.stack,
                    open.detail, generation_of(c, open.detail), open.pc);
    thread->feed.open_time = open.time;
}

/* Returns since when a slot has counted what was not read. */
static uint64_t counts_since(const struct collect *c, const struct thread *thread)
{
    if (thread->feed.counted_at)
        return thread->feed.counted_at;
    uint64_t claimed = area_claimed_at(c->area);
    return claimed ? claimed : c->feed.fed_at;
}

/* Adds what a slot has counted since it was last read. */
static void take_counts(struct collect *c, struct thread *thread, const struct area_thread *shared)
{
    uint64_t waited = (uint64_t)(shared->short_waits - thread->feed.short_waits) * SHM_SHORT;
    uint64_t since = counts_since(c, thread);
    c->feed.holds += shared->holds - thread->feed.holds;
    /* It cannot have waited for longer than the time that has passed, perhaps in several steps. The
     * slot may have been read long after the step began. */
    thread->feed.counted_at = ticks_now(c->ticks);
    thread->feed.unwaited += thread->feed.counted_at > since ? thread->feed.counted_at - since : 0;
    if (waited > thread->feed.unwaited)
        waited = thread->feed.unwaited;
    thread->feed.unwaited -= waited;
    c->feed.short_ticks += waited;
    thread->feed.holds = shared->holds;
    thread->feed.short_waits = shared->short_waits;
}

static void thread_ended(struct collect *c, struct thread *thread, const struct area_thread *shared)
{
    c->summary.lost_records += shared->lost;
    /* The thread never started, or there was no room for its last record. */
    if (thread->feed.life != LIFE_EXITED)
        (void)op_add(c, thread, OP_EXIT, c->feed.fed_at);
    thread->feed.life = LIFE_EXITED;
    area_keep_heap(c->area, shared->heap);
    area_free_thread(c->area, thread->slot, &thread->feed.cursor);
    thread_leave_slot(c, thread);
    thread->feed.ended = true;
}

/* Returns the thread of a slot that is in use; NULL: the slot is damaged, or out of memory. */
static struct thread *thread_at(struct collect *c, uint32_t slot, const struct area_thread *shared)
{
    struct thread *thread = thread_in_slot(c, slot);
    if (thread)
        return thread;
    if (thread_serial(c, shared->serial) == 0 || thread_of(c, thread_serial(c, shared->serial))) {
        collect_damage(c);
        return NULL;
    }
    return thread_new(c, slot, shared->serial);
}

static void lower(uint64_t *time, uint64_t to)
{
    if (to < *time)
        *time = to;
}

/* Whatever a thread stored before this time is visible to a step that begins now. */
static uint64_t visible_at(const struct collect *c)
{
    uint64_t late = ticks_of_ns(c->ticks, STORED_LATE_NS);
    return c->feed.fed_at > late ? c->feed.fed_at - late : 0;
}

/*
 * A record being written may be of a wait that ended after the thread's last recorded one, and
 * after the start of the last step that found no such record.
 */
static void note_writing(struct collect *c, struct thread *thread, bool writing, uint64_t *limit)
{
    if (writing) {
        lower(limit, thread->ops.last_time);
        lower(&c->feed.ended_until, thread->feed.written_at > thread->ops.last_time
                                        ? thread->feed.written_at
                                        : thread->ops.last_time);
    } else {
        thread->feed.written_at = visible_at(c);
    }
}

/*
 * Takes the records of a slot; lowers *limit and `ended_until` to before any record that is being
 * written or has not been read.
 */
static void feed_slot(struct collect *c, uint32_t slot, uint64_t delayed, bool last,
                      uint64_t *limit)
{
    /* Read before the records: if the thread has ended, all its records are there. */
    const struct area_thread shared = area_thread(c->area, slot);
    struct thread *thread;
    struct shm_record record;
    if (shared.state == SHM_FREE || !(thread = thread_at(c, slot, &shared)))
        return;
    note_writing(c, thread, shared.state == SHM_LIVE && !last && shared.writing, limit);
    for (; !c->trace->failed && area_next(c->area, slot, &thread->feed.cursor, &record);
         c->feed.records++)
        take_record(c, thread, &record);
    take_counts(c, thread, &shared);
    heap_look(c, thread, c->feed.fed_at, shared.heap);
    if (!last && area_is_exhausted(c->area)) {
        lower(limit, thread->ops.last_time);
        lower(&c->feed.ended_until, thread->ops.last_time);
    } else if (shared.state == SHM_ENDED) {
        thread_ended(c, thread, &shared);
    } else {
        if (!last)
            look_for_end(c, thread);
        take_open(c, thread, last ? UINT64_MAX : delayed);
    }
}

/* Returns the time, at most `limit`, up to which everything is known. No thread delays the others
 * for longer than MAX_WRITING_NS. */
static uint64_t least_limit(const struct collect *c, uint64_t limit, uint64_t now)
{
    uint64_t longest = ticks_of_ns(c->ticks, MAX_WRITING_NS);
    uint64_t least = now > longest ? now - longest : 0;
    return limit > least ? limit : least;
}

/* MARK: Rates */

/*
 * Reading the clock twice for each lock costs the program some 20 ns; waking a thread for the
 * coarse clock a thousand times a second costs from 5 ms of CPU time a second to 30 ms on a virtual
 * machine: as much as 250,000 locks or more.
 */
#define MANY_LOCKS 500000 /* per second: the coarse clock is turned on; */
#define FEW_LOCKS  200000 /* ... below this it is turned off */

/* Computes the rates since the last step, when the totals were `holds` and `records`. */
static void compute_rates(struct collect *c, uint64_t holds, uint64_t records)
{
    struct feed *feed = &c->feed;
    uint64_t now = ticks_now(c->ticks);
    int64_t ns = ticks_to_span(c->ticks, now - feed->rates_at);
    double rate = ns > 0 ? (double)(feed->holds - holds) * 1e9 / (double)ns : 0;
    feed->rates.records = feed->records - records;
    feed->rates.many_locks = rate > (feed->rates.many_locks ? FEW_LOCKS : MANY_LOCKS);
    feed->rates_at = now;
}

struct collect_rates collect_rates(const struct collect *c)
{
    struct collect_rates rates = {0};
    if (c->ended)
        return rates;
    rates = c->feed.rates;
    rates.sleepers = c->open_stacks.looks > 0;
    return rates;
}

int64_t feed_short_ns(const struct collect *c)
{
    return ticks_to_span(c->ticks, c->feed.short_ticks);
}

/* MARK: A step */

/* Looks again at the threads that were read before it turned out that one waits for a lock without
 * a known holder. */
static void look_for_guards(struct collect *c, uint32_t threads)
{
    for (uint32_t slot = 1; slot < threads && !c->trace->failed; slot++) {
        struct thread *thread = thread_in_slot(c, slot);
        struct area_open open;
        if (!thread || !area_open_call(c->area, slot, &open))
            continue;
        open.stack = open_stack(c, thread, &open);
        open_guards(c, thread, &open);
    }
}

void feed_all(struct collect *c, bool last)
{
    uint64_t delay = ticks_of_ns(c->ticks, COLLECT_DELAY_NS), now = ticks_now(c->ticks);
    /* Relative to the last step, however late this one is: waits that ended since are matched in
     * the next step. */
    uint64_t limit = c->feed.fed_at > delay ? c->feed.fed_at - delay : 0;
    uint32_t threads = area_threads(c->area);
    uint64_t holds = c->feed.holds, records = c->feed.records;
    bool guards_mattered = c->open_stacks.guards_matter;
    c->feed.fed_at = now;
    c->feed.ended_until = visible_at(c);
    open_stacks_step(c);
    area_begin_step(c->area, last);
    /*
     * `writing` and open calls are read after the clock: whatever begins now is later than the
     * limit.
     */
    for (uint32_t slot = 1; slot < threads && !c->trace->failed; slot++)
        feed_slot(c, slot, now - delay, last, &limit);
    if (c->open_stacks.guards_matter && !guards_mattered)
        look_for_guards(c, threads);
    name_threads(c);
    heap_look_at_rest(c);
    heap_sort(c);
    limit = least_limit(c, limit, now);
    c->feed.ended_until = least_limit(c, c->feed.ended_until, now);
    c->watermark = last ? UINT64_MAX : limit > c->watermark ? limit : c->watermark;
    if (!last)
        compute_rates(c, holds, records);
}
