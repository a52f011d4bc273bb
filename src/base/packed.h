/*
 * Output that is compressed as the file's name requests: zstd for "x.zst", gzip for "x.gz", else
 * unchanged. It is a sink in front of another one:
 *
 *     struct packed packed;
 *     if (!packed_open(&packed, path, output_sink(&output)))
 *         ...
 *     trail_sink sink = packed_sink(&packed);
 *     ...
 *     good = packed_close(&packed) && good;
 */
#pragma once

#include <stdbool.h>
#include <trail/export.h>

struct packer;

struct packed {
    trail_sink to;
    const struct packer *packer; /* NULL: not compressed */
    void *state;                 /* of the compressing library */
};

/* Returns false with errno set if out of memory; nothing needs closing then. */
bool packed_open(struct packed *packed, const char *path, trail_sink to);

/* Returns the sink. `packed` must outlive it, and not move. */
trail_sink packed_sink(struct packed *packed);

/* Writes everything pending: if the output is truncated later, it can be read up to here. Returns
 * false with errno set. */
bool packed_flush(struct packed *packed);

/* Ends the compressed data. Must be called even after a failed write. Returns false with errno
 * set if the data are incomplete. */
bool packed_close(struct packed *packed);
