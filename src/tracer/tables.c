/* Writes the tables to the trace: see tables.h. */
#include "tracer/tables.h"

#include <string.h>

#include "host/modules.h"
#include "tracer/identity.h"
#include "tracer/pause.h"

/* v1: returns the P in the Batch records of the tables; V1_NO_BATCH if they have none (§1.5). */
static uint64_t v1_tables_proc(void)
{
    return tracer.format == 7 ? V1_NO_BATCH : 0;
}

/* Long names keep their end, which identifies them best (§2.5). */
static uint64_t name_id(struct trail_writer_ *v1_writer, uint64_t generation, const char *name,
                        bool *failed)
{
    size_t size = strlen(name);
    const struct table_entry *entry;
    bool fresh;
    if (size == 0)
        return 0;
    if (size > V2_MAX_STRING) {
        name += size - V2_MAX_STRING;
        size = V2_MAX_STRING;
    }
    entry = string_put(generation, name, size, &fresh);
    if (!entry)
        return 0;
    if (fresh && v1_writer &&
        !v1_write_string(v1_writer, v1_tables_proc(), generation, entry->id, name, size))
        *failed = true;
    return entry->id;
}

/* MARK: Stacks */

struct stacks {
    uint64_t generation;
    struct trail_writer_ *writer;
    bool failed;
};

/* pc, function, file, line. */
#define FRAME_MAX (3 * UVARINT_MAX_SIZE + 5)

static uint8_t *put_frame(struct stacks *out, uint8_t *at, uintptr_t pc)
{
    struct frame_name name = {"", "", 0};
    struct trail_writer_ *v1_writer = tracer.v2 ? NULL : out->writer;
    if (pc == IDENTITY_UNKNOWN_PC)
        name.function = IDENTITY_UNKNOWN;
    else if (!tracer.options.no_symbols)
        name = symbol_of(pc);
    at = put(at, pc);
    at = put(at, name_id(v1_writer, out->generation, name.function, &out->failed));
    at = put(at, name_id(v1_writer, out->generation, name.file, &out->failed));
    return put(at, name.line);
}

static void v2_write_stack(const struct table_entry *stack, void *context)
{
    size_t n = stack->size / sizeof(uintptr_t), room = 1 + 2 * UVARINT_MAX_SIZE + n * FRAME_MAX;
    struct stacks *out = context;
    uint8_t *at;
    if (out->failed || !v2_section_room(out->writer, out->generation, V2_Stacks, 1 + room)) {
        out->failed = true;
        return;
    }
    at = out->writer->at;
    *at++ = V2_Stack;
    at = put(at, stack->id);
    at = put(at, n);
    for (size_t i = 0; i < n; i++)
        at = put_frame(out, at, (uintptr_t)stack->data[i]);
    out->writer->at = at;
}

/* Writes as many frames as readers accept in one record; the outermost are dropped. */
static void v1_write_stack(const struct table_entry *stack, void *context)
{
    uint8_t frames[V1_MAX_LENGTH + FRAME_MAX], head[2 * UVARINT_MAX_SIZE], *at, *end = frames;
    size_t n = stack->size / sizeof(uintptr_t), fit = 0, head_size, length;
    struct stacks *out = context;
    struct trail_writer_ *writer = out->writer;
    while (fit < n) {
        at = put_frame(out, end, (uintptr_t)stack->data[fit]);
        if (at - frames > V1_MAX_LENGTH - 2 * UVARINT_MAX_SIZE)
            break;
        end = at;
        fit++;
    }
    head_size = (size_t)(put(put(head, stack->id), fit) - head);
    length = head_size + (size_t)(end - frames);
    if (out->failed ||
        !v1_refill(writer, out->generation, v1_tables_proc(), 1 + UVARINT_MAX_SIZE + length)) {
        out->failed = true;
        return;
    }
    at = writer->at;
    *at++ = V1_Stack | V1_COUNT_LENGTH << V1_COUNT_SHIFT;
    at = put(at, length);
    memcpy(at, head, head_size);
    memcpy(at + head_size, frames, (size_t)(end - frames));
    writer->at = at + length;
}

/* MARK: Strings */

static void v2_write_one_string(const struct table_entry *string, void *context)
{
    struct stacks *out = context;
    if (!v2_write_string(out->writer, out->generation, string->id, (const char *)string->data,
                         string->size))
        out->failed = true;
}

static void add_line(const char *line, void *context)
{
    struct stacks *out = context;
    tracer_pause(PAUSE_LISTS);
    (void)name_id(tracer.v2 ? NULL : out->writer, out->generation, line, &out->failed);
}

static void write_modules(struct stacks *out)
{
    pthread_mutex_lock(&tracer.walk);
    modules_each(add_line, out);
    pthread_mutex_unlock(&tracer.walk);
}

bool v2_write_tables(uint64_t generation)
{
    struct trail_writer_ writer = {0};
    struct stacks out = {generation, &writer, false};
    table_each(stack_table(generation), v2_write_stack, &out);
    v2_close_batch(&writer);
    add_line(tracer.maker, &out);
    write_modules(&out);
    stack_forget_unloaded();
    table_each(string_table(generation), v2_write_one_string, &out);
    writer_flush(&writer);
    return !out.failed;
}

bool v1_write_tables(struct trail_writer_ *writer, uint64_t generation)
{
    struct stacks out = {generation, writer, false};
    add_line(tracer.maker, &out);
    write_modules(&out);
    table_each(stack_table(generation), v1_write_stack, &out);
    return !out.failed;
}
