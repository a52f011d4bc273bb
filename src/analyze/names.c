#include "analyze/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "wire/goroutine.h"

void names_begin_batch(struct names *names)
{
    uint64_t epoch = trail_reader_epoch(names->reader);
    if (names->epoch == epoch && names->handles > 0)
        return;
    size_t handles = trail_reader_string_count(names->reader);
    if (!GROW(names->by_handle, names->handle_capacity, handles)) {
        names->failed = true;
        handles = 0;
    }
    if (handles > 0)
        memset(names->by_handle, 0, handles * sizeof *names->by_handle);
    names->handles = handles;
    names->epoch = epoch;
}

trail_name names_put(struct names *names, const char *data, size_t size)
{
    bool fresh;
    /* A text that was interned but not stored would leave a gap. */
    if (size == 0 || names->failed)
        return 0;
    uint64_t number = intern_put(&names->intern, data, size, &fresh);
    if (number == 0 || number >= UINT32_MAX) {
        names->failed = true;
        return 0;
    }
    if (!fresh)
        return (trail_name)number;
    char *copy = arena_copy(&names->arena, data, size);
    if (!copy || !GROW(names->texts, names->capacity, (size_t)number + 1)) {
        names->failed = true;
        return 0;
    }
    names->texts[0] = (trail_string){"", 0};
    names->texts[number] = (trail_string){copy, size};
    names->count = (size_t)number + 1;
    return (trail_name)number;
}

trail_name names_look_up(struct names *names, trail_string_handle handle)
{
    trail_string text = trail_reader_string(names->reader, handle);
    trail_name name = names_put(names, text.data, text.size);
    if (handle < names->handles)
        names->by_handle[handle] = name;
    return name;
}

trail_name names_goroutine(struct names *names, int64_t id, trail_name start)
{
    char text[2048];
    trail_goroutine_label label;
    if (!trail_reader_goroutine(names->reader, id, &label))
        return start;
    trail_string name = label.name.size > 0 ? label.name : names_text(names, start);
    if (label.kind.size == 0)
        return names_put(names, name.data, name.size);
    int size = snprintf(text, sizeof text, "%.*s%s(%.*s)", (int)name.size, name.data,
                        name.size > 0 ? " " : "", (int)label.kind.size, label.kind.data);
    return names_put(names, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
}

/* MARK: Kinds of threads */

/* Returns the table's key for the kind, a text that no thread can have as its name. */
static trail_name put_kind(struct names *names, trail_string stem, char end)
{
    char text[256];
    if (stem.size >= sizeof text)
        return 0;
    memcpy(text, stem.data, stem.size);
    text[stem.size] = end;
    return names_put(names, text, stem.size + 1);
}

void names_learn(struct names *names, trail_name name, uint64_t pc, uint64_t file)
{
    static const char mark = '\1', any = '*';
    trail_string text = names_text(names, name), stem = text;
    if (pc < GOROUTINE_NAMED_PC || file != 0)
        return;
    while (stem.size > 0 && is_digit(stem.data[stem.size - 1]))
        stem.size--;
    /* "app+0x1240" is an address. */
    if (stem.size == 0 || stem.size == text.size || memmem(text.data, text.size, "+0x", 3) ||
        idmap_find(&names->kinds, name))
        return;
    trail_name kind = put_kind(names, stem, mark);
    trail_name several = put_kind(names, stem, any);
    if (kind == 0 || several == 0)
        return;
    bool first = names_text(names, kind).data[stem.size] == mark;
    names->texts[kind] = first ? text : names_text(names, several);
    names->failed |= !idmap_put(&names->kinds, name, (void *)(uintptr_t)kind);
}

trail_name names_find_kind(const struct names *names, trail_name name)
{
    uintptr_t kind = (uintptr_t)idmap_find(&names->kinds, name);
    return kind ? (trail_name)kind : name;
}

void names_free(struct names *names)
{
    idmap_free(&names->kinds);
    idmap_free(&names->waits);
    intern_free(&names->intern);
    arena_free(&names->arena);
    free(names->texts);
    free(names->by_handle);
}
