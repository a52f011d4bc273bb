/* See describe.h. The layouts of pthread_mutex_t and others are those of glibc 2.28 to 2.41. */
#include "stuck/describe.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/small_file.h"
#include "collect/calls.h"
#include "collect/process.h"
#include "stuck/condition.h"
#include "stuck/descriptors.h"
#include "stuck/recorded.h"
#include "words/place.h"
#include "words/runtimes.h"

/* MARK: Tables */

enum where { WHERE_NONE, WHERE_MUTEX, WHERE_READ, WHERE_WRITE, WHERE_JOIN, WHERE_OBJECT };

struct caller {
    const char *function;
    enum wire_wait kind;
    enum where where;
};

static const struct caller callers[] = {
#define CALLER(function, kind, where) {function, WIRE_WAIT_##kind, WHERE_##where},
#include "stuck/waits.def"
};

/* Returns the name without the prefixes of the C library's own names. */
static const char *plain_name(const char *name)
{
    name += strspn(name, "_");
    if (strncmp(name, "GI_", 3) == 0)
        name += 3;
    return name + strspn(name, "_");
}

static const struct caller *find_caller(const struct stuck_thread *thread)
{
    for (size_t i = 0; i < thread->frame_count && i < NEAR_FRAMES; i++) {
        const char *name = plain_name(thread->frames[i].function);
        size_t length = strcspn(name, ".");
        for (size_t j = 0; j < sizeof callers / sizeof *callers; j++) {
            if (strlen(callers[j].function) == length &&
                memcmp(callers[j].function, name, length) == 0)
                return &callers[j];
        }
    }
    return NULL;
}

/* MARK: Futexes */

static void name_object(struct stuck_thread *thread, const struct describe *with, uint64_t at)
{
    if (!with->name(with->context, at, thread->object, sizeof thread->object))
        (void)snprintf(thread->object, sizeof thread->object, "0x%" PRIx64, at);
}

static uint32_t word_at(const struct stuck_thread *thread, uint64_t at)
{
    uint32_t word = 0;
    (void)held_copy(&thread->held->object, at, &word, sizeof word);
    return word;
}

static bool is_priority_lock(const struct stuck_thread *thread)
{
    int operation = (int)thread->held->arguments[1] & FUTEX_CMD_MASK;
    return operation == FUTEX_LOCK_PI || operation == 13 /* FUTEX_LOCK_PI2 */;
}

/* `at` is the pthread_mutex_t: { lock, count, owner, ... }. */
static void describe_mutex(struct stuck_thread *thread, const struct describe *with, uint64_t at)
{
    uint32_t owner =
        is_priority_lock(thread) ? word_at(thread, at) & FUTEX_TID_MASK : word_at(thread, at + 8);
    name_object(thread, with, at);
    thread->holder.tid = (pid_t)(owner & FUTEX_TID_MASK);
}

/*
 * A pthread_rwlock_t: readers, writers, futex of the phase, futex of the writers; at 24 the writer.
 * Bit 0 of the readers is set while a writer has the lock: the counted readers are then waiting.
 */
#define RWLOCK_PHASE   8
#define RWLOCK_WRITERS 12
#define RWLOCK_WRITER  24

enum { MOST_READERS = 8 };

/* Whether a thread waits for another one: of several readers, such a one is the most
 * informative. */
static bool is_in_futex(const struct held *held, uint32_t tid)
{
    for (size_t i = 0; i < held->count; i++) {
        const struct held_thread *thread = &held->threads[i];
        if (thread->tid == (pid_t)tid)
            return thread->in_call && thread->call == SYS_futex;
    }
    return false;
}

/* The lock contains only the number of its readers; a running recording knows the threads. */
static void describe_readers(struct stuck_thread *thread, const struct held *held, uint64_t lock,
                             uint32_t readers)
{
    uint32_t tids[MOST_READERS];
    size_t count = recorded_readers(held, lock, tids, MOST_READERS), best = 0;
    while (best + 1 < count && !is_in_futex(held, tids[best]))
        best++;
    if (count == 0)
        (void)snprintf(thread->note, sizeof thread->note,
                       "held by %" PRIu32 " reader%s; the lock does not record which, "
                       "'trail record' does",
                       readers, readers == 1 ? "" : "s");
    else if (readers > 1)
        (void)snprintf(thread->note, sizeof thread->note, "one of %" PRIu32 " readers", readers);
    if (count > 0)
        thread->holder.tid = (pid_t)tids[best];
}

