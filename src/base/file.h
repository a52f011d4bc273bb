/*
 * Pieces of a regular file at places of their own, whole: a read that is cut short or interrupted goes on.
 */
#ifndef TRAIL_BASE_FILE_H
#define TRAIL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns how many bytes, fewer than `size` only at the file's end; -1 with errno set. */
ssize_t file_read_at(int fd, void *buf, size_t size, int64_t place);

/* False with errno set. */
bool file_write_at(int fd, const void *data, size_t size, int64_t place);

#endif
