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
    EXIT_USAGE = 2, /* the command line is wrong, or the program cannot be recorded */
    EXIT_INOUT = 3  /* cannot read or write */
};

/* The sub-commands, in the order of the help; ended by a row without a name. */
extern const struct command *const commands[];

extern const struct command command_info, command_print, command_check, command_symbolize,
    command_record, command_convert, command_export, command_assemble, command_completion,
    command_doctor, command_env, command_goroutines, command_regions, command_tasks, command_mmu,
    command_gc, command_profile, command_latency, command_threads, command_procs, command_summary,
    command_why, command_sql, command_locks, command_find, command_diff, command_view,
    command_report, command_merge;

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
    int reason;    /* errno of the write that failed, 0: none did */
    bool nameless; /* it gets its name when it is complete, */
    char *beside;  /* ... or has this one until then; NULL: its own */
};

/* A sink that writes to `output`, which must live as long. */
trail_sink output_sink(struct output *output);

/* Whether writing `path` would destroy what the word names before it is read. */
bool overwrites(const char *path, const char *word);

/* Opens `path` for writing, or stdout for "-". EXIT_GOOD, or EXIT_INOUT after telling why not. */
int output_open(struct output *output, const char *path);

/*
 * The same; a regular file gets its name, or takes the old one's place, when it is closed. Until then it has none, where
 * the file system knows such files, so that nothing is left of it whatever ends the command.
 */
int output_open_beside(struct output *output, const char *path);

/*
 * Closes it and tells if anything was lost. A file that was not `made` is not left behind, where it
 * would be taken for a trace. Returns `code`, or EXIT_INOUT.
 */
int output_close(struct output *output, const char *path, bool made, int code);

/* Tells that writing `title` failed. Returns EXIT_INOUT. */
int tell_output_error(const char *title, int reason);

/* Flushes stdout and tells if anything written there was lost. Returns `code`, or EXIT_INOUT. */
int finish_stdout(int code);

#endif
