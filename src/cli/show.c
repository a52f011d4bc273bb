#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* MARK: For people */

void show_plain(trail_string text)
{
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        putchar(c < ' ' || c == 0x7f ? '?' : c);
    }
}

/* MARK: JSON */

/* Bytes of the UTF-8 character at `at`, 0 if there is none. */
static size_t utf8_size(const unsigned char *at, size_t left)
{
    size_t size = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
    if (*at > 0xf4 || size > left)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (*at == 0xe0 && at[1] < 0xa0) || (*at == 0xf0 && at[1] < 0x90);
    bool surrogate = *at == 0xed && at[1] > 0x9f;
    bool too_big = *at == 0xf4 && at[1] > 0x8f;
    return overlong || surrogate || too_big ? 0 : size;
}

static void put_text(trail_string text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.size;
    putchar_unlocked('"');
    while (at < end) {
        size_t size = utf8_size(at, (size_t)(end - at));
        if (size == 0)
            fputs("\xef\xbf\xbd", stdout);
        else if (*at == '"' || *at == '\\')
            printf("\\%c", *at);
        else if (*at < 0x20)
            printf("\\u%04x", *at);
        else
            (void)fwrite_unlocked(at, 1, size, stdout);
        at += size ? size : 1;
    }
    putchar_unlocked('"');
}

static trail_string text_of(const char *text)
{
    return (trail_string){text, strlen(text)};
}

void json_key(struct json *json, trail_string key)
{
    if (json->comma)
        putchar_unlocked(',');
    put_text(key);
    putchar_unlocked(':');
    json->keyed = true;
}

static void put_key(struct json *json, const char *key)
{
    if (key)
        json_key(json, text_of(key));
    else if (json->comma && !json->keyed)
        putchar_unlocked(',');
    json->keyed = false;
    json->comma = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
    put_key(json, key);
    putchar(bracket);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    putchar(bracket);
    json->comma = true;
}

void json_string(struct json *json, const char *key, const char *value)
{
    put_key(json, key);
    put_text(text_of(value));
}

void json_text(struct json *json, const char *key, trail_string value)
{
    put_key(json, key);
    put_text(value);
}

void json_real(struct json *json, const char *key, double value)
{
    put_key(json, key);
    printf("%.15g", value);
}

void json_number(struct json *json, const char *key, uint64_t value)
{
    put_key(json, key);
    const char *quote = value > UINT64_C(1) << 53 ? "\"" : "";
    printf("%s%" PRIu64 "%s", quote, value, quote);
}

void json_signed(struct json *json, const char *key, int64_t value)
{
    if (value >= 0) {
        json_number(json, key, (uint64_t)value);
        return;
    }
    put_key(json, key);
    const char *quote = value < -(INT64_C(1) << 53) ? "\"" : "";
    printf("%s%" PRId64 "%s", quote, value, quote);
}

void json_bare(struct json *json, const char *key, trail_string value)
{
    put_key(json, key);
    (void)fwrite(value.data, 1, value.size, stdout);
}

void json_null(struct json *json, const char *key)
{
    put_key(json, key);
    fputs("null", stdout);
}

void json_bool(struct json *json, const char *key, bool value)
{
    put_key(json, key);
    fputs(value ? "true" : "false", stdout);
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
