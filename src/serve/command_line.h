/*
 * Builds the command line for an analysis requested through the API.
 *
 * A table (commands.def) lists the commands and options that a request may use, and the form of
 * each option's value. A value becomes part of one argument; no shell is involved.
 */
#pragma once

#include "serve/exchange.h"

enum { MOST_WORDS = 24 };

/* NULL-terminated arguments. Zero-initialised: empty. */
struct words {
    char *items[MOST_WORDS + 1];
    size_t count;
    bool failed; /* an argument is missing: out of memory */
};

/* Adds a formatted argument. Sets `failed` if out of memory or at the limit. */
void words_add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same with each of several words unchanged. */
#define WORDS_ADD(words, ...) words_add_each(words, (const char *const[]){__VA_ARGS__, NULL})
void words_add_each(struct words *words, const char *const *list);
void words_free(struct words *words);

/*
 * Returns the number of traces that the requested command reads: 1 or 2. 0: the command is not
 * allowed, and the request has been refused.
 */
unsigned command_line_traces(struct exchange *exchange);

/* Options of the server that are passed on to commands; NULL: not given. */
struct command_passed {
    const char *skip_frames; /* a file */
    const char *words;       /* "go" or "threads" */
};

struct command_files {
    const char *path;
    const char *other; /* the second trace; NULL: none */
    struct command_passed passed;
};

/*
 * Adds the arguments `trail COMMAND --json [options] -- PATH [OTHER]` for a request to /api/run.
 * Returns false if the request was refused. The caller frees the words in either case.
 */
bool command_line(struct exchange *exchange, const struct command_files *files,
                  struct words *words);
