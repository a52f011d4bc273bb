/* Go's quoted strings: writing and reading them. */
#include "base/quote.h"

#include "base/text.h"
#include "base/utf8.h"

/* MARK: Quoting */

/* Returns the letter after the backslash for characters that have one, 0 for others. */
static char short_escape(uint8_t c)
{
    static const char escaped[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    const char *at = memchr(escaped, c, sizeof escaped - 1);
    return (char)(at ? letters[at - escaped] : 0);
}

static void quote_ascii(struct out *out, uint8_t c)
{
    char letter = short_escape(c);
    if (letter) {
        out_char(out, '\\');
        out_char(out, letter);
    } else if (c >= 0x20 && c < 0x7f) {
        out_char(out, (char)c);
    } else {
        out_str(out, "\\x");
        out_hex(out, c, 2);
    }
}

static void quote_rune(struct out *out, const uint8_t *bytes, unsigned size, uint32_t rune)
{
    if (rune_is_print(rune)) {
        out_bytes(out, bytes, size);
    } else if (rune < 0x10000) {
        out_str(out, "\\u");
        out_hex(out, rune, 4);
    } else {
        out_str(out, "\\U");
        out_hex(out, rune, 8);
    }
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void out_quote(struct out *out, const char *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    out_char(out, '"');
    while (at < end) {
        const uint8_t *run = at;
        while (at < end && is_plain(*at))
            at++;
        out_bytes(out, run, (size_t)(at - run));
        if (at == end)
            break;
        uint32_t rune = 0;
        unsigned length = *at < 0x80 ? 1 : utf8_decode(at, end, &rune);
        if (length > 1) {
            quote_rune(out, at, length, rune);
            at += length;
        } else if (length == 1) {
            quote_ascii(out, *at++);
        } else {
            out_str(out, "\\x");
            out_hex(out, *at++, 2);
        }
    }
    out_char(out, '"');
}

/* MARK: Unquoting */

/* Reads exactly `count` digits of `base`. */
static bool read_digits(const char **at, const char *end, int base, int count, uint32_t *value)
{
    *value = 0;
    for (; count > 0; count--, (*at)++) {
        int digit = *at < end ? hex_digit(**at) : -1;
        if (digit < 0 || digit >= base)
            return false;
        *value = *value * (uint32_t)base + (uint32_t)digit;
    }
    return true;
}

/*
 * Decodes the part after a backslash. Returns the number of bytes written, 0 if it is not an
 * escape.
 */
static unsigned unescape(const char **at, const char *end, uint8_t to[4])
{
    static const char letters[] = "abfnrtv\\\"", values[] = "\a\b\f\n\r\t\v\\\"";
    uint32_t value;
    if (*at == end)
        return 0;
    char c = *(*at)++;
    const char *letter = memchr(letters, c, sizeof letters - 1);
    if (letter) {
        to[0] = (uint8_t)values[letter - letters];
        return 1;
    }
    if (c == 'x' || (c >= '0' && c <= '7')) {
        *at -= c != 'x';
        if (!read_digits(at, end, c == 'x' ? 16 : 8, c == 'x' ? 2 : 3, &value) || value > 255)
            return 0;
        to[0] = (uint8_t)value;
        return 1;
    }
    if ((c != 'u' && c != 'U') || !read_digits(at, end, 16, c == 'u' ? 4 : 8, &value) ||
        value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 0;
    return utf8_encode(to, value);
}

static ptrdiff_t unquote_raw(const char *text, size_t size, char *to)
{
    size_t n = 0;
    for (size_t i = 1; i + 1 < size; i++) {
        if (text[i] == '`')
            return -1;
        if (text[i] != '\r')
            to[n++] = text[i];
    }
    return (ptrdiff_t)n;
}

ptrdiff_t unquote(const char *text, size_t size, char *to)
{
    if (size < 2 || text[0] != text[size - 1] || (text[0] != '"' && text[0] != '`'))
        return -1;
    if (text[0] == '`')
        return unquote_raw(text, size, to);
    const char *at = text + 1, *end = text + size - 1;
    size_t n = 0;
    while (at < end) {
        char c = *at++;
        if (c == '"' || c == '\n')
            return -1;
        if (c != '\\') {
            to[n++] = c;
            continue;
        }
        uint8_t bytes[4];
        unsigned length = unescape(&at, end, bytes);
        if (length == 0)
            return -1;
        memcpy(to + n, bytes, length);
        n += length;
    }
    return (ptrdiff_t)n;
}
