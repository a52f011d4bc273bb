/*
 * What the sub-commands share: exit codes, opening what a word names, telling errors, writing
 * stdout.
 */
#ifndef TRAIL_CLI_CLI_H
#define TRAIL_CLI_CLI_H

#include <stdbool.h>
#include <trail/export.h>

#include "cli/options.h"

enum exit_code {
    EXIT_GOOD = 0,
    EXIT_BAD = 1,   /* the trace is bad */
    EXIT_USAGE = 2, /* the command line is wrong */
    EXIT_INOUT = 3  /* cannot read or write */
};

/* The sub-commands, in the order of the help; ended by a row without a name. */
extern const struct command *const commands[];

extern const struct command command_info, command_print, command_check, command_assemble,
    command_completion;

/* The exit code that an error means. */
int exit_code_of(const trail_error *err);

/* Of several files the worst counts: that nothing could be read more than that something is bad. */
static inline int worse_exit(int a, int b)
{
    return a > b ? a : b;
}

/* An error without a position, to be filled. */
trail_error no_error(void);

/* Opens a path, or stdin for "-". NULL after telling why not. */
trail_source *open_source(const char *word, trail_error *err);

/* What to call the word in messages: "stdin" for "-". */
const char *source_title(const char *word);

/* Tells an error on stderr: "trail: FILE: message (offset ..., generation ...)". Returns its exit
 * code. */
int tell_error(const char *word, const trail_error *err);

/* Where output goes that does not pass through stdio; remembers why it failed. */
struct output {
    int fd;
    int reason; /* errno of the write that failed, 0: none did */
};

/* A sink that writes to `output`, which must live as long. */
trail_sink output_sink(struct output *output);

/* Tells that writing `title` failed. Returns EXIT_INOUT. */
int tell_output_error(const char *title, int reason);

/* Flushes stdout and tells if anything written there was lost. Returns `code`, or EXIT_INOUT. */
int finish_stdout(int code);

#endif
