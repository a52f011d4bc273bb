/* Strings, stacks and frames of a trace: maps IDs of the file to dense handles. */
#include "read/tables.h"

#include "base/grow.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#include "read/maker.h"

/* MARK: ID tables */

/*
 * IDs below this are kept in the array: a small multiple of the number defined, so bounded by the
 * input.
 */
static size_t dense_limit(const struct idtable *table)
{
    return 1024 + table->count * 4;
}

static bool dense_grow(struct idtable *table, uint64_t id)
{
    size_t size = table->dense_size ? table->dense_size : 1024;
    while (size <= id)
        size *= 2;
    uint32_t *dense = realloc(table->dense, size * sizeof *dense);
    if (!dense)
        return false;
    memset(dense + table->dense_size, 0, (size - table->dense_size) * sizeof *dense);
    size_t old_size = table->dense_size;
    table->dense = dense;
    table->dense_size = size;
    IDMAP_EACH(slot, &table->sparse) {
        if (slot->id >= old_size && slot->id < size)
            dense[slot->id] = (uint32_t)(uintptr_t)slot->value;
    }
    return true;
}

static bool idtable_put(struct idtable *table, uint64_t id, uint32_t handle)
{
    if (id >= table->dense_size && id < dense_limit(table) && !dense_grow(table, id))
        return false;
    table->count++;
    if (id < table->dense_size) {
        table->dense[id] = handle + 1;
        return true;
    }
    return idmap_put(&table->sparse, id, (void *)((uintptr_t)handle + 1));
}

/* Empties the table except for ID 0, which has handle 0. */
static bool idtable_clear(struct idtable *table)
{
    if (table->dense)
        memset(table->dense, 0, table->dense_size * sizeof *table->dense);
    else if (!dense_grow(table, 0))
        return false;
    table->dense[0] = 1;
    idmap_clear(&table->sparse);
    table->count = 0;
    return true;
}

static void idtable_free(struct idtable *table)
{
    free(table->dense);
    idmap_free(&table->sparse);
    *table = (struct idtable){0};
}

/* MARK: Tables */

static void settle_full(const struct tables *t, size_t count, size_t capacity)
{
    if (count > capacity && t->settle)
        t->settle(t->settle_context);
}

/* When reading ahead, the caller's thread reads the counts at the same time. */
static void count_to(size_t *count, size_t value)
{
    __atomic_store_n(count, value, __ATOMIC_RELAXED);
}

static bool push_string(struct tables *t, trail_string text)
{
    settle_full(t, t->string_count + 1, t->string_capacity);
    if (!GROW(t->strings, t->string_capacity, t->string_count + 1))
        return false;
    t->strings[t->string_count] = text;
    count_to(&t->string_count, t->string_count + 1);
    return true;
}

static bool push_stack(struct tables *t, uint64_t id, size_t count)
{
    size_t capacity = t->stack_capacity;
    settle_full(t, t->stack_count + 1, capacity);
    if (!GROW(t->stack_file_ids, capacity, t->stack_count + 1) ||
        !GROW(t->stacks, t->stack_capacity, t->stack_count + 1))
        return false;
    t->stack_file_ids[t->stack_count] = id;
    t->stacks[t->stack_count] =
        (struct table_stack){.first = (uint32_t)t->frame_count, .count = (uint32_t)count};
    count_to(&t->stack_count, t->stack_count + 1);
    return true;
}

bool tables_reset(struct tables *t)
{
    if (!idtable_clear(&t->string_ids) || !idtable_clear(&t->stack_ids))
        return false;
    idmap_clear(&t->pc_frames);
    idmap_clear(&t->goroutines);
    arena_reset(&t->extra);
    t->string_count = t->stack_count = t->frame_count = 0;
    t->epoch++;
    return push_string(t, (trail_string){.data = "", .size = 0}) && push_stack(t, 0, 0);
}

void tables_free(struct tables *t)
{
    idtable_free(&t->string_ids);
    idtable_free(&t->stack_ids);
    idmap_free(&t->pc_frames);
    idmap_free(&t->goroutines);
    arena_free(&t->extra);
    recorded_free(&t->recorded);
    free(t->strings);
    free(t->stacks);
    free(t->stack_file_ids);
    free(t->frames);
    *t = (struct tables){0};
}

/* Strings have no order: of several lines for a goroutine, the one with the newest change
 * counts. */
static bool add_goroutine(struct tables *t, trail_string line)
{
    struct identity identity;
    if (!identity_parse(line, &identity))
        return true;
    struct identity *known = idmap_find(&t->goroutines, identity.id);
    if (!known) {
        known = arena_alloc(&t->extra, sizeof *known);
        if (!known || !idmap_put(&t->goroutines, identity.id, known))
            return false;
        *known = identity;
        return true;
    }
    if (!identity.stack)
        identity.stack = known->stack;
    if (identity.change >= known->change)
        *known = identity;
    known->stack = identity.stack;
    return true;
}

