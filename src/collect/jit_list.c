/* Reads the list of generated code: see jit_list.h. */
#include "collect/jit_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

#define MOST_CODE 1000000
#define MOST_NAME 512
/* Code replaced by longer code at a lower address is rare: only this many pieces before an address
 * are tried. */
#define LOOK_BACK 8

/* MARK: Adding */

/* False: no memory. */
static bool add_line(struct jit_list *list, struct arena *arena, const char *line, size_t size)
{
    char text[MOST_NAME + 40];
    unsigned long long start, length;
    int at = 0;
    if (size >= sizeof text)
        size = sizeof text - 1;
    memcpy(text, line, size);
    text[size] = '\0';
    if (sscanf(text, "%llx %llx %n", &start, &length, &at) != 2 || at == 0 || !text[at] ||
        length == 0 || start + length < start)
        return true;
    if (!GROW(list->code, list->room, list->count + 1))
        return false;
    size_t name_size = strlen(text + at);
    const char *name = arena_copy(arena, text + at, name_size);
    if (!name)
        return false;
    list->code[list->count] =
        (struct jit_code){start, start + length, list->count, {name, name_size}};
    list->count++;
    return true;
}

bool jit_list_add(struct jit_list *list, struct arena *arena, const char *text, size_t size,
                  size_t *done)
{
    const char *end;
    *done = 0;
    while ((end = memchr(text + *done, '\n', size - *done)) != NULL) {
        size_t line_size = (size_t)(end - text) - *done;
        if (list->count < MOST_CODE && !add_line(list, arena, text + *done, line_size))
            return false;
        *done += line_size + 1;
    }
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct jit_code *x = a, *y = b;
    return ORDER(x->start, y->start) ?: ORDER(x->line, y->line);
}

void jit_list_sort(struct jit_list *list)
{
    if (list->count)
        qsort(list->code, list->count, sizeof list->code[0], by_start);
}

/* MARK: Finding */

static const struct jit_code *code_at(const struct jit_list *list, uint64_t address)
{
    size_t behind = SEARCH(i, 0, list->count, list->code[i].start <= address);
    const struct jit_code *found = NULL;
    for (size_t back = 1; back <= LOOK_BACK && back <= behind; back++) {
        const struct jit_code *code = &list->code[behind - back];
        if (address < code->end && (!found || code->line > found->line))
            found = code;
    }
    return found;
}

/* Takes the number after the last ':' off a text. False: there is none. */
static bool take_number(trail_string *text, uint64_t *number)
{
    size_t at = text->size;
    uint64_t value = 0, unit = 1;
    while (at > 0 && text->size - at < 9 && text->data[at - 1] >= '0' &&
           text->data[at - 1] <= '9') {
        value += unit * (uint64_t)(text->data[--at] - '0');
        unit *= 10;
    }
    if (at == text->size || at == 0 || text->data[at - 1] != ':')
        return false;
    text->size = at - 1;
    *number = value;
    return true;
}

/* Node.js: "JS:*name /path/file.js:LINE:COLUMN"; the character before the name shows how the code
 * was compiled. */
static bool read_node(trail_string name, trail_symbol *symbol)
{
    const char kinds[] = "~*^+'";
    uint64_t column;
    if (name.size < 4 || memcmp(name.data, "JS:", 3) != 0)
        return false;
    name.data += 3;
    name.size -= 3;
    if (strchr(kinds, name.data[0])) {
        name.data++;
        name.size--;
    }
    *symbol = (trail_symbol){.function = name};
    const char *space = memrchr(name.data, ' ', name.size);
    trail_string place =
        space ? (trail_string){space + 1, name.size - (size_t)(space + 1 - name.data)} : name;
    if (space && take_number(&place, &column) && take_number(&place, &symbol->line)) {
        symbol->file = place;
        symbol->function.size = (size_t)(space - name.data);
    }
    if (symbol->function.size == 0)
        symbol->function = (trail_string){"(anonymous)", strlen("(anonymous)")};
    return true;
}

/* Python: "py::name:/path/file.py". */
static bool read_python(trail_string name, trail_symbol *symbol)
{
    if (name.size < 5 || memcmp(name.data, "py::", 4) != 0)
        return false;
    name.data += 4;
    name.size -= 4;
    const char *colon = memchr(name.data, ':', name.size);
    if (colon == name.data)
        return false;
    *symbol = (trail_symbol){.function = name};
    if (colon) {
        symbol->function.size = (size_t)(colon - name.data);
        symbol->file = (trail_string){colon + 1, name.size - symbol->function.size - 1};
    }
    return true;
}

bool jit_list_find(const struct jit_list *list, uint64_t address, trail_symbol *symbol)
{
    const struct jit_code *code = code_at(list, address);
    if (!code)
        return false;
    if (!read_node(code->name, symbol) && !read_python(code->name, symbol))
        *symbol = (trail_symbol){.function = code->name};
    return true;
}

void jit_list_free(struct jit_list *list)
{
    free(list->code);
    *list = (struct jit_list){0};
}
