/*
 * Source: where the bytes of a trace come from, uncompressed. Above it nobody knows whether it is a
 * file, a pipe, memory or gzip. Two ways to take them: as a stream (source_read), or as one contiguous
 * whole (source_whole), for small things. A plain file can be read anywhere again (source_again), which
 * v1 does because its verdict covers the whole file.
 */
#ifndef TRAIL_READ_SOURCE_H
#define TRAIL_READ_SOURCE_H

#include <trail/read.h>

/*
 * Reads up to `size` bytes, as many as are there without waiting for more once some are. Returns
 * the number (at least 1), 0 at the end, -1 on an error: *err is set.
 */
ssize_t source_read(trail_source *source, void *buf, size_t size, trail_error *err);

/*
 * Skips `size` bytes; seeks where it can. Returns the number skipped (less than `size` only at the
 * end), -1 on an error.
 */
int64_t source_skip(trail_source *source, uint64_t size, trail_error *err);

/*
 * The rest of the source from where it stands as one piece, in place or read. Valid until the source
 * is closed; the source is at its end afterwards. Returns -1 on an error: *data and *size are what
 * came before it (*data may be NULL).
 */
int source_whole(trail_source *source, const uint8_t **data, size_t *size, trail_error *err);

/* The same if it costs no copy, which is so in memory. Returns false, with nothing changed, if not. */
bool source_in_place(trail_source *source, const uint8_t **data, size_t *size);

/*
 * Copies up to `size` bytes, fewer only at the end, from `from` behind where the source stands, which
 * does not change. -1 if that cannot be done: only memory and plain files can.
 */
ssize_t source_look(const trail_source *source, uint64_t from, void *buf, size_t size);

/* A plain file, which source_again can read. */
bool source_is_file(const trail_source *source);

/*
 * Reads `size` bytes of a plain file at `offset` from where the source began. Returns -1 on an error,
 * also if the file ends before: *err is set. Of the source nothing changes.
 */
int source_again(const trail_source *source, uint64_t offset, void *buf, size_t size,
                 trail_error *err);

/* It is a file, memory, or a callback, which can be told to return: nobody has to be waited for. */
bool source_is_at_hand(const trail_source *source);

/*
 * The first bytes without taking them: up to `size`, fewer only if the source has no more. Returns
 * the number, -1 on an error. `size` at most 64, only before anything was read.
 */
ssize_t source_peek(trail_source *source, void *buf, size_t size, trail_error *err);

#endif