enum table_result tables_add_string(struct tables *t, uint64_t id, trail_string text)
{
    uint32_t taken;
    if (tables_string(t, id, &taken))
        return TABLE_DUPLICATE;
    if (t->string_count >= UINT32_MAX)
        return TABLE_FULL;
    if (!push_string(t, text) || !idtable_put(&t->string_ids, id, (uint32_t)t->string_count - 1))
        return TABLE_NO_MEMORY;
    if (text_begins(text, MAKER_PREFIX) && t->maker.made_by == TRAIL_MADE_BY_GO)
        (void)maker_parse(text, &t->maker);
    if (text_begins(text, RECORDED_PREFIX) && !recorded_add(&t->recorded, text))
        return TABLE_NO_MEMORY;
    if (text_begins(text, GOROUTINE_PREFIX) && !add_goroutine(t, text))
        return TABLE_NO_MEMORY;
    return TABLE_OK;
}

/* Until tables_resolve_frames, `function` and `file` are IDs of the file, not handles. */
static bool push_frame(struct tables *t, const uint64_t raw[4])
{
    size_t first = (size_t)(uintptr_t)idmap_find(&t->pc_frames, raw[0]);
    if (first) {
        t->frames[t->frame_count] = t->frames[first - 1];
        t->frame_count++;
        return true;
    }
    t->frames[t->frame_count++] = (trail_frame){
        .pc = raw[0],
        /* IDs above 32 bits cannot be defined in a valid file: they become an undefined one. */
        .function = raw[1] > UINT32_MAX ? UINT32_MAX : (uint32_t)raw[1],
        .file = raw[2] > UINT32_MAX ? UINT32_MAX : (uint32_t)raw[2],
        .line = raw[3],
    };
    return idmap_put(&t->pc_frames, raw[0], (void *)(uintptr_t)t->frame_count);
}

static bool reserve_frames(struct tables *t, size_t count)
{
    settle_full(t, t->frame_count + count, t->frame_capacity);
    return GROW(t->frames, t->frame_capacity, t->frame_count + count);
}

static enum table_result push_frames(struct tables *t, const uint64_t *raw, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!push_frame(t, raw + 4 * i))
            return TABLE_NO_MEMORY;
    return TABLE_OK;
}

enum table_result tables_add_stack(struct tables *t, uint64_t id, const uint64_t *raw, size_t count)
{
    uint32_t taken;
    if (tables_stack(t, id, &taken))
        return TABLE_DUPLICATE;
    if (t->stack_count >= UINT32_MAX || t->frame_count > UINT32_MAX - count)
        return TABLE_FULL;
    if (!reserve_frames(t, count) || !push_stack(t, id, count) ||
        !idtable_put(&t->stack_ids, id, (uint32_t)t->stack_count - 1))
        return TABLE_NO_MEMORY;
    return push_frames(t, raw, count);
}

enum table_result tables_replace_stack(struct tables *t, uint64_t id, const uint64_t *raw,
                                       size_t count)
{
    uint32_t taken;
    if (!tables_stack(t, id, &taken))
        return tables_add_stack(t, id, raw, count);
    if (t->frame_count > UINT32_MAX - count)
        return TABLE_FULL;
    if (!reserve_frames(t, count))
        return TABLE_NO_MEMORY;
    t->stacks[taken] =
        (struct table_stack){.first = (uint32_t)t->frame_count, .count = (uint32_t)count};
    return push_frames(t, raw, count);
}

bool tables_resolve_frames(struct tables *t, uint64_t *bad_stack, uint64_t *bad_string,
                           bool *bad_is_file)
{
    bool good = true;
    for (size_t s = 0; s < t->stack_count; s++) {
        for (uint32_t i = 0; i < t->stacks[s].count; i++) {
            trail_frame *frame = &t->frames[t->stacks[s].first + i];
            uint64_t function = frame->function, file = frame->file;
            bool function_known = tables_string(t, function, &frame->function);
            bool file_known = tables_string(t, file, &frame->file);
            if (good && !(function_known && file_known)) {
                good = false;
                *bad_stack = t->stack_file_ids[s];
                *bad_is_file = function_known;
                *bad_string = function_known ? file : function;
            }
        }
    }
    return good;
}

trail_string_handle tables_text(struct tables *t, trail_string text)
{
    if (text.size == 0 || t->string_count >= UINT32_MAX || !push_string(t, text))
        return 0;
    return (trail_string_handle)(t->string_count - 1);
}

trail_string_handle tables_extra_string(struct tables *t, const char *data, size_t size)
{
    if (size == 0 || t->string_count >= UINT32_MAX)
        return 0;
    char *copy = arena_copy(&t->extra, data, size);
    if (!copy || !push_string(t, (trail_string){.data = copy, .size = size}))
        return 0;
    return (trail_string_handle)(t->string_count - 1);
}
