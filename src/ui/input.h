/* Input that is read more than once: a path is opened again each time, stdin is kept in memory. */
#ifndef TRAIL_UI_INPUT_H
#define TRAIL_UI_INPUT_H

#include <trail/read.h>

struct input {
    const char *word;
    char *data; /* all of stdin; NULL: open the path */
    size_t size;
};

/* Reads stdin into memory if it will be opened `again`. Returns -1 with *err set on error. Call
 * input_free in either case. */
int input_init(struct input *input, const char *word, bool again, trail_error *err);
trail_source *input_open(struct input *input, trail_error *err);
/*
 * Sets *hash to that of the bytes of the file, as they are, or of stdin, which has been read.
 * Returns -1 with *err set on error.
 */
int input_hash(const struct input *input, uint64_t *hash, trail_error *err);
void input_free(struct input *input);

/*
 * Opens the program of --binary, if there is one, for the names of a reader's functions. Returns the
 * exit code; the caller closes *symbols after the reader.
 */
struct symbols;
int open_binary(const char *path, struct symbols **symbols, trail_reader_options *options);

/* Prints what the reader assumed: output with invented events always comes with a message. */
void print_repairs(const char *word, const trail_reader *reader);

#endif
