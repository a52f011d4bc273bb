/*
 * Plain: text of traces, file names and command lines as shown to people. What would control a
 * terminal or reverse the text becomes an escape, as in Go's quotes but without the quotes: control
 * characters (C0, DEL, C1), direction marks and all others that Go does not print as they are
 * (rune_is_print), and bytes that are not UTF-8. Different texts stay different, except for
 * backslashes, which are not escaped.
 *
 * This is the one rule for all output for people, on terminals and in files.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PLAIN_MOST = 10 }; /* maximum bytes of one character: \U000e0001 */

/*
 * Writes the character at [at, end), which is not empty, in shown form to `to`: *size bytes, not
 * terminated. Returns the number of bytes it has in the input.
 */
unsigned plain_step(const uint8_t *at, const uint8_t *end, char to[PLAIN_MOST], unsigned *size);

/*
 * Writes text in shown form to `to`, of `room` bytes (at least 1), terminated; truncated between
 * characters. Returns the length.
 */
size_t plain_copy(char *to, size_t room, const char *data, size_t size);

/*
 * Replaces the text in `buf` of `room` bytes by its shown form, truncated like plain_copy. Takes at
 * most PLAIN_INSIDE bytes. Returns `buf`.
 */
enum { PLAIN_INSIDE = 4096 };
char *plain_inside(char *buf, size_t room);

/* Returns the text in shown form, terminated, to be freed by the caller. NULL if out of memory. */
char *plain_new(const char *data, size_t size);
