/* Taking numbers and words off the front of a text. Every number is checked; a function that
 * returns false takes nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

static inline bool scan_is_space(char c)
{
    return c == ' ' || c == '\t';
}

static inline void scan_advance(trail_string *text, size_t size)
{
    text->data += size;
    text->size -= size;
}

void scan_spaces(trail_string *text);
void scan_trim_end(trail_string *text);

/* Takes this word. */
bool scan_word(trail_string *text, const char *word);

/* Takes a decimal number of at most `max`. */
bool scan_number(trail_string *text, uint64_t max, uint64_t *number);

/* Takes seconds, "12345.678901" or with up to nine digits after the point: *ns is at least 1. */
bool scan_seconds(trail_string *text, int64_t *ns);

/* Returns the offset of the first, or the last, occurrence of a word; SIZE_MAX if there is none. */
size_t scan_find(trail_string text, const char *word);
size_t scan_find_last(trail_string text, const char *word);

static inline trail_string scan_part(trail_string text, size_t from, size_t to)
{
    return (trail_string){text.data + from, to - from};
}
