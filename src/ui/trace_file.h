/*
 * A trace that a command writes: appears complete or not at all, and is compressed if its name ends
 * in .gz or .zst. Messages and exit codes as in ui/cli.h.
 */
#pragma once

#include "base/packed.h"
#include "ui/cli.h"

/* Must not move while it is open. */
struct trace_file {
    struct output output;
    struct packed packed; /* output is written through packed_sink(&packed) */
};

#define NO_BINARY_ON_TERMINAL "refusing to write binary output to a terminal: use --output=FILE"

/*
 * Checks the arguments of a command that makes one trace from one `source`, for example a
 * "recording": one file, and an output that is neither missing nor a terminal nor that file.
 * Returns EXIT_GOOD or EXIT_USAGE.
 */
int check_trace_output(const struct options *options, const char *source, const char *output);

int open_trace_file(struct trace_file *file, const char *path);
int close_trace_file(struct trace_file *file, const char *path, bool made, int code);