static void describe_rwlock(struct stuck_thread *thread, const struct describe *with, uint64_t at)
{
    uint64_t lock = at - (at % 8 == 0 ? RWLOCK_PHASE : RWLOCK_WRITERS);
    uint32_t word = word_at(thread, lock), readers = word & 1 ? 0 : word >> 3;
    thread->holder.tid = (pid_t)word_at(thread, lock + RWLOCK_WRITER);
    if (!thread->holder.tid && readers > 0)
        describe_readers(thread, with->process, lock, readers);
    name_object(thread, with, lock);
}

/* Tries possible beginnings of the object: an address with a name and no offset from it. */
static void describe_object(struct stuck_thread *thread, const struct describe *with, uint64_t at)
{
    static const unsigned conditions[] = {40, 44, 32, 36}, barriers[] = {4};
    bool is_condition = thread->kind == WIRE_WAIT_CONDITION;
    const unsigned *offsets = is_condition ? conditions : barriers;
    size_t count = is_condition ? 4 : thread->kind == WIRE_WAIT_BARRIER ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        if (with->name(with->context, at - offsets[i], thread->object, sizeof thread->object) &&
            !strstr(thread->object, "+0x"))
            return;
    }
    name_object(thread, with, at);
}

/* The thread that has the mutex now need not have it when the wait ends, so it is not a holder. */
static void describe_condition(struct stuck_thread *thread, const struct describe *with,
                               uint64_t at)
{
    struct condition found;
    char mutex[96];
    if (!condition_find(thread->held, &found)) {
        describe_object(thread, with, at);
        return;
    }
    name_object(thread, with, found.at);
    if (with->name(with->context, found.mutex, mutex, sizeof mutex))
        (void)snprintf(thread->note, sizeof thread->note, "with mutex %s", mutex);
    else
        (void)snprintf(thread->note, sizeof thread->note, "with mutex 0x%" PRIx64, found.mutex);
}

/* The value that musl stores in a mutex that is taken, which has no owner if it is a plain one. */
#define MUSL_TAKEN (FUTEX_WAITERS | 16u)

/*
 * Robust and priority-inheriting locks of any library have their owner in the word (futex(2));
 * other locks may have anything there that looks like one.
 */
static void describe_word(struct stuck_thread *thread, const struct describe *with, uint64_t at)
{
    uint32_t word = word_at(thread, at);
    name_object(thread, with, at);
    if (is_priority_lock(thread) || (word & FUTEX_WAITERS && word != MUSL_TAKEN))
        thread->holder = (struct stuck_holder){.tid = (pid_t)(word & FUTEX_TID_MASK),
                                               .is_guess = !is_priority_lock(thread)};
}

static void describe_futex(struct stuck_thread *thread, const struct describe *with,
                           const struct caller *caller)
{
    uint64_t at = thread->held->arguments[0];
    if (caller)
        thread->kind = caller->kind;
    else if (is_priority_lock(thread)) /* the kernel assigns it, whatever the function is called */
        thread->kind = WIRE_WAIT_MUTEX;
    switch (caller ? caller->where : WHERE_NONE) {
    case WHERE_MUTEX:
        describe_mutex(thread, with, at);
        break;
    case WHERE_READ:
    case WHERE_WRITE:
        describe_rwlock(thread, with, at);
        break;
    case WHERE_JOIN:
        thread->holder.tid = (pid_t)thread->held->arguments[2];
        break;
    case WHERE_OBJECT:
        if (thread->kind == WIRE_WAIT_CONDITION)
            describe_condition(thread, with, at);
        else
            describe_object(thread, with, at);
        break;
    default:
        describe_word(thread, with, at);
    }
}

/* MARK: Runtimes */

trail_string stuck_frame_of(const void *context, size_t frame, trail_string *file)
{
    const struct stuck_thread *thread = context;
    const struct stuck_frame *at = &thread->frames[frame];
    *file = (trail_string){at->file, strlen(at->file)};
    return (trail_string){at->function, strlen(at->function)};
}

