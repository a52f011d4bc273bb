/* Prints numbers and text, for terminals and as JSON. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <trail/read.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/plain.h"
#include "base/show.h"

/* Whether the locale's text is UTF-8, by the variables that setlocale(3) reads. */
bool show_is_utf8(void);

/*
 * Write a duration to `buf` of SHOW_SIZE bytes and return it: "1.020 s", or in another form. In
 * UTF-8 microseconds have their sign.
 */
const char *show_duration(char *buf, int64_t ns);
const char *show_duration_as(char *buf, int64_t ns, enum duration_form form);

/*
 * Copies the text to `buf` of SHOW_SIZE bytes, which may be the text itself, after spaces that make
 * it `columns` wide on a terminal; printf counts bytes. Returns `buf`.
 */
const char *show_right(char *buf, int columns, const char *text);

/* Prints a text with durations, escaped as in base/plain.h; in UTF-8 with a micro sign. */
void show_figures(const char *text);

/* Prints text of a trace, a file name or the like, escaped as in base/plain.h. */
void show_plain(trail_string text); /* on stdout */
void show_plain_on(FILE *to, trail_string text);

/* Prints one formatted line on stdout or stderr, escaped as a whole. */
void show_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void show_error_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void show_line_on(FILE *to, const char *format, va_list args);

/* Notes that a part of the output is missing for lack of memory: the command will fail. */
void show_lacks(void);
bool show_is_whole(void);

/* Returns a JSON writer on stdout, which may be mixed with other output there. Only one at a
 * time. */
struct json json_on_stdout(void);
