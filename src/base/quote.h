/*
 * Text in quotes as written by Go's strconv.Quote, and back (strconv.Unquote). Go's tools print
 * names, log messages and the data of records this way.
 */
#pragma once

#include "base/out.h"

/*
 * Writes `size` bytes in double quotes: printable characters unchanged, \a \b \f \n \r \t \v \\
 * \", other control characters and bytes that are not UTF-8 as \x.., the rest as \u.... and
 * \U.........
 */
void out_quote(struct out *out, const char *data, size_t size);

/*
 * Decodes a Go string literal, "..." with escapes or `...` raw, which must fill [text, text +
 * size). Writes at most `size` bytes to `to` (may be `text` itself) and returns their number; -1 if
 * it is not a literal.
 */
ptrdiff_t unquote(const char *text, size_t size, char *to);
