/* Manages the threads' slots and their chains of chunks: see shm.h. */
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include "preload/call.h"
#include "preload/objects.h"

struct preload preload;
PER_THREAD struct self self;

/* MARK: Free lists */

#define TAG (UINT64_C(1) << 32)

/* Takes the head of a free list, or an unused index; 0: none. */
static uint32_t take(uint64_t *head, uint32_t *used, uint32_t limit, uint32_t *(*link)(uint32_t))
{
    uint64_t old = __atomic_load_n(head, __ATOMIC_ACQUIRE);
    while ((uint32_t)old != 0 && (uint32_t)old < limit) {
        uint64_t next =
            (old + TAG) >> 32 << 32 | __atomic_load_n(link((uint32_t)old), __ATOMIC_RELAXED);
        if (__atomic_compare_exchange_n(head, &old, next, true, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
            return (uint32_t)old;
    }
    if (__atomic_load_n(used, __ATOMIC_RELAXED) >= limit)
        return 0;
    uint32_t index = __atomic_fetch_add(used, 1, __ATOMIC_RELAXED);
    return index < limit ? index : 0;
}

static uint32_t *chunk_link(uint32_t index)
{
    return &shm_chunk(preload.area, index)->next;
}

static uint32_t *thread_link(uint32_t index)
{
    return &preload.area->threads[index].next_free;
}

static uint32_t take_chunk(void)
{
    struct shm_header *header = &preload.area->header;
    uint32_t index = take(&header->free_chunks, &header->chunks_used, SHM_CHUNKS, chunk_link);
    if (index) {
        struct shm_chunk *chunk = shm_chunk(preload.area, index);
        chunk->next = 0;
        __atomic_store_n(&chunk->used, 0, __ATOMIC_RELAXED);
    }
    return index;
}

/* MARK: Records */

/* Returns the chunk to write into; NULL: none is free. */
static struct shm_chunk *room(void)
{
    struct shm_thread *slot = self.slot;
    if (LIKELY(self.chunk && self.chunk->used < SHM_CHUNK_RECORDS))
        return self.chunk;
    uint32_t index = take_chunk();
    if (!index)
        return NULL;
    /* Pairs with the collector's loads of `first` and `next`. */
    __atomic_store_n(self.chunk ? &self.chunk->next : &slot->first, index, __ATOMIC_RELEASE);
    self.chunk = shm_chunk(preload.area, index);
    return self.chunk;
}

void record_put(const struct shm_record *record)
{
    struct shm_chunk *chunk = room();
    if (!chunk) {
        __atomic_fetch_add(&self.slot->lost, 1, __ATOMIC_RELAXED);
        return;
    }
    chunk->records[chunk->used] = *record;
    /* Pairs with the collector's load: the records that it counts are complete. */
    __atomic_store_n(&chunk->used, chunk->used + 1, __ATOMIC_RELEASE);
}

void record_now(struct shm_record *record)
{
    if (!record_begin())
        return;
    record->time = clock_now();
    record_put(record);
    record_end();
}

void record_name(pthread_t thread, const char *name)
{
    struct shm_record record = {.kind = SHM_NAMED, .end = (uint64_t)thread};
    char text[2 * sizeof(uint64_t)] = {0};
    memcpy(text, name, strnlen(name, sizeof text - 1));
    memcpy(&record.object, text, sizeof record.object);
    memcpy(&record.object2, text + sizeof record.object, sizeof record.object2);
    record_now(&record);
}

void heap_tell(void)
{
    struct shm_record record = {.kind = SHM_HEAP};
    int64_t heap = self.slot->heap;
    if (heap == self.heap_recorded || !record_begin())
        return;
    record.object = (uint64_t)heap;
    record.time = clock_now();
    record_put(&record);
    record_end();
    self.heap_recorded = heap;
    self.heap_recorded_at = clock_cheap();
}

/* MARK: Threads */

/* The key's destructor runs self_end however the thread ends. */
static pthread_key_t end_key;
static pthread_once_t end_key_once = PTHREAD_ONCE_INIT;

/* Other destructors may still lock and wait, so the thread's records end in the last round. */
static void at_end(void *arg)
{
    if (++self.round < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(end_key, arg);
    else
        self_end();
}

static void make_end_key(void)
{
    (void)pthread_key_create(&end_key, at_end);
}

uint32_t thread_slot_take(void)
{
    struct shm_header *header = &preload.area->header;
    uint32_t index = take(&header->free_threads, &header->threads_used, SHM_THREADS, thread_link);
    struct shm_thread *slot = &preload.area->threads[index];
    if (!index) {
        __atomic_fetch_add(&header->lost_threads, 1, __ATOMIC_RELAXED);
        return 0;
    }
    memset(slot, 0, sizeof *slot);
    slot->serial = __atomic_add_fetch(&header->serials, 1, __ATOMIC_RELAXED);
    /* Pairs with the collector's load: the slot is complete. */
    __atomic_store_n(&slot->state, SHM_LIVE, __ATOMIC_RELEASE);
    return index;
}

/* The thread was not started. The collector may have seen the slot, so the collector frees it. */
void thread_slot_give_back(uint32_t index)
{
    __atomic_store_n(&preload.area->threads[index].state, SHM_ENDED, __ATOMIC_RELEASE);
}

/* Sets everything in `self` but the slot, which comes last. */
static void self_take(uint32_t index, uintptr_t stack_low, uintptr_t stack_end)
{
    /* A signal handler may have taken a slot for this thread: it is given up, and none is taken
     * afterwards. */
    self.over = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (self_has_slot())
        self_end();
    self.slot = NULL;
    self.chunk = NULL;
    self.round = 0;
    self.readings = 0;
    self.heap_recorded = 0;
    self.has_rseq = preload.has_rseq && has_rseq();
    self.stack_low = stack_low;
    self.stack_end = stack_end;
    self.index = index;
    self.recording = preload.recording;
}

uint32_t own_tid(void)
{
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    (void)REAL(pthread_mutex_lock)(&mutex);
    int tid = mutex.__data.__owner;
    (void)REAL(pthread_mutex_unlock)(&mutex);
    return (uint32_t)tid;
}

void self_begin(uint32_t index, uintptr_t stack_low, uintptr_t stack_end, uint64_t routine)
{
    struct shm_record record = {
        .kind = SHM_STARTED, .object = (uint64_t)(uintptr_t)pthread_self(), .object2 = routine};
    struct shm_thread *slot = &preload.area->threads[index];
    (void)REAL(pthread_once)(&end_key_once, make_end_key);
    self_take(index, stack_low, stack_end);
    /* Pairs with the load in is_thread_coming. */
    __atomic_store_n(&slot->tid, own_tid(), __ATOMIC_RELEASE);
    /* No other record precedes the start. */
    slot->writing = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.slot = slot;
    record.time = clock_now();
    record_put(&record);
    record_end();
    self.over = false;
    (void)pthread_setspecific(end_key, &self);
    samples_begin();
}

void self_end(void)
{
    struct shm_record record = {.kind = SHM_EXITED};
    struct shm_thread *slot = self.slot;
    self.over = true;
    if (!self_has_slot() || !preload.area)
        return;
    samples_end();
    slot->open_time = 0;
    slot->writing = 0;
    heap_tell();
    record_now(&record);
    self.slot = NULL;
    __atomic_store_n(&slot->state, SHM_ENDED, __ATOMIC_RELEASE);
}

/* Returns the end of the thread's stack: where glibc has the thread's block, except for the first
 * thread. */
static uintptr_t stack_end(void)
{
    /* NOLINTNEXTLINE(bugprone-reserved-identifier): the loader's name. */
    extern void *__libc_stack_end;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t block = (uintptr_t)pthread_self();
    if (own_tid() == preload.area->header.claimed)
        return (uintptr_t)__libc_stack_end;
    return block > here && block - here < preload.stack_size ? block : 0;
}

/* MARK: Threads that were there before */

static uint32_t announced(void)
{
    uint32_t count = preload.area->header.announced;
    return count < SHM_THREADS ? count : SHM_THREADS - 1;
}

/* Each announced thread has one chunk, whose first record is the thread's start. */
static struct shm_chunk *chunk_of_announced(const struct shm_thread *slot)
{
    return shm_chunk(preload.area, slot->first % SHM_CHUNKS);
}

/* Whether the wait ends by a release by another thread. */
static bool is_released(const struct shm_thread *slot)
{
    return slot->open_object != 0 && (shm_is_lock(slot->open_wait) || slot->open_wait == SHM_COND ||
                                      slot->open_wait == SHM_SEMAPHORE);
}

/* Counts as a wrapper does around such a wait: see object_wait. */
static void count_waiter(const struct shm_thread *slot, int change)
{
    struct shm_object *object = object_slot((const void *)(uintptr_t)slot->open_object);
    object->hot = 1;
    (void)__atomic_add_fetch(&object->waiters, (uint32_t)change, __ATOMIC_ACQ_REL);
}

void threads_begin_announced(void)
{
    for (uint32_t i = 1; i <= announced(); i++) {
        struct shm_thread *slot = &preload.area->threads[i];
        struct shm_chunk *chunk = chunk_of_announced(slot);
        uint64_t now = clock_now();
        chunk->records[0] =
            (struct shm_record){.kind = SHM_STARTED, .time = now, .object2 = slot->routine};
        __atomic_store_n(&chunk->used, 1, __ATOMIC_RELEASE);
        if (!slot->open_wait)
            continue;
        if (is_released(slot))
            count_waiter(slot, 1);
        __atomic_store_n(&slot->open_time, now, __ATOMIC_RELEASE);
    }
}

/* Returns the slot in which the calling thread was announced; 0: none. */
static uint32_t find_announced(void)
{
    uint32_t tid = announced() ? own_tid() : 0;
    for (uint32_t i = 1; i <= announced(); i++) {
        const struct shm_thread *slot = &preload.area->threads[i];
        if (slot->tid == tid && slot->serial == i &&
            __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == SHM_LIVE)
            return i;
    }
    return 0;
}

/* The wait that the thread was in ended before this call, the first recorded. */
static void end_announced_wait(struct shm_thread *slot)
{
    struct shm_record record = {.kind = SHM_WAITED,
                                .time = slot->open_time,
                                .end = clock_now(),
                                .object = slot->open_object,
                                .stack = slot->open_stack,
                                .detail = slot->open_detail,
                                .wait = slot->open_wait};
    if (slot->open_time == 0)
        return;
    if (is_released(slot)) {
        const void *object = (const void *)(uintptr_t)slot->open_object;
        count_waiter(slot, -1);
        record.release = __atomic_load_n(&object_slot(object)->release, __ATOMIC_ACQUIRE);
    }
    if (record_begin()) {
        record_put(&record);
        record_end();
    }
    __atomic_store_n(&slot->open_time, 0, __ATOMIC_RELEASE);
}

static void self_adopt(uint32_t index, uintptr_t stack_low, uintptr_t stack_end)
{
    struct shm_record record = {.kind = SHM_IDENTIFIED,
                                .object = (uint64_t)(uintptr_t)pthread_self()};
    struct shm_thread *slot = &preload.area->threads[index];
    (void)REAL(pthread_once)(&end_key_once, make_end_key);
    self_take(index, stack_low, stack_end);
    self.chunk = chunk_of_announced(slot);
    self.slot = slot;
    record_now(&record);
    end_announced_wait(slot);
    self.over = false;
    (void)pthread_setspecific(end_key, &self);
}

bool self_attach(void)
{
    int old_errno = errno;
    if (self.over || !preload.recording)
        return false;
    uint32_t index = find_announced();
    if (index) {
        self_adopt(index, stack_end() - preload.stack_size, stack_end());
        errno = old_errno;
        return true;
    }
    index = thread_slot_take();
    if (index)
        self_begin(index, stack_end() - preload.stack_size, stack_end(), 0);
    else
        self.over = true;
    errno = old_errno;
    return index != 0;
}
