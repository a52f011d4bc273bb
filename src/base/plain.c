/* Text with escapes for what is not printable. */
#include "base/plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* Returns the letter of Go's escape for a character; 0 if it has none. */
static char letter_of(uint8_t c)
{
    static const char letters[] = "abtnvfr"; /* of 7 to 13 */
    return c >= '\a' && c <= '\r' ? letters[c - '\a'] : '\0';
}

/* Writes a backslash, a letter and `digits` hexadecimal digits. */
static unsigned put_escape(char to[PLAIN_MOST], char letter, uint32_t value, unsigned digits)
{
    to[0] = '\\';
    to[1] = letter;
    for (unsigned i = 0; i < digits; i++)
        to[2 + i] = "0123456789abcdef"[value >> (4 * (digits - 1 - i)) & 15];
    return 2 + digits;
}

unsigned plain_step(const uint8_t *at, const uint8_t *end, char to[PLAIN_MOST], unsigned *size)
{
    uint32_t rune = 0;
    unsigned taken = utf8_decode(at, end, &rune);
    if (taken > 0 && rune_is_print(rune)) {
        memcpy(to, at, taken);
        *size = taken;
        return taken;
    }
    if (taken > 1)
        *size = rune < 0x10000 ? put_escape(to, 'u', rune, 4) : put_escape(to, 'U', rune, 8);
    else if (letter_of(*at))
        *size = put_escape(to, letter_of(*at), 0, 0);
    else
        *size = put_escape(to, 'x', *at, 2);
    return taken ? taken : 1;
}

size_t plain_copy(char *to, size_t room, const char *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    size_t used = 0;
    while (at < end) {
        char shown[PLAIN_MOST];
        unsigned length;
        at += plain_step(at, end, shown, &length);
        if (length >= room - used)
            break;
        memcpy(to + used, shown, length);
        used += length;
    }
    to[used] = '\0';
    return used;
}

char *plain_inside(char *buf, size_t room)
{
    char copy[PLAIN_INSIDE];
    size_t size = strnlen(buf, sizeof copy);
    memcpy(copy, buf, size);
    (void)plain_copy(buf, room, copy, size);
    return buf;
}

char *plain_new(const char *data, size_t size)
{
    const uint8_t *at = (const uint8_t *)data, *end = at + size;
    size_t room = 1;
    while (at < end) {
        char shown[PLAIN_MOST];
        unsigned length;
        at += plain_step(at, end, shown, &length);
        room += length;
    }
    char *text = malloc(room);
    if (text)
        (void)plain_copy(text, room, data, size);
    return text;
}
