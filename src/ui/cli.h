/*
 * What the sub-commands share: exit codes, opening what a word names, telling errors, writing
 * stdout.
 */
#ifndef TRAIL_UI_CLI_H
#define TRAIL_UI_CLI_H

#include <stdbool.h>
#include <trail/export.h>

#include "base/error.h"
#include "base/output.h"
#include "ui/options.h"
#include "ui/terminal.h"

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_BAD = 1,   /* the trace is bad */
    EXIT_USAGE = 2, /* the command line is wrong, or the program cannot be recorded */
    EXIT_INOUT = 3  /* cannot read or write */
};

#define COMMAND(name, ...) extern const struct command command_##name;
#include "commands.def"
#undef COMMAND

/* Those that are in the help, in its order; ended by NULL. */
extern const struct command *const commands[];

/* The exit code that an error means. */
int exit_code_of(const trail_error *err);

/* Of several files the worst counts: that nothing could be read more than that something is bad. */
static inline int worse_exit(int a, int b)
{
    return a > b ? a : b;
}

/* What input_options say, see trail_source_limit_inflated; set before any source is opened. */
struct input_limits {
    uint64_t max_bytes, max_ratio;
};
extern struct input_limits input_limits;

/* The same source, limited; NULL stays NULL. */
trail_source *limit_source(trail_source *source);

/* Opens a path, or stdin for "-". NULL after telling why not. */
trail_source *open_source(const char *word, trail_error *err);

/* What to call the word in messages: "stdin" for "-". */
const char *source_title(const char *word);

/* Tells an error on stderr: "trail: FILE: message (offset ..., generation ...)". Returns its exit
 * code. */
int tell_error(const char *word, const trail_error *err);

/*
 * Prints "trail: " and the message as one line on stderr, shown as base/plain.h says: all messages
 * come through here, so that no name in one steers a terminal.
 */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same of a message that has lines of its own. */
void tell_lines(const char *message);

/* The text and below it a mark of `size` bytes at `begin`, after a message about it. */
void tell_place(const char *indent, const char *text, size_t begin, size_t size);

/* Tells an error whose message says what it is about. Returns its exit code. */
int tell_message(const trail_error *err);

/* output_open, output_open_beside: EXIT_GOOD, or EXIT_INOUT after telling why not. */
int open_output(struct output *output, const char *path);
int open_output_beside(struct output *output, const char *path);

/* output_close. Returns `code`, or EXIT_INOUT after telling what was lost. */
int close_output(struct output *output, const char *path, bool made, int code);

/* Tells that writing `title` failed. Returns EXIT_INOUT. */
int tell_output_error(const char *title, int reason);

/* Flushes stdout and tells if anything written there was lost. Returns `code`, or EXIT_INOUT. */
int finish_stdout(int code);

#endif
