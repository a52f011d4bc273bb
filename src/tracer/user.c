/* Tasks and logs, from any thread (§1.3, §7.4). */
#include <stdio.h>
#include <string.h>

#include "tracer/annotation.h"
#include "tracer/categories.h"
#include "tracer/event.h"
#include "tracer/fields.h"
#include "tracer/slow.h"
#include "tracer/tsan.h"

/* v1 cuts a message to the size of a buffer, less the record before it. */
#define V1_MESSAGE_MAX (BUFFER_CAPACITY - (size_t)2 * EVENT_MAX - (size_t)2 * UVARINT_MAX_SIZE)

uint64_t trail_task_begin_(uint64_t parent, const char *name)
{
    static uint64_t last_task;
    uint64_t task = __atomic_add_fetch(&last_task, 1, __ATOMIC_RELAXED), generation, id, stack;
    trail_m *m = open_annotation(&generation, "trail_task_begin");
    if (!m)
        return is_recorded_outside() ? annotations->task_begin(parent, name) : 0;
    stack = stack_id(stack_here(m, generation, 0));
    id = string_id(m, generation, name);
    EVENT(m, generation, UserTaskBegin, UserTaskCreate, task, parent, id, stack);
    slow_begin(task, SLOW_TASK_DEPTH, name);
    close_annotation(m, generation);
    return task;
}

void trail_task_end_(uint64_t task)
{
    trail_m *m;
    uint64_t generation, stack;
    if (!task)
        return;
    m = open_annotation(&generation, "trail_task_end");
    RECORD_OUTSIDE_UNLESS(m, task_end, task);
    stack = stack_id(stack_here(m, generation, 0));
    EVENT(m, generation, UserTaskEnd, UserTaskEnd, task, stack);
    slow_end(task, SLOW_TASK_DEPTH);
    close_annotation(m, generation);
}

/* Writes the record, followed by the message, which its length does not include (§1.4). */
static void v1_write_log(trail_m *m, uint64_t generation, uint64_t task, uint64_t key,
                         uint64_t stack, const char *message, size_t size)
{
    struct trail_writer_ *writer = &m->p->writer_;
    if (size > V1_MESSAGE_MAX)
        size = V1_MESSAGE_MAX;
    if (!v1_refill(writer, generation, (uint64_t)(int64_t)m->p->id,
                   (size_t)2 * EVENT_MAX + UVARINT_MAX_SIZE + size) ||
        !V1(m, generation, UserLog, task, key, stack))
        return;
    writer->at = put(writer->at, size);
    text_copy(writer->at, message, size);
    writer->at += size;
    tsan_release(writer->buffer);
}

/* Writes a log event with the stack of the public function's caller. */
static void write_log(trail_m *m, uint64_t generation, uint64_t task, const char *category,
                      const char *message, uint64_t stack)
{
    uint64_t key = string_id(m, generation, category);
    if (!message)
        message = "";
    if (tracer.v2)
        V2(m, generation, UserLog, task, key,
           string_once(m, generation, message, strnlen(message, V2_MAX_STRING)), stack);
    else
        v1_write_log(m, generation, task, key, stack, message, strlen(message));
}

/* In the function that the host called. */
always_inline void log_message(uint64_t task, const char *category, const char *message)
{
    uint64_t generation;
    trail_m *m = open_annotation(&generation, "trail_log");
    RECORD_OUTSIDE_UNLESS(m, log, task, category, message);
    write_log(m, generation, task, category, message, stack_id(stack_here(m, generation, 0)));
    close_annotation(m, generation);
}

void trail_log_(uint64_t task, const char *category, const char *message)
{
    if (category_is_on(category))
        log_message(task, category, message);
}

void trail_logf_(uint64_t task, const char *category, const char *format, ...)
{
    char message[4096];
    va_list args;
    if (!category_is_on(category))
        return;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    log_message(task, category, message);
}

void trail_log_fields_(uint64_t task, const char *category, const trail_field *fields, size_t n)
{
    char message[FIELDS_MAX + 1];
    if (!category_is_on(category))
        return;
    fields_write(message, fields, n);
    log_message(task, category, message);
}
