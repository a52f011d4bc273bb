/*
 * Records tasks, regions and logs of a program that uses libtrail-record without starting a tracer.
 * A name is stored once, like a stack. The message of a log precedes its record, in pieces.
 */
#include "host/annotations.h"

#include <string.h>

#include "preload/preload.h"

static void put(struct shm_record *record, const char *name, const struct unwind_start *caller)
{
    int old_errno = errno;
    record->release = text_of(name);
    record->stack = stack_of(caller);
    record_now(record);
    errno = old_errno;
}

uint64_t task_number(void)
{
    static uint64_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static uint64_t task_begin(uint64_t parent, const char *name)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_TASK_BEGAN, .object2 = parent};
    if (!is_recorded(SHM_GROUP_ANNOTATIONS))
        return 0;
    record.object = task_number();
    put(&record, name, &caller);
    return record.object;
}

static void task_end(uint64_t task)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_TASK_ENDED, .object = task};
    if (is_recorded(SHM_GROUP_ANNOTATIONS))
        put(&record, NULL, &caller);
}

static void region_begin(uint64_t task, const char *name)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_REGION_BEGAN, .object = task};
    if (is_recorded(SHM_GROUP_ANNOTATIONS))
        put(&record, name, &caller);
}

static void region_end(uint64_t task, const char *name)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_REGION_ENDED, .object = task};
    if (is_recorded(SHM_GROUP_ANNOTATIONS))
        put(&record, name, &caller);
}

/* Writes a piece of text that belongs to the next record. */
static void put_text(const char *text, size_t size)
{
    struct shm_record record = {.kind = SHM_TEXT, .flags = (uint8_t)size};
    memcpy(&record.end, text, size);
    record_now(&record);
}

static void write_log(uint64_t task, const char *category, const char *message)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_LOGGED, .object = task};
    size_t size = message ? strnlen(message, SHM_TEXT_MAX) : 0;
    if (!is_recorded(SHM_GROUP_ANNOTATIONS))
        return;
    for (size_t at = 0; at < size; at += SHM_TEXT_PIECE)
        put_text(message + at, size - at < SHM_TEXT_PIECE ? size - at : SHM_TEXT_PIECE);
    put(&record, category, &caller);
}

EXPORT const struct annotations trail_preload_annotations = {
    .version = ANNOTATIONS_VERSION,
    .task_begin = task_begin,
    .task_end = task_end,
    .region_begin = region_begin,
    .region_end = region_end,
    .log = write_log,
};
