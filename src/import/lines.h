/* The lines of a source, one after the other, without their ends. The part of a line beyond
 * LINE_SIZE counts as a further line. */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

#define LINE_SIZE ((size_t)1 << 16)

/* Zero-initialised except for `source`. */
struct lines {
    trail_source *source;
    char *buf;
    size_t at, end; /* what has been read and not taken yet */
    bool over;
    trail_error *err;
    bool failed;
};

/* Takes the next line, valid until the next call. Returns false at the end, or if `failed`. */
bool lines_next(struct lines *lines, trail_string *line);

void lines_free(struct lines *lines);
