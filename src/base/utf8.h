/*
 * UTF-8: its characters, and texts that should be UTF-8 but may be any bytes. A byte that is part of no
 * character counts as one character, U+FFFD.
 */
#ifndef TRAIL_BASE_UTF8_H
#define TRAIL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

/* MARK: Characters */

/*
 * Decodes the character at [at, end), which is not empty. Returns how many bytes it has (1 to 4),
 * or 0 if they are not UTF-8 (overlong, a surrogate, over U+10FFFF, cut short).
 */
unsigned utf8_decode(const uint8_t *at, const uint8_t *end, uint32_t *rune);

/* Writes the character at `to` (4 bytes); returns how many it has. One that is none becomes U+FFFD.
 */
unsigned utf8_encode(uint8_t *to, uint32_t rune);

/* True if Go prints the character as it is: letters, marks, numbers, punctuation, symbols, space.
 */
bool rune_is_print(uint32_t rune);

/* True for a byte in the middle of a character. */
static inline bool utf8_continues(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* MARK: Texts */

bool utf8_valid(trail_string text);

enum utf8_nul { UTF8_NUL_KEPT, UTF8_NUL_REPLACED };

/*
 * Writes the text at `to`, which has room for three times its size, with U+FFFD for each byte that is
 * not UTF-8, and for each NUL if those are to be replaced. Returns the size.
 */
size_t utf8_repair(uint8_t *to, trail_string text, enum utf8_nul nul);

/* At most `most` bytes of the text's beginning or end, with no piece of a character where it is cut. */
trail_string utf8_first(trail_string text, size_t most);
trail_string utf8_last(trail_string text, size_t most);

/* Columns on a terminal, a character each. */
int utf8_columns(const char *text);

#endif
