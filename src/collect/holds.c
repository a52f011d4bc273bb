/* Logs the locks that threads hold: see holds.h. */
#include "collect/holds.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/small_file.h"
#include "collect/parts.h"
#include "shm/mapping.h"
#include "wire/waits.h"

/* A thread's further locks are left out: a log for each would fill the trace. */
enum { MOST_HOLDS = 256 };

/* Lock owners read per step. */
enum { MOST_OWNERS = 64 };

/* MARK: Owners */

/* Returns the owner that glibc stores in a mutex: a TID in the process's own PID namespace; 0: it is
 * free. */
static uint32_t owner_in(const pthread_mutex_t *mutex)
{
    return mutex->__data.__lock ? (uint32_t)mutex->__data.__owner : 0;
}

/* Returns the owner of the lock for which a thread waits, or the writer, likewise; 0: not known. */
static uint32_t owner_of(struct collect *c, const struct thread *thread,
                         const struct area_open *open)
{
    pthread_mutex_t mutex;
    pthread_rwlock_t lock;
    if (open->wait == SHM_MUTEX)
        return open_copy(c, thread, open, open->object, &mutex, sizeof mutex) == sizeof mutex
                   ? owner_in(&mutex)
                   : 0;
    return open_copy(c, thread, open, open->object, &lock, sizeof lock) == sizeof lock
               ? (uint32_t)lock.__data.__cur_writer
               : 0;
}

static bool is_in(const struct area_hold *holds, size_t count, uint64_t object)
{
    for (size_t i = 0; i < count; i++) {
        if (holds[i].object == object)
            return true;
    }
    return false;
}

/* Whether a thread waits for a lock of this process for which no hold is known. */
static bool lacks_holder(struct collect *c, const struct area_open *open,
                         const struct area_hold *holds, size_t count)
{
    return (open->wait == SHM_MUTEX || open->wait == SHM_RDLOCK || open->wait == SHM_WRLOCK) &&
           open->object && open->object >> 60 != 0xf && open_is_long(c, open) &&
           !is_in(holds, count, open->object);
}

/*
 * Returns the thread that holds the lock for which another waits; NULL: not known. What was read
 * during the same wait remains valid after the process has ended, perhaps because it was killed.
 */
static const struct thread *find_owner(struct collect *c, struct thread *thread,
                                       const struct area_open *open)
{
    uint32_t tid = owner_of(c, thread, open);
    const struct thread *owner = tid ? thread_with_tid(c, thread_tid(c, tid)) : NULL;
    if (owner) {
        thread->feed.owner_time = open->time;
        thread->feed.owner = owner->serial;
    }
    return thread->feed.owner_time == open->time ? thread_of(c, thread->feed.owner) : NULL;
}

/* Appends the owner of the C library's own lock for which a thread waits; `open`: its open call.
 * Returns the new number of holds. */
static size_t add_owner_within(const struct collect *c, const struct thread *thread,
                               const struct area_open *open, struct area_hold *holds, size_t count)
{
    const struct unwrapped *wait = open_wait_now(thread, open);
    if (wait && wait->owner && !is_in(holds, count, wait->object))
        holds[count++] = (struct area_hold){.object = wait->object,
                                            .serial = (uint32_t)(wait->owner - c->threads.base),
                                            .wait = SHM_MUTEX,
                                            .is_owner = true};
    return count;
}

/* Appends the owners of locks for which threads wait; returns the new number of holds. */
static size_t add_owners(struct collect *c, struct area_hold *holds, size_t count, size_t max)
{
    uint32_t threads = area_threads(c->area), read = 0;
    for (uint32_t slot = 1; slot < threads && read < MOST_OWNERS && count < max; slot++) {
        struct thread *thread = thread_in_slot(c, slot);
        struct area_open open;
        if (!thread)
            continue;
        bool is_open = area_open_call(c->area, slot, &open);
        count = add_owner_within(c, thread, is_open ? &open : NULL, holds, count);
        if (count == max || !is_open || !lacks_holder(c, &open, holds, count))
            continue;
        read++;
        const struct thread *owner = find_owner(c, thread, &open);
        if (owner && owner != thread)
            holds[count++] =
                (struct area_hold){.object = open.object,
                                   .serial = (uint32_t)(owner->serial - c->threads.base),
                                   .wait = open.wait == SHM_RDLOCK ? SHM_WRLOCK : open.wait,
                                   .is_owner = true};
    }
    return count;
}

/* MARK: Holds */

static void share_holds(const struct holds *holds, const struct mapping *m)
{
    for (size_t i = 0; i < holds->count; i++) {
        struct area_hold *hold = &holds->list[i];
        if (mapping_has(m, hold->object))
            hold->object = mapping_object(m, hold->object);
    }
}

/* A process learns which of its locks are shared only when there are other processes: it has taken
 * some of them before. */
static void share_old_holds(struct collect *c)
{
    struct mapping m;
    bool is_old = false;
    for (size_t i = 0; i < c->holds.count; i++)
        is_old |= !shm_is_shared(c->holds.list[i].object);
    if (!is_old || !c->options.process.pid || !collect_label(c))
        return;
    SMALL_FILE_LINES(lines, "/proc/%d/maps", (int)c->options.process.pid)
        if (mapping_read(lines.text, &m) && m.is_shared && m.inode != 0)
            share_holds(&c->holds, &m);
}

