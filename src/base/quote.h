/*
 * Text in quotes as Go's strconv.Quote writes it, and back (strconv.Unquote of such text): what
 * Go's tools print for names, log messages and the data of records.
 */
#ifndef TRAIL_BASE_QUOTE_H
#define TRAIL_BASE_QUOTE_H

#include "base/out.h"

/*
 * Writes `size` bytes in double quotes: \a \b \f \n \r \t \v \\ \" and printable characters as they
 * are, other control characters and bytes that are not UTF-8 as \x.., the rest as \u.... and
 * \U.........
 */
void out_quote(struct out *out, const char *data, size_t size);

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

/*
 * Undoes the quotes of a Go string literal, "..." with escapes or `...` raw, which is all of [text,
 * text + size). Writes at most `size` bytes at `to` (may be `text` itself) and returns how many, or
 * -1 if it is no such literal.
 */
ptrdiff_t unquote(const char *text, size_t size, char *to);

#endif
