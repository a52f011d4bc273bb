/* The lines that count what a recording took and missed (wire/recorded.h), and a trace's rows. */
#pragma once

#include <trail/read.h>

#include "base/arena.h"
#include "wire/recorded.h"

/*
 * Returns the row of the recorded program, the process that began first: the recorder writes it
 * last. NULL: the trace names no process.
 */
const trail_recorded *recorded_program(const trail_reader *reader);

/*
 * Parses a line into *row, whose name points into the text. Returns false unless the text is
 * exactly such a line.
 */
bool recorded_parse(trail_string line, trail_recorded *row);

/* Writes the line for a row to `room` of RECORDED_LINE bytes. */
trail_string recorded_line(const trail_recorded *row, char *room);

/* The rows of a trace, across generations. Zero-initialized: empty. */
struct recorded_rows {
    trail_recorded *at;
    size_t count, capacity;
    struct arena names;
};

/* Adds the row of a line, and ignores malformed lines. Returns false if out of memory. */
bool recorded_add(struct recorded_rows *rows, trail_string line);
void recorded_free(struct recorded_rows *rows);
