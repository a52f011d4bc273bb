/*
 * Small files: what the kernel reports in files of one value or a few lines, below /proc and /sys (proc(5), sysfs(5)).
 */
#ifndef TRAIL_BASE_SMALL_FILE_H
#define TRAIL_BASE_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The first `size` - 1 bytes of a file, as text without white space at its end. False: it cannot be read. */
bool small_file_text(const char *path, char *text, size_t size);

/* The decimal number that a file begins with. False: it cannot be read, or begins with none. */
bool small_file_number(const char *path, long *number);

#endif
