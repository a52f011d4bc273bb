#include "ui/show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* MARK: For people */

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

void show_line_on(FILE *to, const char *format, va_list args)
{
    char *line;
    int size = vasprintf(&line, format, args);
    if (size >= 0) {
        show_plain_on(to, (trail_string){line, (size_t)size});
        free(line);
    } else {
        fputs("(out of memory for this line)", to);
    }
    fputc('\n', to);
}

void show_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    show_line_on(stdout, format, args);
    va_end(args);
}

/* MARK: JSON */

static bool write_stdout(void *context, const void *data, size_t size)
{
    (void)context;
    return fwrite_unlocked(data, 1, size, stdout) == size;
}

struct json json_on_stdout(void)
{
    static char buffer[4096];
    static struct out out = {
        .at = buffer, .end = buffer + sizeof buffer, .buffer = buffer, .write = write_stdout};
    return (struct json){.out = &out};
}
