/*
 * Wrap: a line that is wider than the terminal is broken between words, further lines indented. A command
 * that is to be copied gets a line of its own, and stays whole.
 */
#ifndef TRAIL_UI_WRAP_H
#define TRAIL_UI_WRAP_H

#include <stdbool.h>
#include <stddef.h>

/* Takes the next part of the output. Returns false on an error. */
typedef bool (*wrap_put_fn)(void *context, const char *data, size_t size);

/*
 * Puts a line without its end, broken where it would have more than `columns`: between words, but not
 * between a number and its unit. Colours ("\033[1m") have no columns. What is no sentence stays whole:
 * commands of trail, JSON, and a word that is too wide. Returns false if `put` does.
 */
bool wrap_line(const char *line, int columns, wrap_put_fn put, void *context);

#endif
