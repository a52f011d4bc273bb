/* The lines in which a host names its goroutines. */
#include "read/identity.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

static bool parse_number(trail_string text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned)((unsigned char)text.data[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, digit, number))
            return false;
    }
    return text.size > 0;
}

/* Whether `field` begins with `name`; *value is the rest. */
static bool is_field(trail_string field, const char *name, trail_string *value)
{
    if (!text_take(&field, name))
        return false;
    *value = field;
    return true;
}

static bool parse_field(trail_string field, struct identity *identity)
{
    trail_string value;
    if (is_field(field, GOROUTINE_ID, &value))
        return parse_number(value, &identity->id);
    if (is_field(field, GOROUTINE_CHANGE, &value))
        return parse_number(value, &identity->change);
    if (is_field(field, GOROUTINE_STACK, &value))
        return parse_number(value, &identity->stack);
    return is_field(field, GOROUTINE_KIND, &identity->kind) ||
           is_field(field, GOROUTINE_NAME, &identity->name);
}

bool identity_parse(trail_string line, struct identity *identity)
{
    if (!text_take(&line, GOROUTINE_PREFIX))
        return false;
    const char *at = line.data, *end = line.data + line.size, *tab;
    *identity = (struct identity){.name = {"", 0}, .kind = {"", 0}};
    do {
        tab = memchr(at, '\t', (size_t)(end - at));
        size_t size = (size_t)((tab ? tab : end) - at);
        if (!parse_field((trail_string){at, size}, identity))
            return false;
        at = tab ? tab + 1 : end;
    } while (tab);
    return identity->id != 0;
}

/* MARK: Writing */

static int add_number(char *room, const char *field, uint64_t number)
{
    return number ? snprintf(room, 32, "\t%s%" PRIu64, field, number) : 0;
}

static int add_text(char *room, const char *field, trail_string text)
{
    int size = (int)(text.size < IDENTITY_TEXT_MAX ? text.size : IDENTITY_TEXT_MAX);
    return size ? snprintf(room, IDENTITY_TEXT_MAX + 8, "\t%s%.*s", field, size, text.data) : 0;
}

trail_string identity_line(const struct identity *identity, char *room)
{
    int size = snprintf(room, sizeof GOROUTINE_PREFIX + 32,
                        GOROUTINE_PREFIX GOROUTINE_ID "%" PRIu64, identity->id);
    size += add_number(room + size, GOROUTINE_CHANGE, identity->change);
    size += add_number(room + size, GOROUTINE_STACK, identity->stack);
    size += add_text(room + size, GOROUTINE_KIND, identity->kind);
    size += add_text(room + size, GOROUTINE_NAME, identity->name);
    return (trail_string){room, (size_t)size};
}
