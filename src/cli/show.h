/*
 * Showing numbers and text: for people, and as JSON.
 */
#ifndef TRAIL_CLI_SHOW_H
#define TRAIL_CLI_SHOW_H

#include <stdbool.h>
#include <stdint.h>
#include <trail/read.h>

#define SHOW_SIZE 64 /* enough for each of these */

/* Into `buf` of SHOW_SIZE, which is returned. */
const char *show_bytes(char *buf, uint64_t bytes);        /* "1.66 MiB" */
const char *show_duration(char *buf, int64_t ns);         /* "1.02 s" */
const char *show_wall(char *buf, int64_t s, uint32_t ns); /* "2026-11-21 06:46:11.160535358 UTC" */

/*
 * JSON on stdout, one value after the other. A whole number over 2^53 is a decimal string, as in
 * `trail print --format=jsonl`.
 */
struct json {
    bool comma;
};

void json_open(struct json *json, const char *key, char bracket); /* key NULL: no key */
void json_close(struct json *json, char bracket);
void json_string(struct json *json, const char *key, const char *value);
void json_number(struct json *json, const char *key, uint64_t value);
void json_signed(struct json *json, const char *key, int64_t value);
void json_bool(struct json *json, const char *key, bool value);

/* The members "code", "message" and the positions that are known. */
void json_error(struct json *json, const char *key, const trail_error *err);

#endif
