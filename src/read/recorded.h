/* What a recording took and missed: reading and writing its lines (wire/recorded.h), and the rows of a trace. */
#ifndef TRAIL_READ_RECORDED_H
#define TRAIL_READ_RECORDED_H

#include <string.h>
#include <trail/read.h>

#include "base/arena.h"
#include "wire/recorded.h"

/* Parses a line into *row, whose name is within the text. Returns false unless the text is exactly such a line. */
bool recorded_parse(trail_string line, trail_recorded *row);

/* Writes the line for a row to `room` of RECORDED_LINE bytes. */
trail_string recorded_line(const trail_recorded *row, char *room);

/* Of a trace, kept across generations. Zero-initialised is empty. */
struct recorded_rows {
    trail_recorded *at;
    size_t count, capacity;
    struct arena names;
};

/* Adds the row of a line; one that is none is ignored. Returns false on out of memory. */
bool recorded_add(struct recorded_rows *rows, trail_string line);
void recorded_free(struct recorded_rows *rows);

#endif
