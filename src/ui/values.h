/*
 * Values of options: numbers, lists, times, and words out of a set.
 */
#ifndef TRAIL_UI_VALUES_H
#define TRAIL_UI_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns false if the text is no such value; nothing is printed. */

/* A decimal number from 0 to INT64_MAX; a prefix of one of `letters` ("gG": G18) is passed over. */
bool parse_id(const char *text, const char *letters, int64_t *value);

/*
 * A time with its unit: 1.5s, 20ms, 300us, 5ns, 2m, 1h. Exact to the nanosecond; what is finer is
 * cut off. 0 needs no unit.
 */
bool parse_time(const char *text, int64_t *ns);

/* A number of bytes, with a unit of K, M or G: powers of 1024. */
bool parse_size(const char *text, uint64_t *bytes);

/* A growing list of IDs. */
struct id_list {
    int64_t *ids;
    size_t count;
};

/* Adds the IDs in "18,22,7". False too when memory is out. */
bool parse_id_list(const char *text, const char *letters, struct id_list *list);

#endif
