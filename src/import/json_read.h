/*
 * Reading JSON in memory, value by value. Nothing is built: a caller takes what it wants and skips the rest.
 * Damaged JSON makes every function return false, and `bad` stays set.
 */
#ifndef TRAIL_IMPORT_JSON_READ_H
#define TRAIL_IMPORT_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <trail/read.h>

struct json_read {
    const char *at, *end;
    bool bad;
};

/* Skips white space. Returns the next character, which is not taken; '\0' at the end. */
char json_peek(struct json_read *json);

/* Takes this character, behind white space. */
bool json_take(struct json_read *json, char c);

/* Takes a string into `room`, decoded, as UTF-8 and terminated; truncated if it is longer. */
bool json_take_string(struct json_read *json, char *room, size_t size);

/* Takes a number or another bare word, as it is written. */
bool json_take_bare(struct json_read *json, trail_string *text);

/* Takes a value of any kind, nested at most 1,000 deep. */
bool json_skip(struct json_read *json);

/*
 * Steps through the members of an object, or the elements of an array: true if there is a further one, which
 * the caller takes or skips. `first` is true before the first and set to false. False behind the last, whose
 * bracket is taken.
 */
bool json_next_member(struct json_read *json, bool *first, char *key, size_t size);
bool json_next_element(struct json_read *json, bool *first);

#endif
