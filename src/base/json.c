/* The JSON writer: text with escapes, and values with commas between them. */
#include "base/json.h"

#include <math.h>

#include "base/text.h"
#include "base/utf8.h"

/* MARK: Text */

/* The escapes of a line end, a carriage return and a tab: \n or \u000a. */
enum controls { AS_LETTERS, AS_NUMBERS };

static void put_unit(struct out *out, uint32_t unit)
{
    out_str(out, "\\u");
    out_hex(out, unit, 4);
}

static void put_escape(struct out *out, uint32_t rune, enum controls controls)
{
    static const char letters[] = "\"\\\n\r\t", escapes[] = "\"\\nrt";
    const char *letter =
        rune > 0 && rune < 0x80 ? memchr(letters, (int)rune, sizeof letters - 1) : NULL;
    if (letter && (controls == AS_LETTERS || rune >= 0x20)) {
        out_char(out, '\\');
        out_char(out, escapes[letter - letters]);
    } else if (rune < 0x10000) {
        put_unit(out, rune);
    } else {
        put_unit(out, 0xd800 + ((rune - 0x10000) >> 10));
        put_unit(out, 0xdc00 + ((rune - 0x10000) & 0x3ff));
    }
}

static inline bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static bool put_text(struct out *out, trail_string text, enum controls controls)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    bool valid = true;
    out_char(out, '"');
    while (at < end) {
        const uint8_t *plain = at;
        while (plain < end && is_plain(*plain))
            plain++;
        out_bytes(out, at, (size_t)(plain - at));
        at = plain;
        if (at == end)
            break;
        uint32_t rune;
        unsigned n = utf8_decode(at, end, &rune);
        if (n == 0) {
            out_str(out, "\xef\xbf\xbd");
            valid = false;
        } else if (n == 1 || !rune_is_print(rune)) {
            put_escape(out, rune, controls);
        } else {
            out_bytes(out, at, n);
        }
        at += n ? n : 1;
    }
    out_char(out, '"');
    return valid;
}

bool json_put_text(struct out *out, trail_string text)
{
    return put_text(out, text, AS_LETTERS);
}

/* MARK: Writer */

void json_key(struct json *json, trail_string key)
{
    if (json->comma)
        out_char(json->out, ',');
    (void)put_text(json->out, key, AS_NUMBERS);
    out_char(json->out, ':');
    json->keyed = true;
}

static void put_key(struct json *json, const char *key)
{
    if (key)
        json_key(json, text_from(key));
    else if (json->comma && !json->keyed)
        out_char(json->out, ',');
    json->keyed = false;
    json->comma = true;
}

static inline void value_ends(struct json *json)
{
    if (json->shared)
        out_flush(json->out);
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    out_char(json->out, bracket);
    json->comma = false;
    value_ends(json);
}

void json_close(struct json *json, char bracket)
{
    out_char(json->out, bracket);
    json->comma = true;
    value_ends(json);
}

void json_string(struct json *json, const char *key, const char *value)
{
    json_text(json, key, text_from(value));
}

void json_text(struct json *json, const char *key, trail_string value)
{
    put_key(json, key);
    (void)put_text(json->out, value, AS_NUMBERS);
    value_ends(json);
}

void json_real(struct json *json, const char *key, double value)
{
    if (!isfinite(value)) { /* JSON has no infinities or NaN */
        json_null(json, key);
        return;
    }
    json_rounded(json, key, value, 15);
}

void json_rounded(struct json *json, const char *key, double value, int digits)
{
    put_key(json, key);
    out_format(json->out, "%.*g", digits, value);
    value_ends(json);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    if (json->bare)
        out_u64(json->out, value);
    else
        json_put_u64(json->out, value);
    value_ends(json);
}

void json_signed(struct json *json, const char *key, int64_t value)
{
    put_key(json, key);
    if (json->bare)
        out_i64(json->out, value);
    else
        json_put_i64(json->out, value);
    value_ends(json);
}

void json_bare(struct json *json, const char *key, trail_string value)
{
    put_key(json, key);
    out_bytes(json->out, value.data, value.size);
    value_ends(json);
}

void json_null(struct json *json, const char *key)
{
    json_bare(json, key, text_from("null"));
}

void json_bool(struct json *json, const char *key, bool value)
{
    json_bare(json, key, text_from(value ? "true" : "false"));
}

void json_error(struct json *json, const char *key, const trail_error *err)
{
    const struct {
        const char *key;
        int64_t value;
    } positions[] = {
        {"offset", err->offset},   {"generation", err->generation},
        {"batch", err->batch},     {"m", err->thread},
        {"p", err->proc},          {"g", err->goroutine},
        {"time_ns", err->time_ns},
    };
    json_open(json, key, '{');
    json_string(json, "code", trail_code_name(err->code));
    json_string(json, "message", err->message);
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++)
        if (positions[i].value != TRAIL_NOWHERE)
            json_signed(json, positions[i].key, positions[i].value);
    json_close(json, '}');
}