static void runtime_place(const struct stuck_thread *thread, char *text, size_t size)
{
    size_t frame = runtime_frames_inside(stuck_frame_of, thread, thread->frame_count);
    trail_string file;
    *text = '\0';
    if (frame == thread->frame_count)
        return;
    trail_string function = stuck_frame_of(thread, frame, &file);
    (void)place_of_frame(function, file, thread->frames[frame].line, PLACE_PARENTHESES, text, size);
}

/* Describes a wait for a futex or condition variable in terms of the language's library. */
static void describe_runtime(struct stuck_thread *thread, const struct describe *with)
{
    const struct runtime_wait *wait =
        runtime_wait_find(stuck_frame_of, thread, thread->frame_count);
    char place[PLACE_TEXT_SIZE];
    uint64_t at = thread->held->arguments[0];
    if (!wait && thread->kind == WIRE_WAIT_CONDITION)
        wait = runtime_wait_of_object(thread->object);
    if (!wait || is_priority_lock(thread))
        return;
    runtime_place(thread, place, sizeof place);
    if (wait->object >= 0 && !strstr(thread->object, "__waiter_pool_base::_S_for")) {
        char object[sizeof thread->object];
        if (thread->kind != WIRE_WAIT_CONDITION)
            name_object(thread, with, at - (uint64_t)wait->object);
        memcpy(object, thread->object, sizeof object);
        runtime_object_text(wait, object, place, thread->object, sizeof thread->object);
    } else {
        runtime_object_text(wait, NULL, place, thread->object, sizeof thread->object);
        *thread->note = '\0';
    }
    thread->kind = wire_log_kinds[wait->wait];
    thread->holder = (struct stuck_holder){0};
    if (wait->object >= 0 && wire_wait_kinds[thread->kind].traits & WIRE_WAIT_HELD)
        thread->lock = at - (uint64_t)wait->object;
}

/* MARK: Descriptors, processes */

/*
 * Adds the name of a descriptor to the object. Returns false if there is no room; names are not
 * cut.
 */
static bool add_descriptor(struct stuck_thread *thread, int fd)
{
    char text[96];
    size_t used = strlen(thread->object), room = sizeof thread->object - used;
    descriptor_text(thread->held->tid, fd, text, sizeof text);
    int n = snprintf(thread->object + used, room, "%s%s", used > 0 ? ", " : "", text);
    if (n >= 0 && (size_t)n < room)
        return true;
    thread->object[used] = '\0';
    return false;
}

static void describe_polled(struct stuck_thread *thread)
{
    const struct held_thread *held = thread->held;
    struct pollfd polled;
    bool good = true;
    for (uint64_t i = 0; good && i < held->arguments[1]; i++) {
        good = held_copy(&held->object, held->arguments[0] + i * sizeof polled, &polled,
                         sizeof polled);
        if (good && polled.fd >= 0)
            good = add_descriptor(thread, polled.fd);
    }
}

/* A set of select(2) is an array of long, with a bit for each descriptor. */
static void describe_selected(struct stuck_thread *thread)
{
    const struct held_thread *held = thread->held;
    const uint64_t bits = 8 * sizeof(unsigned long);
    uint64_t set = held->arguments[1] ? held->arguments[1] : held->arguments[2];
    unsigned long word;
    bool good = true;
    for (uint64_t i = 0; good && i < held->arguments[0]; i++) {
        good = held_copy(&held->object, set + i / bits * sizeof word, &word, sizeof word);
        if (good && (word >> i % bits & 1))
            good = add_descriptor(thread, (int)i);
    }
}

/* A lock can be released by any process that has the file open, for example a child that inherited
 * it. */
static void describe_locked(struct stuck_thread *thread, const struct describe *with, int fd)
{
    pid_t holder = descriptor_lock_holder(thread->held->tid, fd);
    char text[96], link[ENDS_LINK_SIZE];
    descriptor_text(thread->held->tid, fd, thread->object, sizeof thread->object);
    if (ends_read_link(thread->held->tid, fd, link, sizeof link))
        ends_find(with->ends, link, -1, &thread->peers);
    if (holder <= 0)
        return;
    descriptor_process(holder, text, sizeof text);
    (void)snprintf(thread->note, sizeof thread->note, "locked by process %s", text);
}

