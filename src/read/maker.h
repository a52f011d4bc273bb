/* What made a trace, from its line (wire/maker.h) and back. */
#ifndef TRAIL_READ_MAKER_H
#define TRAIL_READ_MAKER_H

#include <string.h>
#include <trail/read.h>

#include "wire/maker.h"

static inline bool maker_is_line(trail_string text)
{
    return text.size >= sizeof MAKER_PREFIX &&
           memcmp(text.data, MAKER_PREFIX, sizeof MAKER_PREFIX - 1) == 0;
}

/* Takes a line into *maker. False, and *maker as it was, for any text that is not exactly such a line. */
bool maker_parse(trail_string line, trail_maker *maker);

/* The line for a maker, in `room` of MAKER_LINE; empty for Go. */
trail_string maker_line(const trail_maker *maker, char *room);

/*
 * Looks for the line among the strings of a batch, as trail_walk delivered it, of a trace of that version. Everything
 * in it is hostile.
 */
bool maker_in_batch(int version, const trail_batch *batch, const uint8_t *data, trail_maker *maker);

static inline bool maker_equal(const trail_maker *a, const trail_maker *b)
{
    return a->made_by == b->made_by && strcmp(a->task_word, b->task_word) == 0;
}

#endif
