/* Searches as typed by users: parts of texts, in upper or lower case. */
#pragma once

#include <stdbool.h>
#include <trail/read.h>

/* Whether the text contains `part`, ignoring the case of ASCII letters. */
bool match_part(trail_string text, const char *part);

/* Whether a word of the text begins with `part`, ignoring the case of ASCII letters. */
bool match_word(trail_string text, const char *part);

/* As match_part, for a number in decimal. */
bool match_number(int64_t number, const char *part);

/*
 * Whether something has all words of `filter`, and none of those written "-word": the viewer's
 * filter (web/src/lanes.ts). `has` is called with each word, without the "-".
 */
bool match_all(const char *filter, bool (*has)(const void *context, const char *word),
               const void *context);

/* Whether a name with some numbers matches the filter. */
bool match_words(trail_string name, const int64_t *numbers, size_t count, const char *filter);
