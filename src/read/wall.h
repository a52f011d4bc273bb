/* The wall clock of a trace in a format without clock readings: its line (wire/wall.h). */
#pragma once

#include <trail/read.h>

#include "wire/wall.h"

/*
 * Writes the line for a reading to `room` of WALL_LINE bytes; empty for a time before 0 or a wall
 * clock before 1970, which the line cannot express.
 */
trail_string wall_line(const trail_clock_snapshot *clocks, char *room);

/* Finds the line among the strings of a v2 batch that trail_walk delivered, which is hostile
 * input. */
bool wall_in_batch(const trail_batch *batch, const uint8_t *data, trail_clock_snapshot *clocks);

/*
 * Returns in *wall_ns the wall clock at a time of the trace, in nanoseconds since 1970. Returns
 * false if it is out of range.
 */
bool wall_at(const trail_clock_snapshot *clocks, int64_t time_ns, int64_t *wall_ns);
