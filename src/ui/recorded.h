/* Loops over the rows of one kind of what a recording took and missed. */
#pragma once

#include <trail/read.h>

/* Returns the row of that kind after `row`, or the first for NULL; NULL: none left. */
static inline const trail_recorded *
recorded_next(const trail_reader *reader, trail_recorded_what what, const trail_recorded *row)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(reader, &rows);
    for (size_t i = row ? (size_t)(row - rows) + 1 : 0; i < count; i++)
        if (rows[i].what == what)
            return &rows[i];
    return NULL;
}

#define RECORDED_EACH(row, reader, what)                                                           \
    for (const trail_recorded *row = NULL; (row = recorded_next(reader, what, row)) != NULL;)
