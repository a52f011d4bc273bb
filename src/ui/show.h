/*
 * Showing numbers and text: for people, and as JSON.
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

/* Text of a trace, a file name or the like, shown as base/plain.h says. */
void show_plain(trail_string text); /* on stdout */
void show_plain_on(FILE *to, trail_string text);

/* One line of text, all of which is shown so. */
void show_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void show_line_on(FILE *to, const char *format, va_list args);

/* A writer of JSON on stdout, which goes on with what is printed there by other means. One at a time. */
struct json json_on_stdout(void);

#endif
