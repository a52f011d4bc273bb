/* The dictionary of a trace: its texts, stacks and frames, each added as a row when first seen. */
#include "tables/producer.h"

#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"

/* MARK: Texts */

static bool is_clean(trail_string text)
{
    return (text.size == 0 || !memchr(text.data, 0, text.size)) && utf8_valid(text);
}

/* Invalid UTF-8 becomes U+FFFD, and so do NULs, which not all systems accept in text. */
trail_string text_clean(struct trail_tables *tables, struct arena *arena, trail_string text)
{
    bool clean = is_clean(text);
    uint8_t *copy = arena_alloc(arena, text.size * (clean ? 1 : 3) + 1);
    if (!copy) {
        tables->failed = true;
        return (trail_string){"", 0};
    }
    if (!clean)
        text.size = utf8_repair(copy, text, UTF8_NUL_REPLACED);
    else if (text.size > 0)
        memcpy(copy, text.data, text.size);
    return (trail_string){(char *)copy, text.size};
}

trail_string text_look_up(struct trail_tables *tables, trail_name name)
{
    size_t count = tables->names.count;
    if (!GROW(tables->texts, tables->text_capacity, count)) {
        tables->failed = true;
        return (trail_string){"", 0};
    }
    for (size_t i = tables->text_count; i < count; i++) {
        trail_string text = names_text(&tables->names, (trail_name)i);
        tables->texts[i] = is_clean(text) ? text : text_clean(tables, &tables->arena, text);
    }
    tables->text_count = count;
    return name < count ? tables->texts[name] : (trail_string){"", 0};
}

static trail_string text_of_name(struct trail_tables *tables, trail_name name)
{
    return name < tables->text_count ? tables->texts[name] : text_look_up(tables, name);
}

trail_string text_of_bytes(struct trail_tables *tables, const char *data, size_t size)
{
    trail_name name = names_put(&tables->names, data, size);
    return name < tables->text_count ? tables->texts[name] : text_look_up(tables, name);
}

/* Adds a row for each text numbered since the last call. */
static bool strings_fill(struct trail_tables *tables)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_STRINGS];
    size_t before = tables->names.count > 0 ? tables->names.count : 1;
    size_t handles = trail_reader_string_count(tables->reader);
    for (size_t i = tables->string_handles; i < handles; i++)
        (void)text_of(tables, (trail_string_handle)i);
    tables->string_handles = handles;
    if (tables->failed || tables->names.failed)
        return false;
    if (tables->names.count <= before)
        return true;
    if (!rows_room(rows, tables->names.count - before))
        return false;
    for (size_t i = before; i < tables->names.count; i++) {
        size_t row = rows->count++;
        put_i32(rows, STRINGS_STRING, row, (int32_t)i);
        put_i64(rows, STRINGS_SIZE, row, (int64_t)names_text(&tables->names, (trail_name)i).size);
        put_text(rows, STRINGS_TEXT, row, text_of_name(tables, (trail_name)i));
    }
    return true;
}

/* MARK: Stacks */

static void stack_fill(struct trail_tables *tables, trail_stack stack)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_STACKS];
    struct stack_row frames = stacks_get(&tables->stacks, stack);
    if (frames.count == 0)
        return; /* stacks without frames have no number */
    size_t row = rows->count++;
    put_i32(rows, STACKS_STACK, row, (int32_t)stack);
    put_i32(rows, STACKS_DEPTH, row, (int32_t)frames.count);
    put_text_if(rows, STACKS_LEAF, row, text_of_name(tables, frames.places[0].function));
    put_text_if(rows, STACKS_FUNCTION, row,
                text_of_name(tables, stacks_function(&tables->stacks, stack)));
    put_text_if(rows, STACKS_ROOT, row,
                text_of_name(tables, frames.places[frames.count - 1].function));
}

static bool frames_fill(struct trail_tables *tables, trail_stack stack)
{
    struct rows *rows = &tables->rows[TRAIL_TABLE_FRAMES];
    struct stack_row frames = stacks_get(&tables->stacks, stack);
    if (!rows_room(rows, frames.count))
        return false;
    for (size_t i = 0; i < frames.count; i++) {
        size_t row = rows->count++;
        put_i32(rows, FRAMES_STACK, row, (int32_t)stack);
        put_i32(rows, FRAMES_FRAME, row, (int32_t)i);
        put_i64(rows, FRAMES_PC, row, (int64_t)frames.places[i].pc);
        put_text_if(rows, FRAMES_FUNCTION, row, text_of_name(tables, frames.places[i].function));
        put_text_if(rows, FRAMES_FILE, row, text_of_name(tables, frames.places[i].file));
        put_i64(rows, FRAMES_LINE, row, (int64_t)frames.places[i].line);
    }
    return true;
}

static bool stacks_fill(struct trail_tables *tables)
{
    bool stacks = wants_table(tables, TRAIL_TABLE_STACKS);
    size_t handles = trail_reader_stack_count(tables->reader);
    for (; tables->stack_handles < handles; tables->stack_handles++)
        (void)stacks_of(&tables->stacks, (trail_stack_handle)tables->stack_handles);
    size_t first = tables->stack_rows + 1, count = tables->stacks.count;
    if (count <= first)
        return true;
    tables->stack_rows = count - 1;
    if (stacks && !rows_room(&tables->rows[TRAIL_TABLE_STACKS], count - first))
        return false;
    for (size_t i = first; i < count; i++) {
        if (stacks)
            stack_fill(tables, (trail_stack)i);
        if (wants_table(tables, TRAIL_TABLE_FRAMES) && !frames_fill(tables, (trail_stack)i))
            return false;
    }
    return true;
}

bool dictionary_fill(struct trail_tables *tables)
{
    uint64_t epoch = trail_reader_epoch(tables->reader);
    if (!tables->has_epoch || epoch != tables->epoch) {
        tables->has_epoch = true;
        tables->epoch = epoch;
        tables->string_handles = tables->stack_handles = 0;
    }
    names_begin_batch(&tables->names);
    stacks_begin_batch(&tables->stacks);
    /* Strings first: they include those of stacks. */
    if (wants_table(tables, TRAIL_TABLE_STRINGS) && !strings_fill(tables))
        return false;
    if (tables->wants_stacks && !stacks_fill(tables))
        return false;
    return !tables->names.failed && !tables->stacks.failed && !tables->failed;
}
