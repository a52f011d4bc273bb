/*
 * From records to ops. Each thread's ops are in the order of its time.
 *
 * A thread's life is a small state machine (enum life): it starts once, before all else, and nothing comes behind its
 * exit. What does not fit is counted as damage and left out; but the first record of a thread may have found no room.
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/feed.h"

/* Releases are kept for so many times that, for waits that are told late. */
#define KEEP_DELAYS 4

/* So long what is being written is waited for: a thread that stops there would hold up all others. */
#define MAX_WRITING_NS 2000000000

/* Waits that ended since the reading of the threads began are kept for the next time, if they are not more. */
#define MAX_ENDED 65536

/* MARK: Records */

static void add_block(struct collect *c, struct thread *thread, uint64_t time, uint8_t wait,
                      uint64_t object, uint64_t held_pc, uint32_t stack, uint32_t detail,
                      uint32_t generation, uint64_t pc)
{
    struct op *op = op_insert(c, thread, OP_BLOCK, time);
    if (!op)
        return;
    op->wait = wait;
    op->object = object;
    op->object2 = held_pc;
    op->stack = stack_key(c, stack);
    /* -1 is no descriptor, and neither is what stdio has for streams of its own. */
    op->detail = detail <= INT32_MAX ? detail : 0;
    op->name = descriptors_name(c, op->detail, generation);
    op->pc = pc;
    op->wait_number = ++thread->wait_numbers;
    if (!thread->first_stack)
        thread->first_stack = op->stack;
}

/* What an open call has become is told again, and more, by the record of its end. */
static void complete_block(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    for (size_t i = thread->ops_count; i-- > 0;) {
        struct op *op = &thread->ops[(thread->ops_first + i) % thread->ops_room];
        if (op->kind != OP_BLOCK || op->wait_number != thread->wait_numbers)
            continue;
        op->stack = stack_key(c, r->stack);
        op->object = r->object;
        return;
    }
}

static void take_waited(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op;
    if (r->time != thread->open_time)
        add_block(c, thread, r->time, r->wait, r->object, r->wait == SHM_COND ? 0 : r->object2,
                  r->stack, r->detail, r->generation, 0);
    else
        complete_block(c, thread, r);
    thread->open_time = 0;
    if (!GROW(c->ended, c->ended_room, c->ended_count + 1)) {
        collect_no_memory(c);
        return;
    }
    c->ended[c->ended_count++] =
        (struct ended_wait){*r, thread->serial, thread->wait_numbers, op_number(thread)};
    /* Where the wait for the mutex will begin, if it turns out that there was one. */
    if (r->wait == SHM_COND && (op = op_add(c, thread, OP_NOTHING, r->end)) != NULL) {
        op->object = r->object2;
        op->stack = stack_key(c, r->stack);
        op->wait = SHM_MUTEX;
        op->wait_number = ++thread->wait_numbers;
    }
    op = op_add(c, thread, OP_WAKE, r->end);
    if (op)
        op->flags = r->flags;
    thread->waited_until = r->end;
}

/* MARK: Other records */

static void take_released(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_RELEASE, r->time);
    if (!op)
        return;
    op->object = r->object;
    op->stack = stack_key(c, r->stack);
    op->wait = r->wait;
    op->object2 = r->end;
    op->pc = r->object2;
    op->flags = r->flags;
    op->release = release_add(c, thread, r);
}

/*
 * A signal handler that ran in a thread before its first instruction has a slot of its own. It is told on another M:
 * what the kernel says of the thread is said of who was announced.
 */
static bool is_handler_of(struct collect *c, struct thread *thread)
{
    struct thread *other = idmap_find(&c->tids, thread->tid);
    if (!other || other == thread || other->handle != thread->handle)
        return false;
    if (!thread->routine && other->routine && other->state != G_DEAD)
        return true;
    if (thread->routine && !other->routine && other->state == G_NONE)
        other->tid = 0;
    return false;
}

/* Of one that has ended already the kernel knows nothing any more: it is known by the number that it had. */
static uint64_t tid_of(const struct collect *c, uint32_t tid)
{
    uint32_t confirmed = process_thread(&c->options.process, tid);
    return confirmed || c->options.process.nested ? confirmed : tid;
}