/* Reads the locks of all threads, once per step. Returns false if out of memory. */
static bool read_holds(struct collect *c)
{
    struct holds *holds = &c->holds;
    const struct board *board = c->trace->options.board;
    if (!holds->list)
        holds->list = calloc(SHM_OBJECTS + BOARD_HOLDS, sizeof *holds->list);
    if (!holds->list) {
        collect_no_memory(c);
        return false;
    }
    if (!holds->known)
        holds->count = area_holds(c->area, holds->list);
    if (!holds->known)
        share_old_holds(c);
    if (!holds->known && board)
        holds->count += board_holds(board, area_claimed(c->area), holds->list + holds->count);
    if (!holds->known)
        holds->count = add_owners(c, holds->list, holds->count, SHM_OBJECTS + BOARD_HOLDS);
    holds->known = true;
    return true;
}

/* Returns the name that waits for the lock use; NULL: not known. */
static const char *name_of(struct collect *c, const struct area_hold *hold)
{
    if (hold->wait != SHM_FILE_LOCK)
        return lock_names_lock(c, hold->object, hold->pc, 0);
    const char *name =
        hold->detail - 1 < SHM_DESCRIPTORS
            ? descriptors_name(c, hold->detail, area_generation(c->area, hold->detail - 1))
            : NULL;
    return name ? name : lock_names_file(c, hold->object);
}

void holds_forget(struct collect *c)
{
    c->holds.known = false;
}

void holds_name_shared(struct collect *c, uint64_t object, uint64_t time)
{
    for (struct collect *of = c->trace->programs; of && !lock_names_has_place(c, object);
         of = of->next_in_trace) {
        if (!read_holds(of))
            return;
        for (size_t i = 0; i < of->holds.count; i++) {
            const struct area_hold *hold = &of->holds.list[i];
            if (hold->object != object || !shm_is_lock(hold->wait) || !hold->pc ||
                hold->since > time)
                continue;
            (void)lock_names_lock(of, object, hold->pc, 0);
            return;
        }
    }
}

/* Bits of glibc's __readers and __kind, which no header names: readers from the fourth on. */
#define READERS_SHIFT 3
#define KIND_ELIDED   256

/*
 * Whether the lock shows that the thread no longer holds it: another thread or process has released
 * it, which the thread's own slot does not have. Mutexes that are not shared are not read: one
 * may be a stream's, which records its owner differently.
 */
static bool is_given_up(struct collect *c, const struct thread *thread,
                        const struct area_hold *hold)
{
    pthread_mutex_t mutex;
    pthread_rwlock_t lock;
    if (c->refused || !hold->address || !thread->tid)
        return false;
    if (hold->wait == SHM_RDLOCK)
        return open_copy_memory(c, thread, hold->address, &lock, sizeof lock) == sizeof lock &&
               (lock.__data.__readers >> READERS_SHIFT == 0 || lock.__data.__cur_writer != 0);
    if (hold->wait != SHM_MUTEX || !shm_is_memory(hold->object) ||
        open_copy_memory(c, thread, hold->address, &mutex, sizeof mutex) != sizeof mutex)
        return false;
    uint32_t owner = owner_in(&mutex);
    return !(mutex.__data.__kind & KIND_ELIDED) && (!owner || thread_tid(c, owner) != thread->tid);
}

/* Logs the locks that do not record their holder. */
static void log_guards(struct collect *c, struct thread *thread, int64_t ns)
{
    const struct thread_feed *feed = &thread->feed;
    size_t count =
        thread->g.in_call && feed->guards_time == thread->g.call.time ? feed->guard_count : 0;
    char text[600];
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s %s", wait_kinds[feed->guards[i].wait].words,
                 lock_names_lock(c, feed->guards[i].lock, 0, 0));
        EVENT(c, thread, ns, V2_UserLog, 0, names_string(c, WIRE_HOLDS_INFERRED),
              names_string(c, text), 0);
    }
}

static void log_holds(struct collect *c, struct thread *thread, bool ended, int64_t ns)
{
    char text[600];
    uint64_t base = c->threads.base;
    if (!read_holds(c))
        return;
    for (size_t i = 0, logged = 0; i < c->holds.count && logged < MOST_HOLDS; i++) {
        const struct area_hold *hold = &c->holds.list[i];
        bool is_its = hold->serial == thread->serial - base && !is_given_up(c, thread, hold);
        const char *name = is_its ? name_of(c, hold) : NULL;
        if (!name)
            continue;
        snprintf(text, sizeof text, "%s %s", wait_kinds[hold->wait].words, name);
        EVENT(c, thread, ns, V2_UserLog, 0,
              names_string(c, ended            ? WIRE_HOLDS_ENDED
                              : hold->is_owner ? WIRE_HOLDS_OWNER
                                               : WIRE_HOLDS_CATEGORY),
              names_string(c, text), 0);
        logged++;
    }
}

void holds_log(struct collect *c, struct thread *thread, int64_t ns)
{
    log_holds(c, thread, false, ns);
    log_guards(c, thread, ns);
}

void holds_log_ended(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->g.state == G_RUNNING)
        log_holds(c, thread, true, ns);
}

static bool has_holds(struct collect *c, const struct thread *thread)
{
    bool found = false;
    for (size_t i = 0; read_holds(c) && i < c->holds.count && !found; i++)
        found = c->holds.list[i].serial == thread->serial - c->threads.base;
    return found;
}

void holds_log_last(struct collect *c, struct thread *thread, int64_t ns)
{
    if (thread->g.state == G_RUNNABLE && has_holds(c, thread))
        state_run(c, thread, ns);
    if (thread->g.state == G_RUNNING)
        holds_log(c, thread, ns);
}

void holds_dispose(struct collect *c)
{
    free(c->holds.list);
}
