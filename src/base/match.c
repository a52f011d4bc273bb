#include "base/match.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool match_part(trail_string text, const char *part)
{
    size_t size = strlen(part);
    for (size_t i = 0; i + size <= text.size; i++)
        if (strncasecmp(text.data + i, part, size) == 0)
            return true;
    return false;
}

bool match_words(trail_string name, int64_t number, const char *filter)
{
    char digits[24], word[256];
    int size_of_digits = snprintf(digits, sizeof digits, "%" PRId64, number);
    trail_string as_text = {digits, (size_t)size_of_digits};
    for (const char *at = filter + strspn(filter, " "); *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        bool without = at[0] == '-' && size > 1;
        (void)snprintf(word, sizeof word, "%.*s", (int)(size - without), at + without);
        if ((match_part(name, word) || match_part(as_text, word)) == without)
            return false;
        at += size;
    }
    return true;
}
