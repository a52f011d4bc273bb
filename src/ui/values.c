/* Parses numbers, times and sizes. */
#include "ui/values.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "ui/show.h"

/* Parses digits from *at on; returns false if there are none or too many. */
static bool parse_digits(const char **at, int64_t *value)
{
    if (!isdigit((unsigned char)**at))
        return false;
    int64_t sum = 0;
    for (; isdigit((unsigned char)**at); ++*at)
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, **at - '0', &sum))
            return false;
    *value = sum;
    return true;
}

bool parse_id(const char *text, const char *letters, int64_t *value)
{
    if (*text && strchr(letters, *text))
        text++;
    return parse_digits(&text, value) && *text == '\0';
}

bool parse_id_list(const char *text, const char *letters, struct id_list *list)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        char word[32];
        if (length >= sizeof word)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        int64_t *grown = reallocarray(list->ids, list->count + 1, sizeof *grown);
        if (!grown) {
            show_lacks();
            return false;
        }
        list->ids = grown;
        if (!parse_id(word, letters, &list->ids[list->count]))
            return false;
        list->count++;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

bool parse_time(const char *text, int64_t *ns)
{
    int64_t whole = 0;
    const char *fraction = "";
    if (!parse_digits(&text, &whole) && *text != '.')
        return false;
    if (*text == '.') {
        fraction = ++text;
        text += strspn(text, "0123456789");
        if (text == fraction)
            return false;
    }
    int64_t unit =
        *text == '\0' && whole == 0 && *fraction == '\0' ? 1 : duration_unit(text, strlen(text));
    if (unit == 0 || __builtin_mul_overflow(whole, unit, ns))
        return false;
    for (; isdigit((unsigned char)*fraction); fraction++) {
        unit /= 10;
        if (__builtin_add_overflow(*ns, (*fraction - '0') * unit, ns))
            return false;
    }
    return true;
}

size_t skip_space(const char *text, size_t at)
{
    while (isspace((unsigned char)text[at]))
        at++;
    return at;
}

size_t parse_name(const char *text, size_t at, const char *ends, char **name)
{
    size_t length = 0;
    bool quoted = text[at] == '"';
    *name = strdup(text + at);
    if (!*name)
        return 0;
    for (at += quoted; text[at]; at++) {
        if (quoted ? text[at] == '"' : isspace((unsigned char)text[at]) || strchr(ends, text[at]))
            break;
        if (quoted && text[at] == '\\' && text[at + 1])
            at++;
        (*name)[length++] = text[at];
    }
    (*name)[length] = '\0';
    if (quoted && text[at] != '"')
        return 0;
    return at + quoted;
}

bool parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMG";
    int64_t number;
    const char *unit;
    if (!parse_digits(&text, &number))
        return false;
    *bytes = (uint64_t)number;
    if (*text == '\0')
        return true;
    unit = strchr(units, *text);
    if (!unit || text[1] != '\0')
        return false;
    for (const char *u = units; u <= unit; u++) {
        if (__builtin_mul_overflow(*bytes, UINT64_C(1024), bytes))
            return false;
    }
    return true;
}

bool id_list_allows(const struct id_list *list, int64_t id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->ids[i] == id)
            return true;
    return list->count == 0;
}
