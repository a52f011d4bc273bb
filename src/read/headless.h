/*
 * Headless: recognises a trace that has lost its header, as a log that was rotated while it was
 * being written, or whose first block was not.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the version of format with which data that begins with these bytes can be read as a
 * trace, 0 if it is none. `last` is the last byte of the data, -1 if unknown. *assumed: the data do
 * not show which of the versions from 1.22 on it is.
 */
int headless_version(const uint8_t *data, size_t size, int last, bool *assumed);
