/*
 * A trace that a command writes: appears complete or not at all, and is compressed if its name ends
 * in .gz or .zst. Messages and exit codes as in ui/cli.h.
 */
#ifndef TRAIL_UI_TRACE_FILE_H
#define TRAIL_UI_TRACE_FILE_H

#include "base/packed.h"
#include "ui/cli.h"

/* Must not move while it is open. */
struct trace_file {
    struct output output;
    struct packed packed; /* what is written goes through packed_sink(&packed) */
};

int open_trace_file(struct trace_file *file, const char *path);
int close_trace_file(struct trace_file *file, const char *path, bool made, int code);

#endif
