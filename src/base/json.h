/*
 * JSON: values in the form that all of trail writes, and a writer that adds the commas.
 *
 * Text may be any bytes: each byte that is not UTF-8 becomes U+FFFD, and characters that control a
 * terminal are escaped. Integers beyond 2^53 in either direction are decimal strings, so that no
 * reader rounds them.
 */
#pragma once

#include <trail/read.h>

#include "base/out.h"

/* MARK: Values */

/* Writes the text in quotes. Returns whether all of it was UTF-8. */
bool json_put_text(struct out *out, trail_string text);

#define JSON_EXACT (INT64_C(1) << 53)

/* Writes "key":, without a preceding comma. The key must not need escapes. */
static inline void json_put_key(struct out *out, const char *key)
{
    out_char(out, '"');
    out_str(out, key);
    out_str(out, "\":");
}

static inline void json_put_u64(struct out *out, uint64_t value)
{
    bool quotes = value > JSON_EXACT;
    if (quotes)
        out_char(out, '"');
    out_u64(out, value);
    if (quotes)
        out_char(out, '"');
}

static inline void json_put_i64(struct out *out, int64_t value)
{
    if (value >= 0) {
        json_put_u64(out, (uint64_t)value);
    } else if (value >= -JSON_EXACT) {
        out_i64(out, value);
    } else {
        out_char(out, '"');
        out_i64(out, value);
        out_char(out, '"');
    }
}

static inline void json_put_bool(struct out *out, bool value)
{
    out_str(out, value ? "true" : "false");
}

/* MARK: Writer */

/*
 * Writes one value after another. A key of NULL means none: for an array element, or after
 * json_key. All control characters in text, line ends and tabs included, become \u....
 */
struct json {
    struct out *out;
    bool comma;
    bool keyed;  /* json_key has written the next key */
    bool shared; /* flush each value: other output to the same sink keeps its order */
    bool bare;   /* integers beyond 2^53 are numbers too */
};

void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_key(struct json *json, trail_string key); /* any bytes; pass NULL as the next value's
                                                     * key */
void json_string(struct json *json, const char *key, const char *value);
void json_text(struct json *json, const char *key, trail_string value); /* any bytes */
void json_number(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value); /* 15 digits; null: not finite */
/* The same with `digits` significant digits, for a finite value. */
void json_rounded(struct json *json, const char *key, double value, int digits);
void json_signed(struct json *json, const char *key, int64_t value);
void json_bare(struct json *json, const char *key, trail_string value); /* value is JSON already */
void json_null(struct json *json, const char *key);
void json_bool(struct json *json, const char *key, bool value);

/* Writes an object with the members "code", "message" and the known positions. */
void json_error(struct json *json, const char *key, const trail_error *err);
