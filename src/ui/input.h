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

#endif
