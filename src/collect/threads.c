/* Finds threads, and keeps the rings of their ops: see threads.h. */
#include "collect/threads.h"

#include <stdlib.h>

#include "base/grow.h"
#include "collect/parts.h"

/* How many newer threads with the same handle a search skips. */
#define MAX_OLDER 4096

/* MARK: Threads */

struct thread *thread_of(const struct collect *c, uint64_t serial)
{
    return idmap_find(&c->trace->threads, serial);
}

struct thread *thread_in_slot(const struct collect *c, uint32_t slot)
{
    return slot < c->threads.slot_room ? c->threads.in_slot[slot] : NULL;
}

struct thread *thread_with_tid(const struct collect *c, uint64_t tid)
{
    return idmap_find(&c->threads.by_tid, tid);
}

/* Returns the time from which others can have the thread's handle: its creator may use it before
 * the thread has begun to run. */
static uint64_t handle_since(const struct thread *thread)
{
    return thread->created ? thread->created : thread->started;
}

uint64_t thread_tid(const struct collect *c, uint32_t tid)
{
    uint32_t confirmed = process_thread(&c->options.process, tid);
    return confirmed || c->options.process.nested ? confirmed : tid;
}

static struct thread *thread_with_handle(const struct collect *c, uint64_t handle, uint64_t time)
{
    struct thread *thread = idmap_find(&c->threads.by_handle, handle);
    for (int i = 0; thread && handle_since(thread) > time && i < MAX_OLDER; i++)
        thread = thread->older;
    return thread;
}

struct thread *thread_joined(const struct collect *c, uint64_t object, uint64_t time)
{
    if (object == 0 || object > UINT32_MAX)
        return object ? thread_with_handle(c, object, time) : NULL;
    return thread_with_tid(c, thread_tid(c, (uint32_t)object));
}

uint64_t thread_serial(const struct collect *c, uint64_t serial)
{
    return serial > 0 && serial < c->threads.limit - c->threads.base ? c->threads.base + serial : 0;
}

struct thread *threads_next(const struct collect *c, size_t *at)
{
    const struct idmap *map = &c->threads.by_serial;
    while (map->slots && *at <= map->mask) {
        struct thread *thread = map->slots[(*at)++].value;
        if (thread)
            return thread;
    }
    return NULL;
}

size_t threads_count(const struct collect *c)
{
    return c->threads.by_serial.count;
}

static bool make_room_for_slot(struct threads *threads, uint32_t slot)
{
    size_t had = threads->slot_room;
    if (!GROW(threads->in_slot, threads->slot_room, slot + 1))
        return false;
    for (size_t i = had; i < threads->slot_room; i++)
        threads->in_slot[i] = NULL;
    return true;
}

struct thread *thread_new(struct collect *c, uint32_t slot, uint32_t number)
{
    uint64_t serial = thread_serial(c, number);
    if (serial > c->threads.last_serial)
        c->threads.last_serial = serial;
    struct thread *thread = calloc(1, sizeof *thread);
    if (!thread || !make_room_for_slot(&c->threads, slot) ||
        !idmap_put(&c->threads.by_serial, serial, thread) ||
        !idmap_put(&c->trace->threads, serial, thread)) {
        (void)idmap_remove(&c->threads.by_serial, serial);
        free(thread);
        collect_no_memory(c);
        return NULL;
    }
    thread->serial = serial;
    thread->of = c;
    thread->slot = slot;
    thread->written = (struct written_thread){.g = thread->serial, .p = -1};
    thread->oncpu.on_since = thread->oncpu.off_since = -1;
    c->threads.in_slot[slot] = thread;
    return thread;
}

/*
 * Adds a thread to the list of threads with its handle, newest first. Threads are read by slot, so
 * a later one may come before an earlier one.
 */
static void handle_add(struct collect *c, struct thread *thread)
{
    struct thread *newer = NULL, *older = idmap_find(&c->threads.by_handle, thread->handle);
    for (int i = 0; older && older->started > thread->started && i < MAX_OLDER; i++) {
        newer = older;
        older = older->older;
    }
    if (older == thread)
        return;
    thread->older = older;
    if (newer)
        newer->older = thread;
    else if (!idmap_put(&c->threads.by_handle, thread->handle, thread))
        collect_no_memory(c);
}

void thread_identify(struct collect *c, struct thread *thread)
{
    handle_add(c, thread);
    if (!idmap_put(&c->threads.by_tid, thread->tid, thread))
        collect_no_memory(c);
}

void thread_leave_slot(struct collect *c, struct thread *thread)
{
    c->threads.in_slot[thread->slot] = NULL;
    thread->slot = 0;
}

