/*
 * Buffers on their way from writers to the reader: a free list, and per unread generation a list of
 * full buffers. A trace of v1 is one generation.
 *
 *   free - queue_buffer -> an M's or P's writer - queue_put -> pending - read.c -> queue_free -> free
 *
 * A writer's first buffer is its own. It is taken without a lock, and freed when it has been read
 * or copied.
 *
 * trail_options.memory limits pending buffers, not those that writers hold, so any number of quiet
 * threads never makes another wait. At the limit the writing thread waits, ends the trace or drops
 * a generation. docs/models/handover.pml models this with its waits.
 */
#include <errno.h>
#include <string.h>

#include "tracer/control.h"
#include "tracer/lock.h"
#include "tracer/memory.h"
#include "tracer/read.h"
#include "tracer/tracer.h"
#include "tracer/tsan.h"

/* Whether this thread begins or ends a generation or trace: only it may use the reserve. */
static __thread bool is_ending __attribute__((tls_model("initial-exec")));

/* The reader is woken when this many bytes are pending. */
#define WAKE_BYTES ((size_t)8 * BUFFER_SIZE)

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

/* Returns the index of the free list for buffers of `size`. */
static unsigned class_of(size_t size)
{
    return (unsigned)__builtin_ctzl(size) - (unsigned)__builtin_ctzl(BUFFER_MIN);
}

static void add_reserve(struct trail_buffer_ *buffer)
{
    buffer->next = tracer.reserve;
    tracer.reserve = buffer;
    tracer.reserved++;
}

void buffer_unmap(struct trail_buffer_ *buffer)
{
    if (buffer->owner == OWNER_QUEUE)
        memory_unmap(buffer, buffer->size);
    else
        /* Pairs with the load in take_own. */
        __atomic_store_n(&buffer->owner, OWNER_WRITER_FREE, __ATOMIC_RELEASE);
}

