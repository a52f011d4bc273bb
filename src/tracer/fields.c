/* Typed fields as text: see fields.h. */
#include "tracer/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPE_MAX 4 /* \x1f */
#define NUMBER_MAX 40

struct line {
    char *at;
    const char *end;
};

/* Appends all bytes, or none and returns false. */
static bool add(struct line *line, const char *text, size_t size)
{
    if (size > (size_t)(line->end - line->at))
        return false;
    memcpy(line->at, text, size);
    line->at += size;
    return true;
}

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static bool add_name(struct line *line, const char *name)
{
    char *at = line->at;
    if (!name || !*name)
        name = "_";
    if (!add(line, name, strnlen(name, FIELDS_MAX)))
        return false;
    for (; at < line->at; at++)
        *at = is_of_name(*at) ? *at : '_';
    return true;
}

/* Returns the size of the byte as it stands between quotes. */
static size_t escape(char *to, char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char names[][2] = {
        {'"', '"'}, {'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i][0] != c)
            continue;
        memcpy(to, (char[]){'\\', names[i][1]}, 2);
        return 2;
    }
    if ((unsigned char)c >= ' ' && c != 0x7f) {
        *to = c;
        return 1;
    }
    memcpy(to, (char[]){'\\', 'x', digits[(unsigned char)c >> 4], digits[c & 15]}, ESCAPE_MAX);
    return ESCAPE_MAX;
}

static bool add_text(struct line *line, const char *text)
{
    char escaped[ESCAPE_MAX];
    if (line->end - line->at < 2)
        return false;
    (void)add(line, "\"", 1);
    line->end--; /* for the closing quote */
    while (text && *text && add(line, escaped, escape(escaped, *text)))
        text++;
    line->end++;
    return add(line, "\"", 1);
}

/*
 * The shortest of 15 or 17 digits that is the same number, with a point in every locale. Returns
 * its size.
 */
static size_t double_text(char to[NUMBER_MAX], double value)
{
    char digits[NUMBER_MAX];
    size_t size = 0;
    bool is_double = false;
    if (value != value)
        (void)snprintf(digits, sizeof digits, "nan");
    else if (snprintf(digits, sizeof digits, "%.15g", value) > 0 && strtod(digits, NULL) != value)
        (void)snprintf(digits, sizeof digits, "%.17g", value);
    for (const char *from = digits; *from; from++) {
        bool is_point = !strchr("0123456789+-einfa", *from);
        is_double |= is_point || *from == 'e' || *from == 'n';
        /* A point may have several bytes. */
        if (!is_point || !size || to[size - 1] != '.')
            to[size++] = is_point ? '.' : *from;
    }
    if (!is_double) {
        to[size++] = '.';
        to[size++] = '0';
    }
    return size;
}

static bool add_value(struct line *line, const trail_field *field)
{
    char number[NUMBER_MAX];
    switch (field->kind) {
    case TRAIL_FIELD_INT:
        return add(line, number,
                   (size_t)snprintf(number, sizeof number, "%" PRId64, field->value.integer));
    case TRAIL_FIELD_DOUBLE:
        return add(line, number, double_text(number, field->value.number));
    case TRAIL_FIELD_TEXT:
        return add_text(line, field->value.text);
    }
    return false;
}

void fields_write(char message[FIELDS_MAX + 1], const trail_field *fields, size_t n)
{
    struct line line = {message, message + FIELDS_MAX};
    for (size_t i = 0; i < n; i++) {
        char *begin = line.at;
        if (begin > message)
            (void)add(&line, " ", 1);
        if (!add_name(&line, fields[i].name) || !add(&line, "=", 1) ||
            !add_value(&line, &fields[i]))
            line.at = begin;
    }
    *line.at = '\0';
}
