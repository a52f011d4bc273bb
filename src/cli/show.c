#include "cli/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* MARK: For people */

const char *show_bytes(char *buf, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned i = 0;
    double value = (double)bytes;
    for (; value >= 1024 && i < 6; i++)
        value /= 1024;
    if (i == 0)
        (void)snprintf(buf, SHOW_SIZE, "%" PRIu64 "%s", bytes, bytes == 1 ? " byte" : " bytes");
    else
        (void)snprintf(buf, SHOW_SIZE, value < 10 ? "%.2f %s" : "%.1f %s", value, units[i]);
    return buf;
}

const char *show_duration(char *buf, int64_t ns)
{
    if (ns >= 1000000000)
        (void)snprintf(buf, SHOW_SIZE, "%.3f s", (double)ns / 1e9);
    else if (ns >= 1000000)
        (void)snprintf(buf, SHOW_SIZE, "%.3f ms", (double)ns / 1e6);
    else if (ns >= 1000)
        (void)snprintf(buf, SHOW_SIZE, "%.3f us", (double)ns / 1e3);
    else
        (void)snprintf(buf, SHOW_SIZE, "%" PRId64 " ns", ns);
    return buf;
}

const char *show_wall(char *buf, int64_t s, uint32_t ns)
{
    time_t seconds = (time_t)s;
    struct tm tm;
    char text[40];
    if (gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) > 0)
        (void)snprintf(buf, SHOW_SIZE, "%s.%09" PRIu32 " UTC", text, ns);
    else
        (void)snprintf(buf, SHOW_SIZE, "%" PRId64 " s after 1970", s);
    return buf;
}

/* MARK: JSON */

static void put_text(const char *text)
{
    putchar('"');
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            printf("\\%c", *c);
        else if (*c < 0x20)
            printf("\\u%04x", *c);
        else
            putchar(*c);
    }
    putchar('"');
}

static void put_key(struct json *json, const char *key)
{
    if (json->comma)
        putchar(',');
    json->comma = true;
    if (!key)
        return;
    put_text(key);
    putchar(':');
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
    put_text(value);
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
