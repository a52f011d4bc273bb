/*
 * Recordings in binary forms that only their recorder's own tool can read: the tool is started, and
 * its output is the source.
 */
#pragma once

#include <sys/types.h>
#include <trail/read.h>

struct tool {
    const char *name; /* of the program */
    pid_t pid;        /* 0: not started */
    int fd;           /* its output */
};

/*
 * Starts argv[0], found by PATH, with its input and messages at /dev/null. Returns a source of its
 * output, to be closed before tool_end; NULL with *err, code TRAIL_IO and errno preserved, if it
 * cannot be started.
 */
trail_source *tool_start(struct tool *tool, char *const *argv, trail_error *err);

/* Waits for the end. Returns 0, or -1 with *err if the tool has failed; `read`: all of its output
 * was read. */
int tool_end(struct tool *tool, bool read, trail_error *err);
