/*
 * Complete reads and writes at given offsets of a regular file, across interruptions and short
 * transfers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Returns the number of bytes read, less than `size` only at the end of the file; -1 with errno
 * set.
 */
ssize_t file_read_at(int fd, void *buf, size_t size, int64_t place);

/* Writes all bytes. Returns false with errno set. */
bool file_write_at(int fd, const void *data, size_t size, int64_t place);
