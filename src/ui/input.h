/*
 * Input that is read more than once: a path is opened again each time, stdin is kept in memory.
 */
#ifndef TRAIL_UI_INPUT_H
#define TRAIL_UI_INPUT_H

#include <trail/read.h>

struct input {
    const char *word;
    char *data; /* all of stdin; NULL: open the word */
    size_t size;
};

/* Reads stdin now if it will be opened `again`. -1: *err says why. input_free is for both cases. */
int input_init(struct input *input, const char *word, bool again, trail_error *err);
trail_source *input_open(struct input *input, trail_error *err);
void input_free(struct input *input);

#endif