/* Frees a buffer that is not pending. */
static void free_buffer(struct trail_buffer_ *buffer)
{
    if (buffer->owner != OWNER_QUEUE) {
        buffer_unmap(buffer);
        return;
    }
    if (tracer.reserved < tracer.to_reserve && buffer->size == BUFFER_SIZE) {
        add_reserve(buffer);
    } else if (tracer.free_bytes + buffer->size > tracer.limit) {
        memory_unmap(buffer, buffer->size);
    } else {
        buffer->next = tracer.free[class_of(buffer->size)];
        tracer.free[class_of(buffer->size)] = buffer;
        tracer.free_bytes += buffer->size;
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
        queue_free(buffer);
    }
    pending->first = pending->last = NULL;
    pending->bytes = 0;
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

/* Returns the size of a writer's next buffer. */
static size_t next_size(size_t filled, size_t need)
{
    size_t size = 2 * filled > tracer.smallest ? 2 * filled : tracer.smallest;
    need += sizeof(struct trail_buffer_);
    while (size < need && size < BUFFER_SIZE)
        size *= 2;
    return size < BUFFER_SIZE ? size : BUFFER_SIZE;
}

/* Maps `n` buffers of the largest size at once; NULL: no memory. */
static uint8_t *map_buffers(size_t n)
{
    return memory_map(n * BUFFER_SIZE);
}

static struct trail_buffer_ *make(void *at, size_t size)
{
    struct trail_buffer_ *buffer = at;
    if (buffer) {
        buffer->size = (uint32_t)size;
        buffer->owner = OWNER_QUEUE;
    }
    return buffer;
}

/* Returns new memory from the system, in steps of BUFFER_SIZE. */
static struct trail_buffer_ *map_buffer(size_t size)
{
    uint8_t *at;
    if (size != tracer.smallest)
        return make(memory_map(size), size);
    if (!tracer.slab_left) {
        tracer.slab = map_buffers(1);
        tracer.slab_left = tracer.slab ? BUFFER_SIZE : 0;
    }
    if (!tracer.slab_left)
        return NULL;
    at = tracer.slab + (BUFFER_SIZE - tracer.slab_left);
    tracer.slab_left -= size;
    return make(at, size);
}

static struct trail_buffer_ *take_free(size_t size)
{
    struct trail_buffer_ **list = &tracer.free[class_of(size)], *buffer = *list;
    if (buffer) {
        *list = buffer->next;
        tracer.free_bytes -= size;
    }
    return buffer;
}

static struct trail_buffer_ *take_reserve(void)
{
    struct trail_buffer_ *buffer = tracer.reserve;
    if (buffer) {
        tracer.reserve = buffer->next;
        tracer.reserved--;
    }
    return buffer;
}

/* Without memory: returns any buffer for `need` bytes, as a last resort from the reserve. */
static struct trail_buffer_ *take_any(size_t need)
{
    struct trail_buffer_ *buffer = NULL;
    for (size_t size = next_size(0, need); !buffer && size <= BUFFER_SIZE; size *= 2)
        buffer = take_free(size);
    return !buffer && is_ending ? take_reserve() : buffer;
}

/*
 * Whether the limit is reached. The reading thread cannot wait for itself, so it may use twice the
 * limit, which suffices unless it writes more than it reads.
 */
static bool is_full(void)
{
    size_t limit = tracer.limit;
    if (tracer.queued < limit || tracer.urgent)
        return false;
    return !read_is_reader() || tracer.options.when_full != TRAIL_FULL_WAIT ||
           tracer.queued >= 2 * limit;
}

/* Returns a free buffer or a new one; NULL if the limit is reached or there is no memory. */
static struct trail_buffer_ *take(size_t filled, size_t need)
{
    size_t size = next_size(filled, need);
    struct trail_buffer_ *buffer;
    if (is_full())
        return NULL;
    buffer = take_free(size);
    if (!buffer)
        buffer = map_buffer(size);
    return buffer ? buffer : take_any(need);
}

bool queue_reserve(size_t n)
{
    bool enough;
    lock_mutex(&tracer.lock);
    tracer.to_reserve += n;
    if (tracer.reserved < tracer.to_reserve) {
        size_t missing = tracer.to_reserve - tracer.reserved;
        uint8_t *at = map_buffers(missing);
        for (; at && missing > 0; missing--, at += BUFFER_SIZE)
            add_reserve(make(at, BUFFER_SIZE));
    }
    enough = tracer.reserved >= tracer.to_reserve;
    if (!enough)
        tracer.to_reserve -= n;
    pthread_mutex_unlock(&tracer.lock);
    return enough;
}

void queue_unreserve(size_t n)
{
    lock_mutex(&tracer.lock);
    tracer.to_reserve -= n < tracer.to_reserve ? n : tracer.to_reserve;
    while (tracer.reserved > tracer.to_reserve)
        free_buffer(take_reserve());
    pthread_mutex_unlock(&tracer.lock);
}

/* Waits for the reader; false after the time-out. */
static bool wait_for_room(const struct timespec *until)
{
    return pthread_cond_timedwait(&tracer.room, &tracer.lock, until) != ETIMEDOUT;
}

/* Waits for room below the limit, or, if there is no memory, for a buffer that has been read. */
static struct trail_buffer_ *wait_and_take(size_t filled, size_t need)
{
    struct timespec until = deadline_after(tracer.options.wait_ns);
    uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
    struct trail_buffer_ *buffer = NULL;
    bool in_time = true;
    pthread_cond_broadcast(&tracer.changed);
    /* A reader can make room only if something is pending. */
    while (!buffer && in_time && !tracer.failed && tracer.queued) {
        in_time = wait_for_room(&until);
        if (!tracer.failed)
            buffer = take(filled, need);
        if (tracer.urgent)
            break;
    }
    count_wait(began_ns, &tracer.stats.waits, &tracer.stats.wait_ns, &tracer.stats.longest_wait_ns);
    return buffer;
}

static struct trail_buffer_ *take_or_wait(size_t filled, size_t need)
{
    struct trail_buffer_ *buffer;
    /* No event may follow a lost one: later events of the section would contradict the trace. */
    if (tracer.failed && !is_ending)
        return NULL;
    buffer = take(filled, need);
    if (buffer || tracer.urgent)
        return buffer;
    switch (tracer.options.when_full) {
    case TRAIL_FULL_DROP_OLDEST:
        drop_oldest();
        return take(filled, need);
    case TRAIL_FULL_WAIT:
        return read_is_reader() ? NULL : wait_and_take(filled, need);
    case TRAIL_FULL_END:
        break;
    }
    return NULL;
}

/* MARK: Buffers for writers */

void writer_own(struct trail_writer_ *writer, void *memory)
{
    writer->own = make(memory, BUFFER_MIN);
    writer->own->owner = OWNER_WRITER_FREE;
}

void writer_after_fork(struct trail_writer_ *writer)
{
    if (writer->own)
        writer->own->owner = OWNER_WRITER_FREE;
    *writer = (struct trail_writer_){.own = writer->own};
}

/* Returns the writer's own buffer; NULL if it has none, or one that is not free or too small. */
static struct trail_buffer_ *take_own(const struct trail_writer_ *writer, size_t need)
{
    struct trail_buffer_ *own = writer->own;
    /* Pairs with the store in buffer_unmap. */
    if (!own || need > BUFFER_MIN - sizeof *own ||
        __atomic_load_n(&own->owner, __ATOMIC_ACQUIRE) != OWNER_WRITER_FREE)
        return NULL;
    /* No event may follow a lost one. */
    if (__atomic_load_n(&tracer.failed, __ATOMIC_RELAXED))
        return NULL;
    __atomic_store_n(&own->owner, OWNER_WRITER, __ATOMIC_RELAXED);
    return own;
}

static struct trail_buffer_ *take_queued(uint64_t generation, size_t filled, size_t need)
{
    struct trail_buffer_ *buffer;
    bool fails;
    lock_mutex(&tracer.lock);
    buffer = take_or_wait(filled, need);
    fails = !buffer && tracer.options.when_full != TRAIL_FULL_DROP_OLDEST;
    if (!buffer) {
        struct pending *pending = pending_find(generation);
        count(&tracer.stats.lost_events);
        /*
         * A lost event ends the trace; everything before it is valid. A loss while a generation
         * begins or ends makes that generation inconsistent.
         */
        if (pending && tracer.v2 && (is_ending || !fails))
            spoil(pending);
    }
    if (fails)
        session_fail();
    pthread_mutex_unlock(&tracer.lock);
    return buffer;
}

struct trail_buffer_ *queue_buffer(const struct trail_writer_ *writer, uint64_t generation,
                                   size_t filled, size_t need)
{
    struct trail_buffer_ *buffer = filled ? NULL : take_own(writer, need);
    if (!buffer)
        buffer = take_queued(generation, filled, need);
    if (!buffer)
        return NULL;
    buffer->next = NULL;
    buffer->generation = generation;
    buffer->used = 0;
    buffer->length_at = 0;
    return buffer;
}

/*
 * Whether to wake the reader. Waking it for every buffer would take a tenth of the writing thread's
 * time. While buffers arrive, it polls for them now and then (read.c). Generations that may be
 * dropped are read when they are over.
 */
static bool is_worth_waking(const struct pending *pending)
{
    if (tracer.reader_idle && tracer.options.when_full != TRAIL_FULL_DROP_OLDEST)
        return true;
    return pending->bytes >= WAKE_BYTES || tracer.queued >= tracer.limit / 2 || tracer.urgent;
}

static void append(struct pending *pending, struct trail_buffer_ *buffer)
{
    if (pending->last)
        pending->last->next = buffer;
    else
        pending->first = buffer;
    pending->last = buffer;
    pending->bytes += buffer->size;
    tracer.queued += buffer->size;
}

/*
 * Appends a small buffer to the last pending one, if it fits, so that the events of many quiet
 * threads take no more room than their bytes.
 */
static bool copied(const struct pending *pending, struct trail_buffer_ *buffer)
{
    struct trail_buffer_ *last = pending->last;
    if (!last || buffer->used > BUFFER_MIN || last->used + buffer->used > last->size - sizeof *last)
        return false;
    memcpy(last->data + last->used, buffer->data, buffer->used);
    last->used += buffer->used;
    return true;
}

void queue_put(struct trail_buffer_ *buffer)
{
    struct pending *pending;
    tsan_acquire(buffer);
    lock_mutex(&tracer.lock);
    pending = pending_find(buffer->generation);
    buffer->next = NULL;
    if (!pending || pending->spoiled) {
        tracer.stats.lost_bytes += buffer->used;
        free_buffer(buffer);
    } else {
        if (copied(pending, buffer))
            free_buffer(buffer);
        else
            append(pending, buffer);
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

static void unmap_list(struct trail_buffer_ **list)
{
    struct trail_buffer_ *buffer;
    while ((buffer = *list) != NULL) {
        *list = buffer->next;
        memory_unmap(buffer, buffer->size);
    }
}

void queue_clear(void)
{
    pthread_mutex_lock(&tracer.lock);
    for (; tracer.pendings; tracer.pendings--) {
        tracer.stats.lost_bytes += free_buffers(pending_at(0));
        tracer.first_pending = (tracer.first_pending + 1) % MAX_PENDING;
    }
    for (size_t i = 0; i < BUFFER_CLASSES; i++)
        unmap_list(&tracer.free[i]);
    tracer.free_bytes = 0;
    unmap_list(&tracer.reserve);
    tracer.reserved = tracer.to_reserve = 0;
    if (tracer.slab_left)
        memory_unmap(tracer.slab + (BUFFER_SIZE - tracer.slab_left), tracer.slab_left);
    tracer.slab_left = 0;
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
    pending->bytes -= buffer->size;
    return buffer;
}

void queue_pop(void)
{
    tracer.first_pending = (tracer.first_pending + 1) % MAX_PENDING;
    tracer.pendings--;
}

void queue_free(struct trail_buffer_ *buffer)
{
    tracer.queued -= buffer->size;
    free_buffer(buffer);
}
