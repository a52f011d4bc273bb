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

int utf8_columns(const char *text)
{
    int columns = 0;
    for (; *text; text++)
        columns += !utf8_continues(*text);
    return columns;
}
