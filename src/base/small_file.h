/*
 * Small files: one value or a few lines, reported by the kernel below /proc and /sys (proc(5),
 * sysfs(5)).
 */
#ifndef TRAIL_BASE_SMALL_FILE_H
#define TRAIL_BASE_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads the first `size` - 1 bytes of a file as text, without trailing white space. False if it
 * cannot be read.
 */
bool small_file_text(const char *path, char *text, size_t size);

/* Reads the decimal number at the beginning of a file. False if it cannot be read or has none. */
bool small_file_number(const char *path, long *number);

#endif
