/* The collector's side of the area: see area.h. */
#include "collect/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

#define TAG (UINT64_C(1) << 32)

/* MARK: Making */

/* Of an open file; NULL with *err. */
static struct shm_area *area_of(int fd, trail_error *err)
{
    struct shm_area *area;

    if (ftruncate(fd, sizeof *area) != 0) {
        (void)error_set(err, TRAIL_IO, "cannot make the memory that is shared with the program: %s",
                        strerror(errno));
        return NULL;
    }
    area = mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (area == MAP_FAILED) {
        (void)error_set(err, TRAIL_NO_MEMORY, "cannot map %zu bytes: %s", sizeof *area,
                        strerror(errno));
        return NULL;
    }
    area->header.version = SHM_VERSION;
    area->header.size_check = sizeof(struct shm_area) / 4096;
    area->header.chunks_used = 1;
    area->header.threads_used = 1;
    area->header.stack_words_used = 1;
    area->header.magic = SHM_MAGIC;
    return area;
}

struct shm_area *area_make(int *fd, trail_error *err)
{
    struct shm_area *area;

    *fd = memfd_create("trail", MFD_CLOEXEC);
    if (*fd < 0) {
        (void)error_set(err, TRAIL_IO, "cannot make the memory that is shared with the program: %s",
                        strerror(errno));
        return NULL;
    }
    area = area_of(*fd, err);
    if (!area)
        close(*fd);
    return area;
}

struct shm_area *area_make_file(const char *path,
                                void (*prepare)(void *context, struct shm_area *area),
                                void *context, trail_error *err)
{
    struct shm_area *area = NULL;
    char *beside = NULL;
    int fd;

    if (asprintf(&beside, "%s.XXXXXX", path) < 0) {
        (void)error_set(err, TRAIL_NO_MEMORY, "out of memory");
        return NULL;
    }
    fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0)
        (void)error_set(err, TRAIL_IO, "cannot create %s: %s", path, strerror(errno));
    else
        area = area_of(fd, err);
    if (area) {
        prepare(context, area);
        if (rename(beside, path) != 0) {
            (void)error_set(err, TRAIL_IO, "cannot create %s: %s", path, strerror(errno));
            area_unmap(area);
            area = NULL;
        }
    }
    if (fd >= 0 && !area)
        (void)unlink(beside);
    if (fd >= 0)
        close(fd);
    free(beside);
    return area;
}

void area_unmap(struct shm_area *area)
{
    if (area)
        munmap(area, sizeof *area);
}

/* MARK: Free lists; the program's side is in preload/record.c */

static void give_back(uint64_t *head, uint32_t index, uint32_t *link)
{
    uint64_t old = __atomic_load_n(head, __ATOMIC_RELAXED), next;

    do {
        __atomic_store_n(link, (uint32_t)old, __ATOMIC_RELAXED);
        next = ((old >> 32) + 1) << 32 | index;
    } while (
        !__atomic_compare_exchange_n(head, &old, next, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static bool is_chunk(uint32_t index)
{
    return index != 0 && index < SHM_CHUNKS;
}

static void free_chunk(struct shm_area *area, uint32_t index)
{
    give_back(&area->header.free_chunks, index, &shm_chunk(area, index)->next);
}

/* MARK: Threads */

uint32_t area_threads(const struct shm_area *area)
{
    uint32_t used = __atomic_load_n(&area->header.threads_used, __ATOMIC_ACQUIRE);
    return used < SHM_THREADS ? used : SHM_THREADS;
}

/* Finds the first chunk, or goes on to the next. */
static bool move_on(struct shm_area *area, uint32_t thread, struct area_cursor *cursor)
{
    uint32_t next;

    /* Both pair with the stores in room(), preload/record.c. */
    if (!cursor->chunk)
        next = __atomic_load_n(&area->threads[thread].first, __ATOMIC_ACQUIRE);
    else
        next = __atomic_load_n(&shm_chunk(area, cursor->chunk)->next, __ATOMIC_ACQUIRE);
    if (!is_chunk(next))
        return false;
    if (cursor->chunk)
        free_chunk(area, cursor->chunk);
    *cursor = (struct area_cursor){next, 0};
    return true;
}

bool area_next(struct shm_area *area, uint32_t thread, struct area_cursor *cursor,
               struct shm_record *record)
{
    for (;;) {
        const struct shm_chunk *chunk;
        if (cursor->chunk) {
            chunk = shm_chunk(area, cursor->chunk);
            /* Pairs with the store in record_put. */
            if (cursor->at < __atomic_load_n(&chunk->used, __ATOMIC_ACQUIRE) &&
                cursor->at < SHM_CHUNK_RECORDS) {
                *record = chunk->records[cursor->at++];
                return true;
            }
            if (cursor->at < SHM_CHUNK_RECORDS)
                return false;
        }
        if (!move_on(area, thread, cursor))
            return false;
    }
}

void area_free_thread(struct shm_area *area, uint32_t thread, struct area_cursor *cursor)
{
    struct shm_thread *slot = &area->threads[thread];

    if (cursor->chunk)
        free_chunk(area, cursor->chunk);
    *cursor = (struct area_cursor){0};
    slot->first = 0;
    __atomic_store_n(&slot->state, SHM_FREE, __ATOMIC_RELAXED);
    give_back(&area->header.free_threads, thread, &slot->next_free);
}

bool area_open_call(const struct shm_area *area, uint32_t thread, struct area_open *open)
{
    const struct shm_thread *slot = &area->threads[thread];

    /* The fields are written before the time, and the time of another call is another one. */
    open->time = __atomic_load_n(&slot->open_time, __ATOMIC_ACQUIRE);
    if (!open->time)
        return false;
    open->object = slot->open_object;
    open->pc = slot->open_pc;
    /* Of others what the last lock left there is not theirs. */
    open->held_pc = shm_is_lock(slot->open_wait) ? slot->open_held_pc : 0;
    open->sp = slot->open_sp;
    open->fp = slot->open_fp;
    open->stack = slot->open_stack;
    open->detail = slot->open_detail;
    open->wait = slot->open_wait;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&slot->open_time, __ATOMIC_RELAXED) == open->time;
}

/* MARK: Stacks */

size_t area_stack(const struct shm_area *area, uint32_t number, const uint64_t **pcs)
{
    uint64_t count;

    if (number == 0 || number >= SHM_STACK_WORDS)
        return 0;
    count = area->stack_words[number];
    if (count > SHM_STACK_FRAMES || number + count >= SHM_STACK_WORDS)
        return 0;
    *pcs = &area->stack_words[number + 1];
    return (size_t)count;
}

size_t area_text(const struct shm_area *area, uint32_t number, const char **text)
{
    uint64_t head;

    if (number == 0 || number >= SHM_STACK_WORDS - SHM_STACK_FRAMES)
        return 0;
    head = area->stack_words[number];
    if (head <= SHM_TEXT_BIT || head > SHM_TEXT_BIT + SHM_TEXT_MAX)
        return 0;
    *text = (const char *)&area->stack_words[number + 1];
    return (size_t)(head - SHM_TEXT_BIT);
}
