/*
 * Buffers on their way from writers to the reader: a free list, and per unread generation a list of
 * full buffers. A trace of v1 is one generation.
 *
 *   free - queue_buffer -> an M's or P's writer - queue_put -> pending - read.c -> queue_free -> free
 *
 * When the memory of the options is used up, the writing thread waits, ends the trace, or drops a
 * generation. docs/models/handover.pml models this with its waits.
 */
#include <errno.h>
#include <string.h>

#include "tracer/control.h"
#include "tracer/memory.h"
#include "tracer/read.h"
#include "tracer/tracer.h"
#include "tracer/tsan.h"

/* Buffers kept for the end of a trace of usual size: statuses, samples, stacks, strings. */
#define RESERVED 4

/* Whether this thread begins or ends a generation or trace: only it may use the reserve. */
static __thread bool is_ending __attribute__((tls_model("initial-exec")));

/* The reader is woken once per so many buffers. */
#define WAKE_BUFFERS 8

/* MARK: Pending generations */

static struct pending *pending_at(size_t i)
{
    return &tracer.pending[(tracer.first_pending + i) % MAX_PENDING];
}

static struct pending *pending_find(uint64_t generation)
{
    for (size_t i = tracer.pendings; i-- > 0;) {
        if (pending_at(i)->generation == generation)
            return pending_at(i);
    }
    return NULL;
}

static void free_buffer(struct trail_buffer_ *buffer)
{
    if (tracer.reserved < RESERVED) {
        buffer->next = tracer.reserve;
        tracer.reserve = buffer;
        tracer.reserved++;
        tracer.buffers--;
    } else {
        buffer->next = tracer.free;
        tracer.free = buffer;
    }
    pthread_cond_broadcast(&tracer.room);
}

/* Frees a generation's buffers and returns their bytes. */
static uint64_t free_buffers(struct pending *pending)
{
    struct trail_buffer_ *buffer = pending->first, *next;
    uint64_t bytes = 0;
    for (; buffer; buffer = next) {
        next = buffer->next;
        bytes += buffer->used;
        free_buffer(buffer);
    }
    pending->first = pending->last = NULL;
    pending->buffers = 0;
    return bytes;
}

/* Drops a generation's buffers; later ones are dropped as they arrive. */
static void spoil(struct pending *pending)
{
    if (!pending->spoiled)
        count(&tracer.stats.lost_generations);
    tracer.stats.lost_bytes += free_buffers(pending);
    pending->spoiled = true;
}

bool queue_open(uint64_t generation)
{
    bool opened = false;
    pthread_mutex_lock(&tracer.lock);
    if (tracer.pendings < MAX_PENDING) {
        struct pending *pending = pending_at(tracer.pendings++);
        memset(pending, 0, sizeof *pending);
        pending->generation = generation;
        pending->began_ns = clock_ns(CLOCK_MONOTONIC);
        opened = true;
    }
    pthread_mutex_unlock(&tracer.lock);
    return opened;
}

void queue_withdraw(uint64_t generation)
{
    pthread_mutex_lock(&tracer.lock);
    if (tracer.pendings && pending_at(tracer.pendings - 1)->generation == generation)
        (void)free_buffers(pending_at(--tracer.pendings));
    pthread_mutex_unlock(&tracer.lock);
}

void queue_complete(uint64_t generation)
{
    struct pending *pending;
    pthread_mutex_lock(&tracer.lock);
    pending = pending_find(generation);
    if (pending)
        pending->complete = true;
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
}

void queue_spoil(uint64_t generation)
{
    struct pending *pending;
    pthread_mutex_lock(&tracer.lock);
    pending = pending_find(generation);
    if (pending)
        spoil(pending);
    pthread_mutex_unlock(&tracer.lock);
}

bool queue_spoiled(uint64_t generation)
{
    struct pending *pending;
    bool spoiled;
    pthread_mutex_lock(&tracer.lock);
    pending = pending_find(generation);
    spoiled = !pending || pending->spoiled;
    pthread_mutex_unlock(&tracer.lock);
    return spoiled;
}

/* MARK: Memory */

/* Makes room by dropping the oldest complete generation, or else the buffers of the newest. */
static void drop_oldest(void)
{
    for (size_t i = 0; i < tracer.pendings; i++) {
        struct pending *pending = pending_at(i);
        if (pending->complete && !pending->started && !pending->spoiled && pending->first) {
            spoil(pending);
            return;
        }
    }
    spoil(pending_at(tracer.pendings - 1));
    read_advance_soon();
}

/*
 * Returns a buffer from the free list or the system; NULL if the limit is reached or there is no
 * memory.
 */
static struct trail_buffer_ *take(void)
{
    struct trail_buffer_ *buffer = tracer.free;
    if (buffer) {
        tracer.free = buffer->next;
        return buffer;
    }
    if (tracer.buffers >= tracer.limit && !tracer.urgent)
        return NULL;
    buffer = memory_map(BUFFER_SIZE);
    if (!buffer && is_ending && tracer.reserve) {
        buffer = tracer.reserve;
        tracer.reserve = buffer->next;
        tracer.reserved--;
    }
    if (buffer)
        tracer.buffers++;
    return buffer;
}

