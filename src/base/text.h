/* Comparisons of a trace's texts with words of the program. */
#ifndef TRAIL_BASE_TEXT_H
#define TRAIL_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>
#include <trail/read.h>

/* Whether the text begins with `prefix`. */
static inline bool text_begins(trail_string text, const char *prefix)
{
    size_t size = strlen(prefix);
    return text.size >= size && memcmp(text.data, prefix, size) == 0;
}

/* Whether the text is `word`. */
static inline bool text_is(trail_string text, const char *word)
{
    return text.size == strlen(word) && text_begins(text, word);
}

#endif
