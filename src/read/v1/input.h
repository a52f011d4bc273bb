/*
 * v1, input: the bytes of a trace, which is read several times. Decoded bytes never change
 * meanwhile, whatever is written to the file: they are the caller's memory, or a copy.
 *
 *   memory        in place
 *   plain file    a window for the sweep of the index, then a batch at a time for each P, read again
 *   other         kept whole: a pipe or compressed data can be read only once
 *
 * The sweep processes records as they arrive, so that an invalid trace is rejected early.
 */
#pragma once

#include "read/v1/record.h"

/* Owned by a reader; zero-initialized before v1_input_open. */
struct v1_input {
    trail_source *source; /* owned by the caller */
    bool in_place;
    bool again;            /* a plain file; `bytes` is a window of it */
    struct v1_bytes bytes; /* the available bytes */
    uint8_t *buffer;       /* holds them, unless in place */
    size_t capacity;
};

/* A copy of some bytes of a file. Zero-initialized: empty. */
struct v1_piece {
    uint8_t *data;
    size_t capacity;
};

/* Number of bytes after a piece that may be read and are 0. */
#define V1_PIECE_SLACK 32

/* `keep`: any offset may be requested in any order. Returns -1 with *err if out of memory. */
int v1_input_open(struct v1_input *input, trail_source *source, bool keep, trail_error *err);
void v1_input_close(struct v1_input *input);

/*
 * Appends bytes. Those before *at may be dropped; *at is moved accordingly. Returns 1, 0 at the
 * end, -1 on an error.
 */
int v1_input_more(struct v1_input *input, const uint8_t **at, trail_error *err);

/*
 * Returns in *bytes at least the range [offset, offset + size) of a trace that was swept. `piece`
 * holds them if they are a copy. Returns -1 on an error.
 */
int v1_input_get(const struct v1_input *input, uint64_t offset, size_t size, struct v1_piece *piece,
                 struct v1_bytes *bytes, trail_error *err);

/* Returns the size of the trace, as far as known. */
uint64_t v1_input_size(const struct v1_input *input);