bool queue_reserve(void)
{
    bool enough;
    pthread_mutex_lock(&tracer.lock);
    while (tracer.reserved < RESERVED) {
        struct trail_buffer_ *buffer = memory_map(BUFFER_SIZE);
        if (!buffer)
            break;
        tracer.buffers++;
        free_buffer(buffer);
    }
    enough = tracer.reserved == RESERVED;
    pthread_mutex_unlock(&tracer.lock);
    return enough;
}

/* Waits for the reader; false after the time-out. */
static bool wait_for_room(const struct timespec *until)
{
    return pthread_cond_timedwait(&tracer.room, &tracer.lock, until) != ETIMEDOUT;
}

static struct trail_buffer_ *take_or_wait(void)
{
    struct trail_buffer_ *buffer;
    struct timespec until;
    bool in_time = true;
    /* No event may follow a lost one: later events of the section would contradict the trace. */
    if (tracer.failed && !is_ending)
        return NULL;
    buffer = take();
    if (buffer || tracer.urgent)
        return buffer;
    switch (tracer.options.when_full) {
    case TRAIL_FULL_DROP_OLDEST:
        drop_oldest();
        return take();
    case TRAIL_FULL_WAIT:
        until = deadline_after(tracer.options.wait_ns);
        pthread_cond_broadcast(&tracer.changed);
        while (!buffer && in_time && !tracer.failed) {
            in_time = wait_for_room(&until);
            if (!tracer.failed)
                buffer = take();
            if (tracer.urgent)
                break;
        }
        return buffer;
    case TRAIL_FULL_END:
        break;
    }
    return NULL;
}

struct trail_buffer_ *queue_buffer(uint64_t generation)
{
    struct trail_buffer_ *buffer;
    bool fails;
    pthread_mutex_lock(&tracer.lock);
    buffer = take_or_wait();
    fails = !buffer && tracer.options.when_full != TRAIL_FULL_DROP_OLDEST;
    if (!buffer) {
        struct pending *pending = pending_find(generation);
        count(&tracer.stats.lost_events);
        /*
         * A lost event ends the trace, and everything before it is good. A loss while a generation
         * begins or ends makes that generation contradict itself.
         */
        if (pending && tracer.v2 && (is_ending || !fails))
            spoil(pending);
    }
    if (fails)
        session_fail();
    pthread_mutex_unlock(&tracer.lock);
    if (!buffer)
        return NULL;
    buffer->next = NULL;
    buffer->generation = generation;
    buffer->used = 0;
    buffer->length_at = 0;
    return buffer;
}

/*
 * Whether to wake the reader. Once per buffer would take a tenth of the writing thread's time. The
 * rest is read when its generation or trace ends.
 */
static bool is_worth_waking(const struct pending *pending)
{
    return pending->buffers >= WAKE_BUFFERS || tracer.buffers >= tracer.limit / 2 || tracer.urgent;
}

void queue_put(struct trail_buffer_ *buffer)
{
    struct pending *pending;
    tsan_acquire(buffer);
    pthread_mutex_lock(&tracer.lock);
    pending = pending_find(buffer->generation);
    buffer->next = NULL;
    if (!pending || pending->spoiled) {
        tracer.stats.lost_bytes += buffer->used;
        free_buffer(buffer);
    } else {
        if (pending->last)
            pending->last->next = buffer;
        else
            pending->first = buffer;
        pending->last = buffer;
        pending->buffers++;
        if (is_worth_waking(pending))
            pthread_cond_broadcast(&tracer.changed);
    }
    pthread_mutex_unlock(&tracer.lock);
}

void queue_urgent(bool urgent)
{
    pthread_mutex_lock(&tracer.lock);
    tracer.urgent = is_ending = urgent;
    pthread_cond_broadcast(&tracer.room);
    pthread_mutex_unlock(&tracer.lock);
}

void queue_clear(void)
{
    struct trail_buffer_ *buffer;
    pthread_mutex_lock(&tracer.lock);
    for (; tracer.pendings; tracer.pendings--) {
        tracer.stats.lost_bytes += free_buffers(pending_at(0));
        tracer.first_pending = (tracer.first_pending + 1) % MAX_PENDING;
    }
    while ((buffer = tracer.free) != NULL) {
        tracer.free = buffer->next;
        memory_unmap(buffer, BUFFER_SIZE);
        tracer.buffers--;
    }
    while ((buffer = tracer.reserve) != NULL) {
        tracer.reserve = buffer->next;
        memory_unmap(buffer, BUFFER_SIZE);
        tracer.reserved--;
    }
    pthread_mutex_unlock(&tracer.lock);
}

/* MARK: The reader's side; the lock is held */

struct pending *queue_head(void)
{
    return tracer.pendings ? pending_at(0) : NULL;
}

struct trail_buffer_ *queue_pop_buffer(struct pending *pending)
{
    struct trail_buffer_ *buffer = pending->first;
    pending->first = buffer->next;
    if (!pending->first)
        pending->last = NULL;
    pending->buffers--;
    return buffer;
}

void queue_pop(void)
{
    tracer.first_pending = (tracer.first_pending + 1) % MAX_PENDING;
    tracer.pendings--;
}

void queue_free(struct trail_buffer_ *buffer)
{
    free_buffer(buffer);
}
