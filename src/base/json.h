/*
 * JSON: values as all of trail writes them, and a writer that sets the commas.
 *
 * Text may be any bytes: those that are not UTF-8 become U+FFFD each, and characters that would steer a
 * terminal are escaped. Whole numbers over 2^53 either way are decimal strings, so that no reader rounds them.
 */
#ifndef TRAIL_BASE_JSON_H
#define TRAIL_BASE_JSON_H

#include <trail/read.h>

#include "base/out.h"

/* MARK: Values */

/* The text in quotes. Returns whether all of it was UTF-8. */
bool json_put_text(struct out *out, trail_string text);

#define JSON_EXACT (INT64_C(1) << 53)

/* "key": and nothing in front; the key needs no escapes. */
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
 * One value after the other, each handed to the sink of `out` at once: what another writer puts into that sink
 * in between stays in order. A key of NULL is none: the element of an array, or what json_key has begun. Line ends
 * and tabs in text are \u...., as all other control characters.
 */
struct json {
    struct out *out;
    bool comma;
    bool keyed; /* json_key has written the key of what comes next */
};

void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_key(struct json *json, trail_string key); /* any bytes, for the next, whose key is NULL */
void json_string(struct json *json, const char *key, const char *value);
void json_text(struct json *json, const char *key, trail_string value); /* any bytes */
void json_number(struct json *json, const char *key, uint64_t value);
void json_real(struct json *json, const char *key, double value); /* 15 digits; null: not finite */
void json_signed(struct json *json, const char *key, int64_t value);
void json_bare(struct json *json, const char *key, trail_string value); /* is JSON already */
void json_null(struct json *json, const char *key);
void json_bool(struct json *json, const char *key, bool value);

/* The members "code", "message" and the positions that are known. */
void json_error(struct json *json, const char *key, const trail_error *err);

#endif
