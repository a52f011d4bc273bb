/*
 * Showing numbers and text: for people, and as JSON.
 */
#ifndef TRAIL_CLI_SHOW_H
#define TRAIL_CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

#include "base/show.h"

/* Text of a trace on stdout, with a question mark for what would steer a terminal. */
void show_plain(trail_string text);

/*
 * JSON on stdout, one value after the other. Bytes that are not UTF-8 become U+FFFD. A whole number over 2^53 is a decimal string, as in
 * `trail print --format=jsonl`.
 */
struct json {
    bool comma;
    bool keyed; /* json_key has written the key of what comes next */
};

void json_open(struct json *json, const char *key, char bracket); /* key NULL: no key */
void json_key(struct json *json, trail_string key); /* for the next, whose key is NULL */
void json_close(struct json *json, char bracket);
void json_string(struct json *json, const char *key, const char *value);
void json_text(struct json *json, const char *key, trail_string value); /* any bytes */
void json_number(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value); /* finite; 15 digits */
void json_signed(struct json *json, const char *key, int64_t value);
void json_bare(struct json *json, const char *key, trail_string value); /* is JSON already */
void json_null(struct json *json, const char *key);
void json_bool(struct json *json, const char *key, bool value);

/* The members "code", "message" and the positions that are known. */
void json_error(struct json *json, const char *key, const trail_error *err);

#endif
