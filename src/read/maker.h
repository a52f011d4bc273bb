/* The line that names what made a trace (wire/maker.h): parsing, writing, finding. */
#pragma once

#include <string.h>
#include <trail/read.h>

#include "wire/maker.h"

/*
 * Parses a line into *maker. Returns false, with *maker unchanged, unless the text is exactly such
 * a line.
 */
bool maker_parse(trail_string line, trail_maker *maker);

/* Writes the line for a maker to `room` of MAKER_LINE bytes; empty for Go. */
trail_string maker_line(const trail_maker *maker, char *room);

/*
 * Finds the line among the strings of a batch that trail_walk delivered, for a trace of that
 * version. The batch is hostile input.
 */
bool maker_in_batch(int version, const trail_batch *batch, const uint8_t *data, trail_maker *maker);

static inline bool maker_equal(const trail_maker *a, const trail_maker *b)
{
    return a->made_by == b->made_by && strcmp(a->task_word, b->task_word) == 0;
}
