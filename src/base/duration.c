/* Durations as text in several forms, and back. */
#include "base/duration.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/out.h"
#include "base/show.h"
#include "base/text.h"
#include "base/whole.h"

enum { UNITS = 4 };

static const struct {
    int64_t ns;
    const char *name;
} units[] = {{1000000000, "s"}, {1000000, "ms"},    {1000, "us"},
             {1, "ns"},         {60000000000, "m"}, {3600000000000, "h"}};

/* MARK: To text */

static char *put_column(char *to, int64_t ns, int64_t unit)
{
    return to + (unit == 1 ? snprintf(to, DURATION_SIZE, "%" PRId64, ns)
                           : snprintf(to, DURATION_SIZE, "%.3f", (double)ns / (double)unit));
}

/* Longer than 1,000 s: as counts are written. */
static char *put_seconds(char *to, double value)
{
    const char *text = show_thousands(to, (uint64_t)(value + 0.5));
    return to + strlen(text);
}

static char *put_summary(char *to, int64_t ns, int64_t unit)
{
    double value = (double)ns / (double)unit;
    if (value >= 999.5)
        return put_seconds(to, value);
    return to + snprintf(to, DURATION_SIZE, "%.*f",
                         value < 9.995   ? 2
                         : value < 99.95 ? 1
                                         : 0,
                         value);
}

static char *put_words(char *to, int64_t ns, int64_t unit)
{
    return unit == 1 ? put_column(to, ns, unit) : put_summary(to, ns, unit);
}

static char *put_event(char *to, int64_t ns, int64_t unit)
{
    return scaled_put(to, ns < 0 ? 0 : (uint64_t)ns, (uint64_t)unit);
}

/*
 * The value is rounded to few decimals, so that they end within two digits. A recording writes one
 * for each hold: writing digits by hand takes a tenth of printf's time.
 */
static char *put_log(char *to, int64_t ns, int64_t unit)
{
    int64_t size = ns < 0 ? -ns : ns, hundredths = size % unit * 100 / unit;
    if (ns < 0)
        *to++ = '-';
    to = u64_put(to, (uint64_t)(size / unit));
    if (hundredths == 0)
        return to;
    *to++ = '.';
    *to++ = (char)('0' + hundredths / 10);
    if (hundredths % 10)
        *to++ = (char)('0' + hundredths % 10);
    return to;
}

static const struct {
    char *(*put)(char *to, int64_t ns, int64_t unit);
    bool gap;
    bool rounded; /* to a multiple of a power of ten, before the unit is chosen */
    bool near;    /* a value that rounds up to the next unit is shown in that: 1.00 ms, not 1000
                   * us */
} forms[DURATION_FORMS] = {
    [DURATION_COLUMN] = {put_column, true, false, false},
    [DURATION_WORDS] = {put_words, true, false, true},
    [DURATION_SUMMARY] = {put_summary, true, false, true},
    [DURATION_EVENT] = {put_event, false, false, false},
    [DURATION_LOG] = {put_log, false, true, false},
};

static int64_t rounded(int64_t ns)
{
    int64_t unit = 1, limit = ns < 10000 ? 100 : 1000;
    while (ns / unit >= limit)
        unit *= 10;
    return (int64_t)(((uint64_t)ns + (uint64_t)unit / 2) / (uint64_t)unit) * unit;
}

char *duration_put(char *to, int64_t ns, enum duration_form form)
{
    size_t i = 0;
    if (forms[form].rounded && ns > 0)
        ns = rounded(ns);
    while (i + 1 < UNITS && ns < units[i].ns - (forms[form].near ? units[i].ns / 2000 : 0))
        i++;
    to = forms[form].put(to, ns, units[i].ns);
    if (forms[form].gap)
        *to++ = ' ';
    for (const char *name = units[i].name; *name; name++)
        *to++ = *name;
    return to;
}

const char *duration_text(char *buf, int64_t ns, enum duration_form form)
{
    *duration_put(buf, ns, form) = '\0';
    return buf;
}

const char *duration_on_axis(char *buf, double ns)
{
    size_t i = UNITS - 1;
    for (; ns >= 999.5 && i > 0; i--)
        ns /= 1000;
    (void)snprintf(buf, DURATION_SIZE, ns < 1000 ? "%.3g %s" : "%.0f %s", ns, units[i].name);
    return buf;
}

/* Whether a word could continue with the character. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           (c & 0x80);
}

const char *duration_us_in(const char *text)
{
    for (const char *at = text; (at = strstr(at, "us")); at += 2) {
        const char *before = at > text && at[-1] == ' ' ? at - 1 : at;
        if (before > text && is_digit(before[-1]) && !is_letter(at[2]))
            return at;
    }
    return text + strlen(text);
}

/* MARK: From text */

int64_t duration_unit(const char *name, size_t size)
{
    static const char *const signs[] = {MICRO_SIGN "s", "\xce\xbcs"}; /* also the Greek letter */
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strlen(signs[i]) == size && memcmp(signs[i], name, size) == 0)
            return 1000;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == size && memcmp(units[i].name, name, size) == 0)
            return units[i].ns;
    return 0;
}

int64_t duration_parse(const char *at, const char *end)
{
    const char *begin = at;
    double value = 0, scale = 1;
    bool point = false;
    for (; at < end && (is_digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        value = 10 * value + (*at - '0');
        scale *= point ? 10 : 1;
    }
    int64_t unit = duration_unit(at, (size_t)(end - at));
    if (at == begin || unit == 0 || unit > units[0].ns)
        return -1;
    value = value / scale * (double)unit;
    return value < 9e18 ? whole_of(value + 0.5) : -1;
}
