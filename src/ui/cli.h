/* What the sub-commands share: exit codes, opening files, error messages, writing to stdout. */
#pragma once

#include <stdbool.h>
#include <trail/export.h>

#include "base/error.h"
#include "base/output.h"
#include "ui/options.h"
#include "ui/terminal.h"

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_BAD = 1,   /* the trace is damaged */
    EXIT_USAGE = 2, /* the command line is wrong, or the program cannot be recorded */
    EXIT_INOUT = 3  /* cannot read or write */
};

#define COMMAND(name, ...) extern const struct command command_##name;
#include "commands.def"

/* The commands listed in the help, in its order; NULL-terminated. */
extern const struct command *const commands[];

/* Returns the exit code for an error. */
int exit_code_of(const trail_error *err);

/* Returns the worse of two exit codes, for several files: EXIT_INOUT is worse than EXIT_BAD. */
static inline int worse_exit(int a, int b)
{
    return a > b ? a : b;
}

/*
 * Set by input_options before any source is opened; see trail_source_limit_inflated and the
 * reader's option `threads`.
 */
struct input_limits {
    uint64_t max_bytes, max_ratio;
    unsigned threads;
};
extern struct input_limits input_limits;

/* Returns the same source with the limits applied; NULL for NULL. */
trail_source *limit_source(trail_source *source);

/* Opens a path, a part of a file (base/part_name.h), or stdin for "-". Returns NULL on error, with
 * *err set. */
trail_source *open_source(const char *word, trail_error *err);

/* Set by `trail watch`: a descriptor of the file, which open_source reads instead of opening the
 * path again. */
#define OPENED_VARIABLE "TRAIL_OPENED"

/* Returns the name of a file argument in messages: "stdin" for "-". */
const char *source_title(const char *word);

/* Prints an error on stderr: "trail: FILE: message (offset ..., generation ...)". Returns its exit
 * code. */
int print_error(const char *word, const trail_error *err);

/* What a command that cannot load libraries says instead of using one. */
#define STATIC_LACKS(library, what)                                                                \
    "this trail is static and cannot load " library ", which " what                                \
    " needs: use a trail that is installed from a package or built from source"

/*
 * Prints "trail: " and the message as one line on stderr, escaped as in base/plain.h. All messages
 * are printed by this function, so that no name in one can control a terminal.
 */
void print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for a message of several lines. */
void print_message_lines(const char *message);

/* Prints the text and below it a mark of `size` bytes at `begin`, after a message about it. */
void print_marked_text(const char *indent, const char *text, size_t begin, size_t size);

/* Prints an error whose message names its subject. Returns its exit code. */
int print_error_message(const trail_error *err);

/* Returns EXIT_INOUT; finish_stdout reports that memory was exhausted. */
int exit_no_memory(void);

/* output_open_beside with a message on errors. Returns EXIT_GOOD or EXIT_INOUT. */
int open_output_beside(struct output *output, const char *path);

/* output_close with a message on errors. Returns `code`, or EXIT_INOUT if output was lost. */
int close_output(struct output *output, const char *path, bool made, int code);

/* Prints that writing `title` failed. Returns EXIT_INOUT. */
int print_output_error(const char *title, int reason);

/*
 * Flushes stdout; prints a message if output was lost. Returns `code`, or EXIT_INOUT. If stdout is
 * a pipe whose reader has gone, prints nothing and ends the process by SIGPIPE, as other commands
 * do.
 */
int finish_stdout(int code);
