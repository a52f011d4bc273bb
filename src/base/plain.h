/*
 * Plain: text of traces, file names and command lines as people may see it. What would steer a
 * terminal or turn its text around becomes an escape, as in Go's quotes but without these: control
 * characters (C0, DEL, C1), marks of direction and all others that Go does not print as they are
 * (rune_is_print), and bytes that are not UTF-8. Different text stays different, but for
 * backslashes, which stay as they are.
 *
 * This is the one rule for all that people read, on any terminal, in any file.
 */
#ifndef TRAIL_BASE_PLAIN_H
#define TRAIL_BASE_PLAIN_H

#include <stddef.h>
#include <stdint.h>

enum { PLAIN_MOST = 10 }; /* bytes of one character: \U000e0001 */

/*
 * Shows the character at [at, end), which is not empty, at `to`: `*size` bytes, not terminated.
 * Returns how many bytes it has.
 */
unsigned plain_step(const uint8_t *at, const uint8_t *end, char to[PLAIN_MOST], unsigned *size);

/* Shows text in `to` of `room` bytes (at least 1), terminated; cut between characters if it is too
 * long. Returns the length. */
size_t plain_copy(char *to, size_t room, const char *data, size_t size);

/* Shows the text in `buf` of `room` bytes in its own place, cut as by plain_copy. Returns `buf`. */
char *plain_inside(char *buf, size_t room);

/* The text as shown, terminated; freed with free. NULL when memory is out. */
char *plain_new(const char *data, size_t size);

#endif