void thread_is_dead(struct collect *c, struct thread *thread)
{
    thread->next_dead = c->threads.dead;
    c->threads.dead = thread;
}

static void thread_free(struct thread *thread)
{
    (void)idmap_remove(&thread->of->trace->threads, thread->serial);
    woken_free(thread->joiners);
    free(thread->oncpu.at);
    for (size_t i = 0; i < thread->ops.count; i++)
        op_free(op_in_ring(thread, i));
    free(thread->feed.text);
    free(thread->feed.guards);
    free(thread->feed.glances);
    free(thread->g.regions);
    free(thread->ops.at);
    free(thread);
}

/* Removes a thread from the list of those that have had its handle; the newest is in the map. */
static void handle_forget(struct collect *c, struct thread *thread)
{
    struct thread *newer = idmap_find(&c->threads.by_handle, thread->handle);
    if (newer == thread) {
        (void)idmap_remove(&c->threads.by_handle, thread->handle);
        if (thread->older && !idmap_put(&c->threads.by_handle, thread->handle, thread->older))
            collect_no_memory(c);
        return;
    }
    while (newer && newer->older != thread)
        newer = newer->older;
    if (newer)
        newer->older = thread->older;
}

void threads_sweep(struct collect *c)
{
    struct thread **link = &c->threads.dead, *thread;
    while ((thread = *link) != NULL) {
        if (!thread->feed.ended || thread->ops.count) {
            link = &thread->next_dead;
            continue;
        }
        *link = thread->next_dead;
        (void)idmap_remove(&c->threads.by_serial, thread->serial);
        handle_forget(c, thread);
        if (idmap_find(&c->threads.by_tid, thread->tid) == thread)
            (void)idmap_remove(&c->threads.by_tid, thread->tid);
        thread_free(thread);
    }
}

void threads_drop_ops(struct collect *c)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
        if (!trace_is_full(c->trace))
            c->summary.lost_records += thread->ops.count;
        while (thread->ops.count) {
            struct op op = op_take(thread);
            op_free(&op);
            if (op.release)
                woken_free(release_is_written(op.release));
        }
    }
}

void threads_dispose(struct collect *c)
{
    struct thread *thread;
    for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;)
        thread_free(thread);
    idmap_free(&c->threads.by_serial);
    idmap_free(&c->threads.by_handle);
    idmap_free(&c->threads.by_tid);
    free(c->threads.in_slot);
}

/* MARK: A thread's ops */

void op_free(struct op *op)
{
    free(op->message);
    free(op->given);
    op->message = NULL;
    op->given = NULL;
}

struct op op_take(struct thread *thread)
{
    struct op op = *op_in_ring(thread, 0);
    thread->ops.first = (thread->ops.first + 1) % thread->ops.room;
    thread->ops.count--;
    thread->ops.taken++;
    return op;
}

struct op *op_add(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time)
{
    struct op *op;
    if (thread->ops.count == thread->ops.room) {
        size_t room = thread->ops.room ? 2 * thread->ops.room : 8;
        struct op *ops = malloc(room * sizeof *ops);
        if (!ops) {
            collect_no_memory(c);
            return NULL;
        }
        for (size_t i = 0; i < thread->ops.count; i++)
            ops[i] = *op_in_ring(thread, i);
        free(thread->ops.at);
        thread->ops.at = ops;
        thread->ops.first = 0;
        thread->ops.room = room;
    }
    op = op_in_ring(thread, thread->ops.count++);
    /* A signal handler's record may precede the one that it interrupted. */
    if (time < thread->ops.last_time)
        time = thread->ops.last_time;
    thread->ops.last_time = time;
    *op = (struct op){.time = time, .kind = kind};
    return op;
}

struct op *op_insert(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time)
{
    struct op *before;
    if (time < c->watermark)
        time = c->watermark;
    if (!op_add(c, thread, kind, time))
        return NULL;
    size_t at = thread->ops.count - 1;
    struct op *op = op_in_ring(thread, at);
    while (at > 0) {
        before = op_in_ring(thread, at - 1);
        if (before->time <= time)
            break;
        *op = *before;
        op = before;
        at--;
    }
    *op = (struct op){.time = time, .kind = kind};
    return op;
}

uint64_t op_number(const struct thread *thread)
{
    return thread->ops.taken + thread->ops.count;
}

struct op *op_at(struct thread *thread, uint64_t number)
{
    uint64_t at = number - thread->ops.taken;
    if (at >= thread->ops.count)
        return NULL;
    return op_in_ring(thread, (size_t)at);
}
