/*
 * UTF-8: its characters, and texts that should be UTF-8 but may be any bytes. A byte that is not
 * part of a character counts as one character, U+FFFD.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

/* MARK: Characters */

/*
 * Decodes the character at [at, end), which is not empty. Returns its number of bytes (1 to 4), or
 * 0 if it is not UTF-8 (overlong, a surrogate, above U+10FFFF, truncated).
 */
unsigned utf8_decode(const uint8_t *at, const uint8_t *end, uint32_t *rune);

/*
 * Writes the character to `to` (4 bytes) and returns its number of bytes. An invalid one becomes
 * U+FFFD.
 */
unsigned utf8_encode(uint8_t *to, uint32_t rune);

/*
 * Whether Go prints the character unescaped: letters, marks, numbers, punctuation, symbols, space.
 */
bool rune_is_print(uint32_t rune);

/* Whether a byte continues a character. */
static inline bool utf8_continues(char c)
{
    return ((uint8_t)c & 0xc0) == 0x80;
}

/* MARK: Texts */

bool utf8_valid(trail_string text);

enum utf8_nul { UTF8_NUL_KEPT, UTF8_NUL_REPLACED };

/*
 * Copies the text to `to`, which has room for three times its size, with U+FFFD for each byte that
 * is not UTF-8, and for each NUL with UTF8_NUL_REPLACED. Returns the size.
 */
size_t utf8_repair(uint8_t *to, trail_string text, enum utf8_nul nul);

/*
 * Return at most `most` bytes of the text's beginning or end, without a partial character at the
 * cut.
 */
trail_string utf8_first(trail_string text, size_t most);
trail_string utf8_last(trail_string text, size_t most);

/*
 * Returns the bytes of the text's first character, at least 1, and its number of terminal columns:
 * 2 for East Asian wide characters (Unicode, EastAsianWidth) and most emoji, 0 for combining ones,
 * else 1. The text is not empty.
 */
size_t utf8_character(const char *text, int *columns);

/* Returns the number of terminal columns. */
int utf8_columns(const char *text);

/* Return the bytes of the longest beginning, or end, of the text that fits into `columns`. */
size_t utf8_fits(const char *text, int columns);
size_t utf8_fits_end(const char *text, int columns);
