/* Tasks, regions and logs, from any thread (§1.3, §7.4). */
#include <stdio.h>
#include <string.h>

#include "host/annotations.h"
#include "tracer/event.h"
#include "tracer/tsan.h"

/* v1 cuts a message to the size of a buffer, with room for the small record before it. */
#define V1_MESSAGE_MAX (BUFFER_CAPACITY - (size_t)2 * EVENT_MAX - (size_t)2 * UVARINT_MAX_SIZE)

/*
 * Opens a section in which an annotation can be written: the thread runs a goroutine on a P, and
 * the format has annotations. Returns NULL if nothing is to be written. Only used in the function
 * that the host called.
 */
always_inline trail_m *open_annotation(uint64_t *generation, const char *what)
{
    trail_m *m = section_open(generation);
    if (!m)
        return NULL;
    m->frame_ = stack_frame();
    if (tracer.format < 11)
        count(&tracer.stats.not_expressible);
    else if (runs_goroutine(m, *generation))
        return m;
    else if (thread_is_changing())
        count(&tracer.stats.reentrant);
    else
        misuse(m, what, "the thread runs no goroutine on a P");
    section_leave(m);
    return NULL;
}

/* Whether annotations go to `trail record`, because no trace of the program's own is on. */
static bool is_recorded_outside(void)
{
    return annotations && !trace_is_on();
}

uint64_t trail_task_begin_(uint64_t parent, const char *name)
{
    static uint64_t last_task;
    uint64_t task = __atomic_add_fetch(&last_task, 1, __ATOMIC_RELAXED), generation, id, stack;
    trail_m *m = open_annotation(&generation, "trail_task_begin");
    if (!m)
        return is_recorded_outside() ? annotations->task_begin(parent, name) : 0;
    stack = stack_id(stack_here(m, generation, 0));
    id = string_id(m, generation, name);
    if (tracer.v2)
        V2(m, generation, UserTaskBegin, task, parent, id, stack);
    else
        V1(m, generation, UserTaskCreate, task, parent, id, stack);
    section_leave(m);
    return task;
}

void trail_task_end_(uint64_t task)
{
    trail_m *m;
    uint64_t generation, stack;
    if (!task)
        return;
    m = open_annotation(&generation, "trail_task_end");
    if (!m) {
        if (is_recorded_outside())
            annotations->task_end(task);
        return;
    }
    stack = stack_id(stack_here(m, generation, 0));
    if (tracer.v2)
        V2(m, generation, UserTaskEnd, task, stack);
    else
        V1(m, generation, UserTaskEnd, task, stack);
    section_leave(m);
}

/*
 * Readers reject a trace in which a region ends that is not the innermost one of its goroutine
 * (§6.5). A region is identified by its task and the hash of its name, whose ID changes with the
 * generation.
 */
static uint32_t region_mark(uint64_t task, const struct table_entry *name)
{
    return (uint32_t)table_mix(name ? name->hash : 0, task);
}

static void push_region(trail_g *g, uint32_t mark)
{
    if (g->regions_session_ != tracer.first_generation) {
        g->regions_session_ = tracer.first_generation;
        g->region_count_ = 0;
    }
    if (g->region_count_ < TRAIL_CHECKED_REGIONS_)
        g->regions_[g->region_count_] = mark;
    g->region_count_++;
}

/*
 * Returns false if another region is the innermost one. A region that began before the trace may
 * end in it.
 */
static bool pop_region(trail_g *g, uint32_t mark)
{
    if (g->regions_session_ != tracer.first_generation || g->region_count_ == 0)
        return true;
    if (g->region_count_ <= TRAIL_CHECKED_REGIONS_ && g->regions_[g->region_count_ - 1] != mark)
        return false;
    g->region_count_--;
    return true;
}

void trail_region_begin_(uint64_t task, const char *name)
{
    const struct table_entry *entry;
    uint64_t generation, id, stack;
    trail_m *m = open_annotation(&generation, "trail_region_begin");
    if (!m) {
        if (is_recorded_outside())
            annotations->region_begin(task, name);
        return;
    }
    stack = stack_id(stack_here(m, generation, 0));
    entry = string_intern(m, generation, name);
    id = entry ? entry->id : 0;
    push_region(m->g, region_mark(task, entry));
    if (tracer.v2)
        V2(m, generation, UserRegionBegin, task, id, stack);
    else
        V1(m, generation, UserRegion, task, 0, id, stack);
    section_leave(m);
}

void trail_region_end_(uint64_t task, const char *name)
{
    const struct table_entry *entry;
    uint64_t generation, id, stack;
    trail_m *m = open_annotation(&generation, "trail_region_end");
    if (!m) {
        if (is_recorded_outside())
            annotations->region_end(task, name);
        return;
    }
    stack = stack_id(stack_here(m, generation, 0));
    entry = string_intern(m, generation, name);
    id = entry ? entry->id : 0;
    if (!pop_region(m->g, region_mark(task, entry)))
        misuse_of(TRAIL_MISUSE_NESTING, m, "trail_region_end",
                  "it is not the innermost region of the goroutine");
    else if (tracer.v2)
        V2(m, generation, UserRegionEnd, task, id, stack);
    else
        V1(m, generation, UserRegion, task, 1, id, stack);
    section_leave(m);
}

/* Writes the record, and after it, outside its length, the message (§1.4). */
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

/* Writes a log event; the stack is that of the public function's caller. */
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

void trail_log_(uint64_t task, const char *category, const char *message)
{
    uint64_t generation;
    trail_m *m = open_annotation(&generation, "trail_log");
    if (!m) {
        if (is_recorded_outside())
            annotations->log(task, category, message);
        return;
    }
    write_log(m, generation, task, category, message, stack_id(stack_here(m, generation, 0)));
    section_leave(m);
}

void trail_logf_(uint64_t task, const char *category, const char *format, ...)
{
    uint64_t generation;
    char message[4096];
    trail_m *m;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    m = open_annotation(&generation, "trail_log");
    if (!m) {
        if (is_recorded_outside())
            annotations->log(task, category, message);
        return;
    }
    write_log(m, generation, task, category, message, stack_id(stack_here(m, generation, 0)));
    section_leave(m);
}
