/*
 * Output: where a command's output goes that does not pass through stdio, a file, a pipe or a terminal. A failure
 * to write is remembered, and returned when it is closed.
 *
 * A file that is opened beside its name appears whole or not at all. It has no name until it is complete, where the file
 * system knows such files (O_TMPFILE, open(2)), so that nothing is left of it whatever ends the process; elsewhere one
 * of its own.
 *
 * Nothing is printed here. Errors have the code TRAIL_IO and a whole sentence, "cannot write FILE: reason".
 */
#ifndef TRAIL_BASE_OUTPUT_H
#define TRAIL_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <trail/export.h>

#include "base/terminal.h"

/* Filled by output_open or output_open_beside; what these have opened ends with output_close or output_drop. */
struct output {
    int fd;           /* -1: not open */
    bool to_terminal; /* then through the guard */
    struct terminal terminal;
    int reason;    /* errno of what failed, 0: nothing did */
    bool nameless; /* it gets its name when it is complete, */
    char *beside;  /* ... or has this one until then; NULL: its own */
};

/* Opens `path` for writing, or stdout for "-". False with *err. */
bool output_open(struct output *output, const char *path, trail_error *err);

/* The same; a regular file gets its name, or takes the old one's place, when it is closed. */
bool output_open_beside(struct output *output, const char *path, trail_error *err);

/* A sink that writes to `output`, which must live as long. */
trail_sink output_sink(struct output *output);

/*
 * Closes it. A file that was not `made` is not left behind, where it would be taken for a trace. False with *err if
 * anything was lost.
 */
bool output_close(struct output *output, const char *path, bool made, trail_error *err);

/*
 * For several files that were opened beside and appear together or not at all: each is settled, which takes the room
 * that its name needs, then each is named. What is settled and not named is dropped. False with *err.
 */
bool output_settle(struct output *output, const char *path, trail_error *err);
bool output_name(struct output *output, const char *path, trail_error *err);
void output_drop(struct output *output);

/* Whether writing `path` would destroy what the word, a path or "-" for stdin, names before it is read. */
bool overwrites(const char *path, const char *word);

/*
 * That writing `title` has failed with the errno `reason`. Of a title that is too long for a message the end is shown.
 * Returns false, so that a function can end with `return output_error(...)`.
 */
bool output_error(trail_error *err, const char *title, int reason);

/* All of it with write(2). False with errno set. */
bool write_all(int fd, const void *data, size_t size);

#endif
