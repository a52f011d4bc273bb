/* Input that is read more than once: a path is opened again each time, stdin and pipes are kept in
 * memory. */
#pragma once

#include <trail/read.h>

struct input {
    const char *word;
    char *data; /* all of stdin or a pipe; NULL: open the path */
    size_t size;
};

/* Reads stdin or a pipe into memory if it will be opened `again`. Returns -1 with *err set on
 * error. input_free must be called in either case. */
int input_init(struct input *input, const char *word, bool again, trail_error *err);
trail_source *input_open(struct input *input, trail_error *err);

/*
 * The ID of a trace, in all tables: derived from its host and its content, so that it does not
 * change with its name or compression. Opens the input again, and reads all of it. For a damaged
 * file it covers what can be read; the reader of the tables reports the damage.
 */
#define TRACE_ID_SIZE 17 /* 16 hexadecimal digits */
void input_trace_id(struct input *input, const char *host, char id[TRACE_ID_SIZE]);

void input_free(struct input *input);

/*
 * Opens the program of --binary, if there is one, for the names of a reader's functions. Returns
 * the exit code; the caller closes *symbols after the reader. Closing reports why names are
 * missing.
 */
struct symbols;
int open_binary(const char *path, struct symbols **symbols, trail_reader_options *options);
void close_binary(struct symbols *symbols);

/* Prints what the reader assumed: output with invented events always comes with a message. */
void print_repairs(const char *word, const trail_reader *reader);
