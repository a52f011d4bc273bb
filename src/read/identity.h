/*
 * Names and kinds that a host gave its goroutines: the lines of wire/goroutine.h in the strings of
 * a generation (v2) or of the file (v1). The first fields of a line are numbers, the last are
 * texts.
 */
#pragma once

#include <trail/read.h>

#include "wire/goroutine.h"

/* A line; its texts are not copied. */
struct identity {
    uint64_t id, change, stack; /* 0: the line has no such field */
    trail_string name, kind;
};

/* Returns false unless the text is exactly such a line. */
bool identity_parse(trail_string line, struct identity *identity);

/* Size of a line with a name and a kind, which are cut to IDENTITY_TEXT_MAX bytes each. */
#define IDENTITY_TEXT_MAX 256
#define IDENTITY_LINE                                                                              \
    (sizeof GOROUTINE_PREFIX + (size_t)3 * 32 + (size_t)2 * (IDENTITY_TEXT_MAX + 8))

/* Writes the line to `room` of IDENTITY_LINE bytes. */
trail_string identity_line(const struct identity *identity, char *room);
