/*
 * Prints numbers and text, for terminals and as JSON.
 */
#ifndef TRAIL_UI_SHOW_H
#define TRAIL_UI_SHOW_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <trail/read.h>

#include "base/json.h"
#include "base/plain.h"
#include "base/show.h"

/* Prints text of a trace, a file name or the like, escaped as in base/plain.h. */
void show_plain(trail_string text); /* on stdout */
void show_plain_on(FILE *to, trail_string text);

/* Prints one formatted line, escaped as a whole. */
void show_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void show_line_on(FILE *to, const char *format, va_list args);

/* Returns a JSON writer on stdout, which may be mixed with other output there. One at a time. */
struct json json_on_stdout(void);

#endif
