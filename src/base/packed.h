/*
 * Output that is compressed if the file's name says so: zstd for "x.zst", gzip for "x.gz", else as
 * it is. A sink before another one:
 *
 *     struct packed packed;
 *     if (!packed_open(&packed, path, output_sink(&output)))
 *         ...
 *     trail_sink sink = packed_sink(&packed);
 *     ...
 *     good = packed_close(&packed) && good;
 */
#ifndef TRAIL_BASE_PACKED_H
#define TRAIL_BASE_PACKED_H

#include <stdbool.h>
#include <trail/export.h>

struct packer;

struct packed {
    trail_sink to;
    const struct packer *packer; /* NULL: as it is */
    void *state;                 /* of the compressing library */
};

/* Returns false with errno set on out of memory; nothing is then to be closed. */
bool packed_open(struct packed *packed, const char *path, trail_sink to);

/* Returns the sink. `packed` must outlive it, and not move. */
trail_sink packed_sink(struct packed *packed);

/* Writes what has not been written yet: the output can be read up to here if it is cut after it.
 * Returns false with errno set. */
bool packed_flush(struct packed *packed);

/* Ends the compressed data, which is necessary also after a failed write. Returns false with errno
 * set if they are not complete. */
bool packed_close(struct packed *packed);

#endif
