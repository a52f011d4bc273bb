/*
 * Wrappers: which frame of a stack names a place. Functions that wait, lock or do I/O for their
 * callers are skipped, so that the place is in the program itself. wrappers.def lists them, and
 * --skip-frames adds to them. Stacks are always shown in full.
 */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

/* How well a frame names a place, worst first. The innermost frame of the best rank names it. */
enum frame_rank {
    FRAME_NAMELESS,
    FRAME_WRAPPER,
    FRAME_ADDRESS, /* "app+0x1234": in the program, without symbols */
    FRAME_RUNTIME, /* runs the program's functions in another language */
    FRAME_OWN,
};

/* Ranks a frame. `skip` has patterns in addition to the table's, each valid for skip_pattern_error,
 * NULL-terminated; or NULL. */
enum frame_rank frame_rank(const char *const *skip, trail_string function, trail_string file);

/* Whether a pattern covers the whole text: * stands for any text, and template arguments may
 * follow. */
bool pattern_covers(const char *pattern, trail_string text);

/* Whether a frame is Go code, judging by its file. */
bool frame_is_go(trail_string file);

/*
 * Checks a line of --skip-frames: a function's name, or "file:" and a file's; * matches any text.
 * Returns NULL, or a description of the error.
 */
const char *skip_pattern_error(const char *line);
