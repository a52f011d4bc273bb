/* The lines of a trace that count what a recording took and missed. */
#include "read/recorded.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/text.h"

/* Further lines, of a hostile trace, are ignored. */
#define MOST_ROWS 65536

static const char *const words[] = {
#define RECORDED(name, word) [TRAIL_RECORDED_##name] = word,
#include "wire/recorded.def"
};

enum { WORDS = sizeof words / sizeof *words };

const trail_recorded *recorded_program(const trail_reader *reader)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(reader, &rows);
    while (count > 0 && rows[count - 1].what != TRAIL_RECORDED_PROCESS)
        count--;
    return count > 0 ? &rows[count - 1] : NULL;
}

/* Takes "KEY=NUMBER " with at most 18 digits. */
static bool take_number(trail_string *rest, const char *key, uint64_t *number)
{
    size_t digits = 0;
    if (!text_take(rest, key))
        return false;
    *number = 0;
    for (; digits < rest->size && is_digit(rest->data[digits]); digits++)
        *number = *number * 10 + (uint64_t)(rest->data[digits] - '0');
    if (digits == 0 || digits > 18)
        return false;
    rest->data += digits;
    rest->size -= digits;
    return text_take(rest, " ");
}

static bool take_word(trail_string *rest, trail_recorded_what *what)
{
    for (unsigned i = 0; i < WORDS; i++)
        if (text_take(rest, words[i])) {
            *what = (trail_recorded_what)i;
            return text_take(rest, " ");
        }
    return false;
}

bool recorded_parse(trail_string line, trail_recorded *row)
{
    trail_string rest = line;
    trail_recorded parsed;
    uint64_t cpu, recorder;
    if (!text_take(&rest, RECORDED_PREFIX) || !take_word(&rest, &parsed.what) ||
        !take_number(&rest, "pid=", &parsed.pid) || !take_number(&rest, "count=", &parsed.count) ||
        !take_number(&rest, "cpu=", &cpu) || !take_number(&rest, "recorder=", &recorder) ||
        !text_take(&rest, "name=") || rest.size > RECORDED_NAME_MAX)
        return false;
    parsed.cpu_ns = (int64_t)cpu;
    parsed.recorder_ns = (int64_t)recorder;
    parsed.name = rest;
    *row = parsed;
    return true;
}

static uint64_t at_least_0(int64_t ns)
{
    return ns > 0 ? (uint64_t)ns : 0;
}

trail_string recorded_line(const trail_recorded *row, char *room)
{
    size_t name = row->name.size < RECORDED_NAME_MAX ? row->name.size : RECORDED_NAME_MAX;
    int size = snprintf(room, RECORDED_LINE,
                        RECORDED_PREFIX "%s pid=%" PRIu64 " count=%" PRIu64 " cpu=%" PRIu64
                                        " recorder=%" PRIu64 " name=%.*s",
                        words[row->what], row->pid, row->count, at_least_0(row->cpu_ns),
                        at_least_0(row->recorder_ns), (int)name, name ? row->name.data : "");
    return (trail_string){room, (size_t)size};
}

bool recorded_add(struct recorded_rows *rows, trail_string line)
{
    trail_recorded row;
    if (rows->count >= MOST_ROWS || !recorded_parse(line, &row))
        return true;
    if (!GROW(rows->at, rows->capacity, rows->count + 1))
        return false;
    row.name.data = arena_copy(&rows->names, row.name.data, row.name.size);
    if (!row.name.data)
        return false;
    rows->at[rows->count++] = row;
    return true;
}

void recorded_free(struct recorded_rows *rows)
{
    free(rows->at);
    arena_free(&rows->names);
}
