/*
 * AllocFree: single objects, spans and stacks (§5.5). The events are ordinary events of the thread;
 * types and address units are in the experiment's batches:
 *
 *   31 experiment generation m time size[10]   [ 0, types ... | 1, units ]
 */
#include "tracer/alloc.h"

#include <string.h>

#include "tracer/event.h"

enum { ALLOC_TYPES, ALLOC_INFO };

static struct {
    trail_alloc_info info;
    void (*snapshot)(void *context);
    void *context;
    struct table types; /* number, size, pointer bytes, name */
} alloc;

void trail_alloc_host(const trail_alloc_info *info, void (*snapshot)(void *context), void *context)
{
    tracer_init();
    pthread_mutex_lock(&tracer.control);
    alloc.info = *info;
    if (!alloc.info.page_size)
        alloc.info.page_size = 8192;
    if (!alloc.info.object_align)
        alloc.info.object_align = 8;
    if (!alloc.info.min_stack)
        alloc.info.min_stack = 2048;
    alloc.snapshot = snapshot;
    alloc.context = context;
    pthread_mutex_unlock(&tracer.control);
}

/* MARK: Batches of the experiment */

static bool room(struct trail_writer_ *writer, uint64_t generation, unsigned kind, size_t size)
{
    if (writer->buffer && writer_room(writer) >= size)
        return true;
    if (!v2_open_experiment(writer, generation, size))
        return false;
    *writer->at++ = (uint8_t)kind;
    return true;
}

struct types {
    uint64_t generation;
    struct trail_writer_ writer;
};

struct type {
    uint64_t number, size, pointer_bytes;
    char name[];
};

static void write_type(const struct table_entry *entry, void *context)
{
    struct types *types = context;
    const struct type *type = (const struct type *)entry->data;
    size_t length = entry->size - sizeof *type;
    uint8_t *at;
    if (!room(&types->writer, types->generation, ALLOC_TYPES, 1 + 5 * UVARINT_MAX_SIZE + length))
        return;
    at = types->writer.at;
    at = put(at, type->number);
    at = put(at, type->number);
    at = put(at, type->size);
    at = put(at, type->pointer_bytes);
    at = put(at, length);
    memcpy(at, type->name, length);
    types->writer.at = at + length;
}

void alloc_write_tables(uint64_t generation)
{
    struct types types = {generation, {0}};
    if (!tracer.alloc_free)
        return;
    table_each(&alloc.types, write_type, &types);
    writer_flush(&types.writer);
}

void alloc_begin(uint64_t generation)
{
    struct trail_writer_ writer = {0};
    if (room(&writer, generation, ALLOC_INFO, 64)) {
        writer.at = put(writer.at, alloc.info.lowest);
        writer.at = put(writer.at, alloc.info.page_size);
        writer.at = put(writer.at, alloc.info.object_align);
        writer.at = put(writer.at, alloc.info.min_stack);
        writer_flush(&writer);
    }
    if (alloc.snapshot)
        alloc.snapshot(alloc.context);
}

bool trail_alloc_type(trail_m *m, uint64_t number, uint64_t size, uint64_t pointer_bytes,
                      const char *name)
{
    union {
        struct type type;
        char bytes[sizeof(struct type) + V2_MAX_STRING];
    } entry = {.type = {number, size, pointer_bytes}};
    size_t length = strnlen(name, V2_MAX_STRING);
    (void)m;
    memcpy(entry.bytes + sizeof(struct type), name, length);
    length += sizeof(struct type);
    if (!alloc.types.limit)
        alloc.types.limit = (size_t)16 << 20;
    return table_put(&alloc.types, &entry, length, table_hash_bytes(&entry, length), NULL) != NULL;
}

/* MARK: Events */

/* Like call_begin, must be used in the function that the host called. */
always_inline bool write_event(const trail_m *outer, const char *what, unsigned type, unsigned n,
                               const uint64_t *args)
{
    SECTION(outer, what);
    return call_end(m, !tracer.alloc_free || v2_write(m, generation, type, n, args));
}

static uint64_t page(uintptr_t at)
{
    return alloc.info.page_size ? (at - alloc.info.lowest) / alloc.info.page_size : 0;
}

static uint64_t object(uintptr_t at)
{
    return alloc.info.object_align ? (at - alloc.info.lowest) / alloc.info.object_align : 0;
}

static uint64_t stack(uintptr_t at)
{
    return alloc.info.min_stack ? (at - alloc.info.lowest) / alloc.info.min_stack : 0;
}

/* The bit length of a power of two: 2048 is 12. */
static uint64_t order(uint64_t size)
{
    return size ? (uint64_t)(64 - __builtin_clzll(size)) : 0;
}

/* Defines a function that writes one event with the given arguments; `parameters` follow the M. */
#define EXPAND(...) __VA_ARGS__
#define WRITES(name, type, parameters, ...)                                                        \
    bool name(trail_m *m, EXPAND parameters)                                                       \
    {                                                                                              \
        const uint64_t args[] = {__VA_ARGS__};                                                     \
        return write_event(m, #name, V2_##type, sizeof args / sizeof *args, args);                 \
    }

WRITES(trail_span_exists, Span, (uintptr_t base, uint64_t pages, uint64_t kind_class), page(base),
       pages, kind_class)
WRITES(trail_span_alloc, SpanAlloc, (uintptr_t base, uint64_t pages, uint64_t kind_class),
       page(base), pages, kind_class)
WRITES(trail_span_free, SpanFree, (uintptr_t base), page(base))

WRITES(trail_object_exists, HeapObject, (uintptr_t address, uint64_t type), object(address), type)
WRITES(trail_object_alloc, HeapObjectAlloc, (uintptr_t address, uint64_t type), object(address),
       type)
WRITES(trail_object_free, HeapObjectFree, (uintptr_t address), object(address))

WRITES(trail_stack_exists, GoroutineStack, (uintptr_t base, uint64_t size), stack(base),
       order(size))
WRITES(trail_stack_alloc, GoroutineStackAlloc, (uintptr_t base, uint64_t size), stack(base),
       order(size))
WRITES(trail_stack_free, GoroutineStackFree, (uintptr_t base), stack(base))
