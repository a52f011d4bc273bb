/* Takes words and numbers off the front of a text: see scan.h. */
#include "import/scan.h"

#include <string.h>

#include "base/text.h"

/* Readers' times have 62 bits: two centuries of nanoseconds are enough for any clock. */
#define SECONDS_MAX UINT64_C(4000000000)

void scan_spaces(trail_string *text)
{
    while (text->size > 0 && scan_is_space(*text->data))
        scan_advance(text, 1);
}

void scan_trim_end(trail_string *text)
{
    while (text->size > 0 && scan_is_space(text->data[text->size - 1]))
        text->size--;
}

bool scan_word(trail_string *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    scan_advance(text, size);
    return true;
}

bool scan_number(trail_string *text, uint64_t max, uint64_t *number)
{
    uint64_t value = 0;
    size_t i = 0;
    for (; i < text->size && is_digit(text->data[i]); i++) {
        uint64_t digit = (uint64_t)(text->data[i] - '0');
        if (value > (max - digit) / 10 || digit > max)
            return false;
        value = value * 10 + digit;
    }
    if (i == 0)
        return false;
    scan_advance(text, i);
    *number = value;
    return true;
}

bool scan_seconds(trail_string *text, int64_t *ns)
{
    trail_string rest = *text;
    uint64_t whole, part = 0;
    unsigned digits = 0;
    if (!scan_number(&rest, SECONDS_MAX, &whole) || !scan_word(&rest, "."))
        return false;
    for (; rest.size > 0 && is_digit(*rest.data) && digits < 9; digits++) {
        part = part * 10 + (uint64_t)(*rest.data - '0');
        scan_advance(&rest, 1);
    }
    if (digits == 0 || (rest.size > 0 && is_digit(*rest.data)))
        return false;
    while (digits++ < 9)
        part *= 10;
    *ns = (int64_t)(whole * 1000000000u + part);
    *ns += *ns == 0;
    *text = rest;
    return true;
}

size_t scan_find(trail_string text, const char *word)
{
    const char *at = text.size > 0 ? memmem(text.data, text.size, word, strlen(word)) : NULL;
    return at ? (size_t)(at - text.data) : SIZE_MAX;
}

size_t scan_find_last(trail_string text, const char *word)
{
    size_t found = SIZE_MAX, from = 0, at;
    while ((at = scan_find(scan_part(text, from, text.size), word)) != SIZE_MAX) {
        found = from + at;
        from = found + 1;
    }
    return found;
}
