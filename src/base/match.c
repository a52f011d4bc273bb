/* Matches names against the text that a user searches for. */
#include "base/match.h"

#include <ctype.h>
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

/* Words consist of letters and digits, and bytes of other characters. */
static bool in_word(char c)
{
    return isalnum((unsigned char)c) || (c & 0x80);
}

bool match_word(trail_string text, const char *part)
{
    size_t size = strlen(part);
    for (size_t i = 0; i + size <= text.size; i++)
        if ((i == 0 || !in_word(text.data[i - 1])) && strncasecmp(text.data + i, part, size) == 0)
            return true;
    return false;
}

bool match_number(int64_t number, const char *part)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRId64, number);
    return match_part((trail_string){digits, (size_t)size}, part);
}

bool match_all(const char *filter, bool (*has)(const void *context, const char *word),
               const void *context)
{
    char word[256];
    for (const char *at = filter + strspn(filter, " "); *at; at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        bool without = at[0] == '-' && size > 1;
        (void)snprintf(word, sizeof word, "%.*s", (int)(size - without), at + without);
        if (has(context, word) == without)
            return false;
        at += size;
    }
    return true;
}

struct named {
    trail_string name;
    const int64_t *numbers;
    size_t count;
};

static bool named_has(const void *context, const char *word)
{
    const struct named *named = context;
    for (size_t i = 0; i < named->count; i++)
        if (match_number(named->numbers[i], word))
            return true;
    return match_part(named->name, word);
}

bool match_words(trail_string name, const int64_t *numbers, size_t count, const char *filter)
{
    struct named named = {name, numbers, count};
    return match_all(filter, named_has, &named);
}
