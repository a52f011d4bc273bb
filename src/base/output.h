/*
 * Output of commands that does not pass through stdio: to a file, a pipe or a terminal. A write
 * error is stored, and returned by the close.
 *
 * A file opened "beside" its name appears complete or not at all. Until it is complete it has no
 * name, if the file system supports that (O_TMPFILE, open(2)), so that nothing remains if the
 * process is killed; otherwise a temporary name that begins with a dot.
 *
 * Nothing is printed here. Errors have the code TRAIL_IO and the message "cannot write FILE:
 * reason".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <trail/export.h>

#include "base/terminal.h"

/* Filled by output_open or output_open_beside, and released by output_close or output_drop. */
struct output {
    int fd;           /* -1: not open */
    bool to_terminal; /* output passes through `terminal` */
    struct terminal terminal;
    int reason;    /* errno of the first error; 0: none */
    bool nameless; /* it has no name until it is complete */
    char *beside;  /* its temporary name until it is complete; NULL: none */
};

/* Opens `path` for writing, or stdout for "-". Returns false with *err. */
bool output_open(struct output *output, const char *path, trail_error *err);

/*
 * Like output_open, but a regular file gets its name, or replaces the old file, when it is closed.
 */
bool output_open_beside(struct output *output, const char *path, trail_error *err);

/*
 * Returns the temporary name "FOLDER/.NAME.ENDING" for a file or folder that is later named `path`;
 * NULL: out of memory. If the process is killed it remains, but readers of folders ignore names
 * that begin with a dot. The caller frees it.
 */
char *output_hidden(const char *path, const char *ending);

/* Returns a sink that writes to `output`, which must outlive it. */
trail_sink output_sink(struct output *output);

/*
 * Closes the output. A regular file that is not `made` (complete) is removed, so that it is not
 * taken for a trace. Returns false with *err if anything was lost.
 */
bool output_close(struct output *output, const char *path, bool made, trail_error *err);

/*
 * For several files, opened beside, that appear together or not at all: settle each, which needs
 * disk space for its name, then name each. output_drop removes a file that was settled but not
 * named. Return false with *err.
 */
bool output_settle(struct output *output, const char *path, trail_error *err);
bool output_name(struct output *output, const char *path, trail_error *err);
void output_drop(struct output *output);

/*
 * Whether writing `path` would destroy the input `word` (a path, or "-" for stdin) before it is
 * read.
 */
bool overwrites(const char *path, const char *word);

/*
 * Sets the error for a failed write of `title` with errno `reason`. A title that is too long for
 * the message keeps its end. Returns false, so that a function can end with `return
 * output_error(...)`.
 */
bool output_error(trail_error *err, const char *title, int reason);

/* Writes all bytes with write(2). Returns false with errno set. */
bool write_all(int fd, const void *data, size_t size);
