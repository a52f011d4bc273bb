/* The threads of the program and the rings of their ops, which wait there until the model takes them. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "collect/feed.h"

void collect_damage(struct collect *c)
{
    area_count_damage(c->area);
}

void collect_no_memory(struct collect *c)
{
    if (!c->failed)
        (void)error_set(&c->error, TRAIL_NO_MEMORY, "out of memory");
    c->failed = true;
}

/* MARK: Threads */

struct thread *thread_of(struct collect *c, uint64_t serial)
{
    return idmap_find(&c->threads, serial);
}

struct thread *thread_new(struct collect *c, uint32_t slot, uint64_t serial)
{
    struct thread *thread = calloc(1, sizeof *thread);
    if (!thread || !idmap_put(&c->threads, serial, thread)) {
        free(thread);
        collect_no_memory(c);
        return NULL;
    }
    thread->serial = serial;
    thread->slot = slot;
    thread->proc = -1;
    thread->oncpu.on_since = thread->oncpu.off_since = -1;
    c->slots[slot] = thread;
    return thread;
}

void woken_free(struct woken *woken)
{
    while (woken) {
        struct woken *next = woken->next;
        free(woken);
        woken = next;
    }
}

void thread_free(struct thread *thread)
{
    woken_free(thread->joiners);
    free(thread->oncpu.at);
    for (size_t i = 0; i < thread->ops_count; i++)
        free(thread->ops[(thread->ops_first + i) % thread->ops_room].message);
    free(thread->text);
    free(thread->regions);
    free(thread->ops);
    free(thread);
}

/* Threads that had one handle, one after the other: the newest is in the map. */
static void handle_forget(struct collect *c, struct thread *thread)
{
    struct thread *newer = idmap_find(&c->handles, thread->handle);
    if (newer == thread) {
        (void)idmap_remove(&c->handles, thread->handle);
        if (thread->older && !idmap_put(&c->handles, thread->handle, thread->older))
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
    struct thread **link = &c->dead, *thread;
    while ((thread = *link) != NULL) {
        if (!thread->ended || thread->ops_count) {
            link = &thread->next_dead;
            continue;
        }
        *link = thread->next_dead;
        (void)idmap_remove(&c->threads, thread->serial);
        handle_forget(c, thread);
        if (idmap_find(&c->tids, thread->tid) == thread)
            (void)idmap_remove(&c->tids, thread->tid);
        thread_free(thread);
    }
}

void threads_drop_ops(struct collect *c)
{
    for (size_t i = 0; c->threads.slots && i <= c->threads.mask; i++) {
        struct thread *thread = c->threads.slots[i].value;
        if (!thread)
            continue;
        if (!collect_is_full(c))
            c->summary.lost_records += thread->ops_count;
        for (; thread->ops_count; thread->ops_count--, thread->ops_written++) {
            struct op *op = &thread->ops[thread->ops_first];
            free(op->message);
            if (op->release)
                op->release->written = true;
            thread->ops_first = (thread->ops_first + 1) % thread->ops_room;
        }
    }
}

/* The ring's next free op; NULL without memory. */
struct op *op_add(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time)
{
    struct op *op;
    if (thread->ops_count == thread->ops_room) {
        size_t room = thread->ops_room ? 2 * thread->ops_room : 8;
        struct op *ops = malloc(room * sizeof *ops);
        if (!ops) {
            collect_no_memory(c);
            return NULL;
        }
        for (size_t i = 0; i < thread->ops_count; i++)
            ops[i] = thread->ops[(thread->ops_first + i) % thread->ops_room];
        free(thread->ops);
        thread->ops = ops;
        thread->ops_first = 0;
        thread->ops_room = room;
    }
    op = &thread->ops[(thread->ops_first + thread->ops_count++) % thread->ops_room];
    /* A signal handler's record may be in front of the one that it interrupted. */
    if (time < thread->last_time)
        time = thread->last_time;
    thread->last_time = time;
    *op = (struct op){.time = time, .kind = kind};
    return op;
}

/*
 * An op of the thread that may be earlier than what its signal handlers did meanwhile. What is written already
 * is not gone back to.
 */
struct op *op_insert(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time)
{
    struct op *op, *before;
    size_t at;
    if (time < c->watermark)
        time = c->watermark;
    if (!op_add(c, thread, kind, time))
        return NULL;
    at = thread->ops_count - 1;
    op = &thread->ops[(thread->ops_first + at) % thread->ops_room];
    while (at > 0) {
        before = &thread->ops[(thread->ops_first + at - 1) % thread->ops_room];
        if (before->time <= time)
            break;
        *op = *before;
        op = before;
        at--;
    }
    *op = (struct op){.time = time, .kind = kind};
    return op;
}

/* The number that the thread's next op will have: ops are numbered from its first. */
uint64_t op_number(const struct thread *thread)
{
    return thread->ops_written + thread->ops_count;
}

/* The op with a number; NULL: it is written. */
struct op *op_at(struct thread *thread, uint64_t number)
{
    uint64_t at = number - thread->ops_written;
    if (at >= thread->ops_count)
        return NULL;
    return &thread->ops[(thread->ops_first + at) % thread->ops_room];
}
