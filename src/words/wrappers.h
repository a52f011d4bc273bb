/*
 * Wrappers: which frame of a stack names a place. Functions that wait, lock or do I/O for their callers are passed
 * over, so that the place is the program's own; wrappers.def lists them, and --skip-frames adds to them. What is shown
 * of a stack is never shortened by this.
 */
#ifndef TRAIL_WORDS_WRAPPERS_H
#define TRAIL_WORDS_WRAPPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <trail/read.h>

/* How well a frame names a place, worst first. The innermost of the best ones does. */
enum frame_rank {
    FRAME_NAMELESS,
    FRAME_WRAPPER,
    FRAME_ADDRESS, /* "app+0x1234": the program's, without symbols */
    FRAME_OWN,
};

/* `skip` is patterns besides the table's, a line each as skip_pattern_error accepts them, NULL behind the last; or NULL. */
enum frame_rank frame_rank(const char *const *skip, trail_string function, trail_string file);

/* Whether a frame is of Go code, by its file. */
bool frame_is_go(trail_string file);

/*
 * Whether a line of --skip-frames is a pattern: a function's name, or "file:" and a file's; * stands for any text.
 * Returns NULL, or what is wrong with it.
 */
const char *skip_pattern_error(const char *line);

#endif
