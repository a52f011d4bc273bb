/*
 * Source: the uncompressed bytes of a trace, from a file, a pipe, memory or a callback, plain or
 * compressed. They can be read as a stream (source_read) or as one piece (source_whole), for small
 * data. A plain file can be read again at any offset (source_again), as v1 does because its verdict
 * covers the whole file.
 */
#pragma once

#include <trail/read.h>

/*
 * Reads up to `size` bytes, as many as are available without waiting for more than the first.
 * Returns their number (at least 1), 0 at the end, -1 on an error with *err.
 */
ssize_t source_read(trail_source *source, void *buf, size_t size, trail_error *err);

/*
 * Skips `size` bytes, by seeking if possible. Returns the number skipped, less than `size` only at
 * the end; -1 on an error.
 */
int64_t source_skip(trail_source *source, uint64_t size, trail_error *err);

/*
 * Returns the rest of the source as one piece, in place or copied, and leaves the source at its
 * end. Valid until the source is closed. Returns -1 on an error; *data and *size are then what was
 * read before it (*data may be NULL).
 */
int source_whole(trail_source *source, const uint8_t **data, size_t *size, trail_error *err);

/*
 * Like source_whole if that needs no copy, that is, in memory. Otherwise returns false and changes
 * nothing.
 */
bool source_in_place(trail_source *source, const uint8_t **data, size_t *size);

/*
 * Copies up to `size` bytes, fewer only at the end, from `from` bytes after the current position,
 * which does not change. Returns -1 if the source is neither memory nor a plain file.
 */
ssize_t source_peek_at(const trail_source *source, uint64_t from, void *buf, size_t size);

/*
 * Replaces `source`, which must be unread, with a source of its bytes from `offset` on. Takes
 * ownership of `source`, even on failure, when it returns NULL with *err.
 */
trail_source *source_from(trail_source *source, int64_t offset, trail_error *err);

/*
 * For data that the reader of the source decompresses itself: returns -1 with *err if decompressing
 * `raw` bytes of this form into `size` bytes exceeds the source's limits.
 */
int source_limit(trail_source *source, const char *form, uint64_t raw, uint64_t size,
                 trail_error *err);

/*
 * Whether no other than zero bytes follow those delivered, as in a file whose space was reserved.
 * Returns false if the source is neither memory nor a plain file.
 */
bool source_only_zeros_follow(const trail_source *source);

/* Whether the trace has lost its header, which the source supplies. */
bool source_lacks_header(const trail_source *source);

/* Bytes of another kind after compressed data are an error from now on, as to Go's tools. */
void source_set_strict(trail_source *source);

/* trail_source_compression, but only what undoes it: not what follows, or lacks, the trace. */
const char *source_codec(const trail_source *source);

/* Whether it is a plain file, which source_again can read. */
bool source_is_file(const trail_source *source);

/*
 * Reads `size` bytes of a plain file at `offset` from the source's start. Returns -1 with *err on
 * an error or if the file ends before. Does not change the source.
 */
int source_again(const trail_source *source, uint64_t offset, void *buf, size_t size,
                 trail_error *err);

/*
 * Whether reads cannot block indefinitely: a file, memory, or a callback, which its owner can end.
 */
bool source_is_at_hand(const trail_source *source);

/*
 * Copies the first bytes without consuming them: up to `size`, fewer only if the source has no
 * more. Returns the number, -1 on an error. `size` is at most 64; only before anything was read.
 */
ssize_t source_peek(trail_source *source, void *buf, size_t size, trail_error *err);
