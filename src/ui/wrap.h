/*
 * Wrap: breaks lines that are wider than the terminal between words, and indents the continuation.
 * A command to be copied gets a line of its own, unbroken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Takes the next part of the output. Returns false on an error. */
typedef bool (*wrap_put_fn)(void *context, const char *data, size_t size);

/*
 * Writes a line without its end, broken where it would exceed `columns`: between words, but not
 * between a number and its unit. Colours ("\033[1m") have no columns. Commands of trail, JSON and
 * words that are too wide are not broken. Returns false if `put` does.
 */
bool wrap_line(const char *line, int columns, wrap_put_fn put, void *context);