/* Fills in the process's children. */
static void find_children(const struct held *process, struct peers *children)
{
    char text[4096], *at, *end;
    *children = (struct peers){.is_all = true};
    for (size_t i = 0; i < process->count; i++) {
        if (!small_file_text(text, sizeof text, "/proc/%d/task/%d/children", process->pid,
                             process->threads[i].tid))
            continue;
        for (at = text; (void)(end = at), strtol(at, &end, 10) > 0; at = end) {
            if (children->count < ENDS_PEERS)
                children->pids[children->count++] = (pid_t)strtol(at, NULL, 10);
            else
                children->is_all = false;
        }
    }
}

/* `pid` is wait4's: -1 any child, 0 any in its process group. PIDs are those of the process's own
 * namespace. */
static void describe_child(struct stuck_thread *thread, const struct describe *with, pid_t pid)
{
    struct peers children;
    if (!with->process)
        return;
    find_children(with->process, &children);
    if (pid == -1)
        thread->peers = children;
    for (size_t i = 0; i < children.count && pid > 0; i++) {
        pid_t child = children.pids[i];
        if (with->process->is_nested ? !process_calls_itself(child, pid) : child != pid)
            continue;
        thread->peers = (struct peers){.pids = {child}, .count = 1, .is_all = true};
        descriptor_process(child, thread->object, sizeof thread->object);
        return;
    }
    if (pid > 0)
        (void)snprintf(thread->object, sizeof thread->object, "%d", pid);
}

static void describe_argument(struct stuck_thread *thread, const struct describe *with,
                              enum call_argument argument)
{
    const struct held_thread *held = thread->held;
    int first = (int)held->arguments[0];
    switch (argument) {
    case ARGUMENT_FD:
        descriptor_text(held->tid, first, thread->object, sizeof thread->object);
        descriptor_peers(with->ends, held->tid, first, thread->kind == WIRE_WAIT_WRITE,
                         &thread->peers, thread->note, sizeof thread->note);
        break;
    case ARGUMENT_LOCKED:
        describe_locked(thread, with, first);
        break;
    case ARGUMENT_CHILD:
        describe_child(thread, with, first);
        break;
    case ARGUMENT_POLLED:
        describe_polled(thread);
        break;
    case ARGUMENT_SELECTED:
        describe_selected(thread);
        break;
    case ARGUMENT_EPOLL:
        descriptor_polled(held->tid, first, thread->object, sizeof thread->object);
        break;
    case ARGUMENT_URING:
        descriptor_operations(held->tid, first, thread->object, sizeof thread->object);
        break;
    case ARGUMENT_ID:
        (void)snprintf(thread->object, sizeof thread->object, "%d", first);
        break;
    default:
        break;
    }
}

/* MARK: Threads */

static void describe_call(struct stuck_thread *thread, const struct describe *with)
{
    const struct held_thread *held = thread->held;
    const struct call *call = calls_find(held->call);
    const struct caller *caller = find_caller(thread);
    /* A call interrupted by a stop continues as this one, with the same arguments. */
    bool goes_on = held->call == SYS_restart_syscall;
    thread->state = STUCK_WAITS;
    thread->kind = call ? wire_log_kinds[call->wait] : WIRE_WAIT_KERNEL;
    if (caller && caller->where == WHERE_NONE && (goes_on || caller->kind == WIRE_WAIT_LOOKUP)) {
        thread->kind = caller->kind;
        if (caller->kind == WIRE_WAIT_POLL)
            describe_argument(thread, with, ARGUMENT_POLLED);
    } else if ((call && call->argument == ARGUMENT_FUTEX) || (goes_on && caller)) {
        describe_futex(thread, with, caller);
        if (thread->kind == WIRE_WAIT_FUTEX || thread->kind == WIRE_WAIT_CONDITION)
            describe_runtime(thread, with);
    } else if (call)
        describe_argument(thread, with, call->argument);
    else
        (void)snprintf(thread->note, sizeof thread->note, "system call %ld", held->call);
}

void describe_thread(struct stuck_thread *thread, const struct describe *with)
{
    const struct held_thread *held = thread->held;
    if (!*held->name || held->state == 'Z' || held->state == 'X')
        thread->state = STUCK_ENDED;
    else if (held->state == 'T' || held->state == 't')
        thread->state = STUCK_STOPPED;
    else if (held->in_call && held->state != 'R')
        describe_call(thread, with);
    else if (held->is_copied || held->state == 'R')
        thread->state = STUCK_RUNS;
    else
        thread->state = STUCK_UNKNOWN;
}
