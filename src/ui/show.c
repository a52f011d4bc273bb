/* Prints durations and text of a trace. */
#include "ui/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/json.h"
#include "base/text.h"
#include "base/utf8.h"
#include "ui/terminal.h"

/* MARK: For people */

bool show_is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

const char *show_duration_as(char *buf, int64_t ns, enum duration_form form)
{
    char *us = buf + (duration_us_in(duration_text(buf, ns, form)) - buf);
    if (*us && show_is_utf8())
        memcpy(us, MICRO_SIGN "s", sizeof MICRO_SIGN "s");
    return buf;
}

const char *show_duration(char *buf, int64_t ns)
{
    return show_duration_as(buf, ns, DURATION_COLUMN);
}

const char *show_right(char *buf, int columns, const char *text)
{
    size_t size = strlen(text);
    int width = utf8_columns(text);
    size_t pad = width < columns ? (size_t)(columns - width) : 0;
    pad = pad + size < SHOW_SIZE ? pad : 0;
    memmove(buf + pad, text, size + 1);
    memset(buf, ' ', pad);
    return buf;
}

void show_figures(const char *text)
{
    const char *us;
    for (; show_is_utf8() && *(us = duration_us_in(text)); text = us + 2) {
        show_plain((trail_string){text, (size_t)(us - text)});
        fputs(MICRO_SIGN "s", stdout);
    }
    show_plain(text_from(text));
}

void show_plain_on(FILE *to, trail_string text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        char shown[PLAIN_MOST];
        unsigned size;
        at += plain_step(at, end, shown, &size);
        (void)fwrite(shown, 1, size, to);
    }
}

void show_plain(trail_string text)
{
    show_plain_on(stdout, text);
}

static bool lacks;

void show_lacks(void)
{
    lacks = true;
}

bool show_is_whole(void)
{
    return !lacks;
}

void show_line_on(FILE *to, const char *format, va_list args)
{
    char line[1024], *longer = NULL;
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(line, sizeof line, format, args);
    if (size >= (int)sizeof line) {
        size = vasprintf(&longer, format, again);
        if (size < 0) {
            longer = NULL;
            size = sizeof line - 1;
            show_lacks();
        }
    }
    va_end(again);
    show_plain_on(to, (trail_string){longer ? longer : line, size > 0 ? (size_t)size : 0});
    free(longer);
    fputc('\n', to);
}

void show_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    show_line_on(stdout, format, args);
    va_end(args);
}

void show_error_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    show_line_on(stderr, format, args);
    va_end(args);
}

/* MARK: JSON */

static bool write_stdout(void *context, const void *data, size_t size)
{
    (void)context;
    terminal_unwrap();
    return fwrite_unlocked(data, 1, size, stdout) == size;
}

struct json json_on_stdout(void)
{
    static char buffer[4096];
    static struct out out = {
        .at = buffer, .end = buffer + sizeof buffer, .buffer = buffer, .write = write_stdout};
    return (struct json){.out = &out, .shared = true};
}
