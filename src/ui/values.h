/* Parsers of option values: numbers, lists, times, sizes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false if the text is not valid; nothing is printed. */

/* Parses a decimal number from 0 to INT64_MAX, after at most one prefix out of `letters` ("gG":
 * G18). */
bool parse_id(const char *text, const char *letters, int64_t *value);

/*
 * Parses a time with its unit: 1.5s, 20ms, 300us, 5ns, 2m, 1h. Truncated to whole nanoseconds. 0
 * needs no unit.
 */
bool parse_time(const char *text, int64_t *ns);

/* Parses a number of bytes, optionally with K, M or G: powers of 1024. */
bool parse_size(const char *text, uint64_t *bytes);

/* Returns the position of the first character from `at` on that is no space. */
size_t skip_space(const char *text, size_t at);

/*
 * Parses a name in a condition: up to a space or a character of `ends`, or in double quotes, in
 * which \ escapes the next character. *name gets a copy, which the caller frees. Returns its end;
 * 0: a quote is missing, or out of memory.
 */
size_t parse_name(const char *text, size_t at, const char *ends, char **name);

/* A growing list of IDs. */
struct id_list {
    int64_t *ids;
    size_t count;
};

/* Adds the IDs in "18,22,7". Also returns false if out of memory. */
bool parse_id_list(const char *text, const char *letters, struct id_list *list);

/* Whether the list has the ID, or nothing: IDs were not given. */
bool id_list_allows(const struct id_list *list, int64_t id);