static void take_started(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_START, r->time);
    if (!op)
        return;
    thread->handle = r->object;
    thread->tid = tid_of(c, area_thread(c->area, thread->slot).tid);
    if (r->object2)
        thread->routine = r->object2;
    thread->callable = r->end;
    thread->started = r->time;
    if (is_handler_of(c, thread)) {
        thread->tid = 0;
        return;
    }
    thread->older = idmap_find(&c->handles, r->object);
    if (!idmap_put(&c->handles, r->object, thread) || !idmap_put(&c->tids, thread->tid, thread))
        collect_no_memory(c);
}

/* Gathers the pieces of a log's message. */
static void take_text(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    if (thread->text_size + r->flags > SHM_TEXT_MAX) {
        collect_damage(c);
        return;
    }
    if (!thread->text && !(thread->text = malloc(SHM_TEXT_MAX + 1))) {
        collect_no_memory(c);
        return;
    }
    memcpy(thread->text + thread->text_size, &r->end, r->flags);
    thread->text_size += r->flags;
}

static void take_annotation(struct collect *c, struct thread *thread, const struct shm_record *r)
{
    struct op *op = op_add(c, thread, OP_ANNOTATION, r->time);
    if (!op)
        return;
    op->record = r->kind;
    op->object = r->object;
    op->object2 = r->object2;
    op->text = r->release;
    op->flags = r->flags;
    op->stack = stack_key(c, r->stack);
    if (r->kind == SHM_LOGGED && thread->text) {
        thread->text[thread->text_size] = '\0';
        op->message = thread->text;
        thread->text = NULL;
        thread->text_size = 0;
    }
}

