#include "import/json_read.h"

#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 1000

static bool bad(struct json_read *json)
{
    json->bad = true;
    return false;
}

char json_peek(struct json_read *json)
{
    while (json->at < json->end &&
           (*json->at == ' ' || *json->at == '\n' || *json->at == '\t' || *json->at == '\r'))
        json->at++;
    return json->at < json->end ? *json->at : '\0';
}

bool json_take(struct json_read *json, char c)
{
    if (json->bad || c == '\0' || json_peek(json) != c)
        return bad(json);
    json->at++;
    return true;
}

/* MARK: Strings */

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Takes the four digits behind \u. */
static bool take_unit(struct json_read *json, uint32_t *unit)
{
    *unit = 0;
    if (json->end - json->at < 4)
        return bad(json);
    for (int i = 0; i < 4; i++) {
        int digit = hex_of(*json->at++);
        if (digit < 0)
            return bad(json);
        *unit = *unit * 16 + (uint32_t)digit;
    }
    return true;
}

/* Takes a character behind \u; half of a pair alone is U+FFFD. */
static bool take_escaped_rune(struct json_read *json, uint32_t *rune)
{
    uint32_t low;
    if (!take_unit(json, rune))
        return false;
    if (*rune < 0xd800 || *rune > 0xdfff)
        return true;
    if (*rune < 0xdc00 && json->end - json->at >= 6 && json->at[0] == '\\' && json->at[1] == 'u') {
        json->at += 2;
        if (!take_unit(json, &low))
            return false;
        if (low >= 0xdc00 && low <= 0xdfff) {
            *rune = 0x10000 + ((*rune - 0xd800) << 10) + (low - 0xdc00);
            return true;
        }
    }
    *rune = 0xfffd;
    return true;
}

static unsigned put_rune(char *to, uint32_t rune)
{
    if (rune < 0x80) {
        to[0] = (char)rune;
        return 1;
    }
    unsigned more = rune < 0x800 ? 1 : rune < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(first[more] | rune >> 6 * more);
    for (unsigned i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (rune >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* Takes one character, with its escape. Returns its bytes in `to`; 0 for damage. */
static unsigned take_character(struct json_read *json, char to[4])
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *letter;
    uint32_t rune;
    to[0] = *json->at++;
    if (to[0] != '\\')
        return 1;
    if (json->at == json->end)
        return 0;
    char c = *json->at++;
    if (c == 'u')
        return take_escaped_rune(json, &rune) ? put_rune(to, rune) : 0;
    letter = c ? strchr(letters, c) : NULL;
    if (!letter)
        return 0;
    to[0] = means[letter - letters];
    return 1;
}

bool json_take_string(struct json_read *json, char *room, size_t size)
{
    size_t used = 0;
    bool full = false;
    if (!json_take(json, '"'))
        return false;
    while (json->at < json->end && *json->at != '"') {
        char bytes[4];
        unsigned count = take_character(json, bytes);
        if (count == 0)
            return bad(json);
        full |= used + count >= size;
        if (!full)
            memcpy(room + used, bytes, count);
        used += full ? 0 : count;
    }
    if (size > 0)
        room[used] = '\0';
    return json_take(json, '"');
}

/* MARK: Values */

bool json_take_bare(struct json_read *json, trail_string *text)
{
    (void)json_peek(json);
    const char *begin = json->at;
    while (json->at<json->end && * json->at> ' ' && !strchr(",:]}[{\"", *json->at))
        json->at++;
    *text = (trail_string){begin, (size_t)(json->at - begin)};
    return text->size > 0 || bad(json);
}

/* Takes a value that is no object and no array. */
static bool skip_plain(struct json_read *json)
{
    trail_string text;
    return json_peek(json) == '"' ? json_take_string(json, NULL, 0) : json_take_bare(json, &text);
}

/* Brackets are counted, but not matched with each other: what is skipped is not used. */
bool json_skip(struct json_read *json)
{
    unsigned depth = 0;
    do {
        char c = json_peek(json);
        if (json->bad || c == '\0' || depth > DEPTH_MAX)
            return bad(json);
        if (c == '{' || c == '[') {
            depth++;
            json->at++;
        } else if (depth > 0 && (c == '}' || c == ']')) {
            depth--;
            json->at++;
        } else if (depth > 0 && (c == ',' || c == ':')) {
            json->at++;
        } else if (!skip_plain(json)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

static bool next(struct json_read *json, bool *first, char bracket)
{
    if (json->bad)
        return false;
    if (json_peek(json) == bracket) {
        json->at++;
        return false;
    }
    bool begin = *first;
    *first = false;
    return begin || json_take(json, ',');
}

bool json_next_member(struct json_read *json, bool *first, char *key, size_t size)
{
    return next(json, first, '}') && json_take_string(json, key, size) && json_take(json, ':');
}

bool json_next_element(struct json_read *json, bool *first)
{
    if (!next(json, first, ']'))
        return false;
    /* A comma behind the last element, as Chrome's own recorder leaves it. */
    if (json_peek(json) != ']')
        return true;
    json->at++;
    return false;
}
