/*
 * v1, input: the bytes of a trace, which are gone through several times. What is decoded never changes
 * meanwhile, whoever writes to the file: it is memory of the caller's, or a copy.
 *
 *   memory        in place
 *   plain file    a window for the sweep of the index, then a batch a time for each P, read again
 *   all else      kept whole: what comes through a pipe, or compressed, comes once
 *
 * The sweep looks at records as they arrive, so that what is no trace is refused where that shows.
 */
#ifndef TRAIL_READ_V1_INPUT_H
#define TRAIL_READ_V1_INPUT_H

#include "read/v1/record.h"

/* Owned by a reader; zero-initialised before v1_input_open. */
struct v1_input {
    trail_source *source; /* the caller's */
    bool in_place;
    bool again;            /* a plain file, of which `bytes` is a window */
    struct v1_bytes bytes; /* what is there */
    uint8_t *buffer;       /* behind them, unless in place */
    size_t capacity;
};

/* A copy of some of the bytes of a file. Zero-initialised is empty. */
struct v1_piece {
    uint8_t *data;
    size_t capacity;
};

/* Behind a piece come so many bytes that may be read, and mean nothing. */
#define V1_PIECE_SLACK 32

/* `keep`: all of it will be asked for in any order. -1 when memory is out: *err is set. */
int v1_input_open(struct v1_input *input, trail_source *source, bool keep, trail_error *err);
void v1_input_close(struct v1_input *input);

/*
 * Gets more bytes behind those that are there. Those before *at may go; *at is moved with its byte.
 * Returns 1, 0 at the end, -1 on an error.
 */
int v1_input_more(struct v1_input *input, const uint8_t **at, trail_error *err);

/*
 * [offset, offset + size) of a trace that was gone through: *bytes has at least these. `piece` holds
 * them if they are a copy. Returns -1 on an error.
 */
int v1_input_get(const struct v1_input *input, uint64_t offset, size_t size, struct v1_piece *piece,
                 struct v1_bytes *bytes, trail_error *err);

/* The size of the trace, as far as it is known. */
uint64_t v1_input_size(const struct v1_input *input);

#endif