/* Whether the record may come now, in the life of its thread. */
static bool fits_life(struct thread *thread, uint8_t kind)
{
    if (thread->life == LIFE_EXITED || (kind == SHM_STARTED && thread->life != LIFE_ANNOUNCED))
        return false;
    thread->life = kind == SHM_EXITED ? LIFE_EXITED : LIFE_STARTED;
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
    case SHM_NAMED:
        /* A name that a thread gets soon after its start is its goroutine's from the first event on. */
        memcpy(thread->name, &r->object, sizeof r->object);
        memcpy(thread->name + sizeof r->object, &r->object2, sizeof r->object2);
        thread->name[sizeof thread->name - 1] = '\0';
        break;
    case SHM_CREATED:
    case SHM_EXITED:
        op = op_add(c, thread, r->kind == SHM_CREATED ? OP_CREATE : OP_EXIT, r->time);
        if (op) {
            op->object = r->object;
            op->object2 = r->object2;
            if (r->kind == SHM_CREATED)
                op->object += c->serial_base;
            op->stack = stack_key(c, r->stack);
        }
        break;
    case SHM_SAMPLED:
        profile_record(c, thread, r);
        break;
    case SHM_TASK_BEGAN:
    case SHM_TASK_ENDED:
    case SHM_REGION_BEGAN:
    case SHM_REGION_ENDED:
    case SHM_LOGGED:
        take_annotation(c, thread, r);
        break;
    case SHM_FORGOTTEN:
        op = op_add(c, thread, OP_FORGET, r->time);
        if (op)
            op->object = r->object;
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

/* The descriptor is still the one that the call began with, as far as anybody knows. */
static uint32_t generation_of(const struct collect *c, uint32_t detail)
{
    return detail && detail <= SHM_DESCRIPTORS ? area_generation(c->area, detail - 1) : 0;
}

/* A call that has been open for so long that it is written before it ends. */
static void take_open(struct collect *c, struct thread *thread, uint64_t before)
{
    struct area_open open;
    if (!area_open_call(c->area, thread->slot, &open))
        return;
    /* Looked at now, while it is there. */
    if (open.detail <= SHM_DESCRIPTORS)
        (void)descriptors_name(c, open.detail, generation_of(c, open.detail));
    open.stack = open_stack(c, thread, &open);
    if (open.time >= before || open.time == thread->open_time || open.time < thread->waited_until ||
        thread->life == LIFE_EXITED)
        return;
    add_block(c, thread, open.time, open.wait, open.object, open.held_pc, open.stack, open.detail,
              generation_of(c, open.detail), open.pc);
    thread->open_time = open.time;
}

/* What a slot counts, since it was looked at last. */
static void take_counts(struct collect *c, struct thread *thread, const struct area_thread *shared)
{
    uint64_t waited = (uint64_t)(shared->short_waits - thread->short_waits) * SHM_SHORT;
    uint64_t passed = c->fed_at - c->looked_at;
    c->holds += shared->holds - thread->holds;
    /* It cannot have waited for longer than that. */
    c->short_ticks += waited < passed ? waited : passed;
    thread->holds = shared->holds;
    thread->short_waits = shared->short_waits;
}

static void thread_ended(struct collect *c, struct thread *thread, const struct area_thread *shared)
{
    c->summary.lost_records += shared->lost;
    /* It was never started, or what it told last found no room. */
    if (thread->life != LIFE_EXITED)
        (void)op_add(c, thread, OP_EXIT, c->fed_at);
    thread->life = LIFE_EXITED;
    area_keep_heap(c->area, shared->heap);
    c->slots[thread->slot] = NULL;
    area_free_thread(c->area, thread->slot, &thread->cursor);
    thread->slot = 0;
    thread->ended = true;
}

/* The thread of a slot that is in use; NULL: there can be none. */
static struct thread *thread_at(struct collect *c, uint32_t slot, const struct area_thread *shared)
{
    uint64_t serial = c->serial_base + shared->serial;
    if (c->slots[slot])
        return c->slots[slot];
    if (shared->serial == 0 || thread_of(c, serial)) {
        collect_damage(c);
        return NULL;
    }
    if (serial > c->last_serial)
        c->last_serial = serial;
    return thread_new(c, slot, serial);
}

/* Takes what a slot has; moves *limit back to before what is still being written, or could not be read yet. */
static void feed_slot(struct collect *c, uint32_t slot, uint64_t delayed, bool last,
                      uint64_t *limit)
{
    /* Read in front of the records: what an ended thread told is all there. */
    const struct area_thread shared = area_thread(c->area, slot);
    struct thread *thread;
    struct shm_record record;
    if (shared.state == SHM_FREE || !(thread = thread_at(c, slot, &shared)))
        return;
    if (shared.state == SHM_LIVE && !last && shared.writing && thread->last_time < *limit)
        *limit = thread->last_time;
    for (; !c->failed && area_next(c->area, slot, &thread->cursor, &record); c->records++)
        take_record(c, thread, &record);
    take_counts(c, thread, &shared);
    heap_look(c, thread, shared.heap);
    if (!last && area_is_exhausted(c->area)) {
        if (thread->last_time < *limit)
            *limit = thread->last_time;
    } else if (shared.state == SHM_ENDED) {
        thread_ended(c, thread, &shared);
    } else {
        take_open(c, thread, last ? UINT64_MAX : delayed);
    }
}

/* Up to where all is known: but no thread holds up the others for ever. */
static uint64_t least_limit(const struct collect *c, uint64_t limit, uint64_t now)
{
    uint64_t longest = ticks_of_ns(c->ticks, MAX_WRITING_NS);
    uint64_t least = now > longest ? now - longest : 0;
    return limit > least ? limit : least;
}

void feed_forget(struct collect *c)
{
    memset(c->slots, 0, sizeof c->slots);
    idmap_clear(&c->handles);
    idmap_clear(&c->tids);
    c->ended_count = 0;
}

void feed_all(struct collect *c, bool last)
{
    uint64_t delay = ticks_of_ns(c->ticks, COLLECT_DELAY_NS), now = ticks_now(c->ticks);
    /* However late this step comes: waits that ended since the last one are matched in the next. */
    uint64_t limit = c->fed_at > delay ? c->fed_at - delay : 0;
    uint32_t threads = area_threads(c->area);
    c->looked_at = c->fed_at ? c->fed_at : now;
    c->fed_at = now;
    open_stacks_step(c);
    area_begin_step(c->area, last);
    /* `writing` and open calls are looked at after the clock: what begins now is later than the limit. */
    for (uint32_t slot = 1; slot < threads && !c->failed; slot++)
        feed_slot(c, slot, now - delay, last, &limit);
    heap_look_at_rest(c);
    heap_sort(c);
    /* Ends in the future would pile up. */
    match_ended(c, last || c->ended_count > MAX_ENDED ? UINT64_MAX : now);
    limit = least_limit(c, limit, now);
    c->watermark = last ? UINT64_MAX : limit > c->watermark ? limit : c->watermark;
    releases_forget(c, now - KEEP_DELAYS * delay);
}
