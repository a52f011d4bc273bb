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
 * Undoes the quotes of a Go string literal, "..." with escapes or `...` raw, which is all of [text,
 * text + size). Writes at most `size` bytes at `to` (may be `text` itself) and returns how many, or
 * -1 if it is no such literal.
 */
ptrdiff_t unquote(const char *text, size_t size, char *to);

#endif
