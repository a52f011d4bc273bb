/* What people look for: parts of texts, in upper or lower case. */
#ifndef TRAIL_BASE_MATCH_H
#define TRAIL_BASE_MATCH_H

#include <stdbool.h>
#include <trail/read.h>

/* Whether the text contains `part`, ignoring the case of ASCII letters. */
bool match_part(trail_string text, const char *part);

/*
 * Whether a name and a number contain all words of `filter`, and none of those written "-word": the filter of
 * the viewer (web/src/lanes.ts).
 */
bool match_words(trail_string name, int64_t number, const char *filter);

#endif
