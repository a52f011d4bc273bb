/* UTF-8: decoding, repair, and columns of a terminal. */
#include "base/utf8.h"

#include <string.h>

#include "base/search.h"
#include "base/unicode_print.h"

/* MARK: Characters */

unsigned utf8_decode(const uint8_t *at, const uint8_t *end, uint32_t *rune)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = at[0];
    unsigned size = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (size == 0 || first >= 0xf8 || (size_t)(end - at) < size)
        return 0;
    uint32_t r = size == 1 ? first : first & (0x7fu >> size);
    for (unsigned i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        r = r << 6 | (at[i] & 0x3f);
    }
    if (r < smallest[size] || r > 0x10ffff || (r >= 0xd800 && r < 0xe000))
        return 0;
    *rune = r;
    return size;
}

unsigned utf8_encode(uint8_t *to, uint32_t rune)
{
    if (rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000))
        rune = 0xfffd;
    if (rune < 0x80) {
        to[0] = (uint8_t)rune;
        return 1;
    }
    unsigned size = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    for (unsigned i = size - 1; i > 0; i--) {
        to[i] = (uint8_t)(0x80 | (rune & 0x3f));
        rune >>= 6;
    }
    to[0] = (uint8_t)((0xf00u >> size) | rune);
    return size;
}

bool rune_is_print(uint32_t rune)
{
    if (rune < 0x7f)
        return rune >= 0x20;
    const size_t count = sizeof unicode_print / sizeof *unicode_print;
    size_t at = SEARCH(i, 0, count, unicode_print[i].last < rune);
    return at < count && unicode_print[at].first <= rune;
}

/* MARK: Texts */

bool utf8_valid(trail_string text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        uint32_t rune;
        unsigned size = *at < 0x80 ? 1 : utf8_decode(at, end, &rune);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

size_t utf8_repair(uint8_t *to, trail_string text, enum utf8_nul nul)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size, *begin = to;
    while (at < end) {
        uint32_t rune;
        unsigned size = utf8_decode(at, end, &rune);
        bool wrong = size == 0 || (rune == 0 && nul == UTF8_NUL_REPLACED);
        to += utf8_encode(to, wrong ? 0xfffd : rune);
        at += size ? size : 1;
    }
    return (size_t)(to - begin);
}

trail_string utf8_first(trail_string text, size_t most)
{
    if (text.size <= most)
        return text;
    text.size = most;
    for (int i = 0; i < 3 && text.size > 0 && utf8_continues(text.data[text.size]); i++)
        text.size--;
    return text;
}

trail_string utf8_last(trail_string text, size_t most)
{
    if (text.size <= most)
        return text;
    text.data += text.size - most;
    text.size = most;
    for (int i = 0; i < 3 && text.size > 0 && utf8_continues(*text.data); i++, text.size--)
        text.data++;
    return text;
}

/* Ranges of characters that have no column, or two, in ascending order. */
static const struct width {
    uint32_t first, last;
    int columns;
} widths[] = {
    {0x300, 0x36f, 0},     {0x483, 0x489, 0},     {0x591, 0x5bd, 0},     {0x610, 0x61a, 0},
    {0x64b, 0x65f, 0},     {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},
    {0x200b, 0x200d, 0},   {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2},   {0x3041, 0x33ff, 2},
    {0x3400, 0x4dbf, 2},   {0x4e00, 0x9fff, 2},   {0xa000, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},
    {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},
    {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2},
    {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
};

/* Returns the code of the character that begins at `text`, and in *size its number of bytes. Each
 * byte that is not part of a character stands alone: one that could continue a character has no
 * column, any other has one. */
static uint32_t code_at(const char *text, size_t *size)
{
    const uint32_t combining = 0x300;
    const uint8_t *at = (const uint8_t *)text;
    uint32_t code;
    *size = utf8_decode(at, at + strnlen(text, 4), &code);
    if (*size > 0)
        return code;
    *size = 1;
    return utf8_continues(*text) ? combining : '?';
}

static int columns_of(uint32_t code)
{
    for (size_t i = 0; i < sizeof widths / sizeof *widths && code >= widths[i].first; i++) {
        if (code <= widths[i].last)
            return widths[i].columns;
    }
    return 1;
}

size_t utf8_character(const char *text, int *columns)
{
    size_t size;
    *columns = columns_of(code_at(text, &size));
    return size;
}

int utf8_columns(const char *text)
{
    int sum = 0, columns;
    for (; *text; sum += columns)
        text += utf8_character(text, &columns);
    return sum;
}

size_t utf8_fits(const char *text, int columns)
{
    const char *at = text;
    int width;
    for (size_t size; *at; at += size) {
        size = utf8_character(at, &width);
        columns -= width;
        if (columns < 0)
            break;
    }
    return (size_t)(at - text);
}

size_t utf8_fits_end(const char *text, int columns)
{
    int rest = utf8_columns(text), width;
    const char *at = text;
    for (; *at && rest > columns; rest -= width)
        at += utf8_character(at, &width);
    return strlen(at);
}
