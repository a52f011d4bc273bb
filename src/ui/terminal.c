/* Passes stdout and stderr through the filter of terminals, and wraps lines. */
#include "ui/terminal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/output.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "ui/fit.h"
#include "ui/wrap.h"

static struct terminal guards[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

/* The incomplete line of stdout, if lines are wrapped. */
static struct {
    bool wrapped;
    char *text;
    size_t size, capacity;
    int begun; /* its columns already written, before the text */
} line;

/* Pipes get the output unfiltered: the filter is for terminals. */
static bool is_piped;

static bool put_out(const char *data, size_t size)
{
    return is_piped ? write_all(STDOUT_FILENO, data, size) : terminal_write(&guards[0], data, size);
}

static bool put_guarded(void *context, const char *data, size_t size)
{
    (void)context;
    return put_out(data, size);
}

static bool flush_line(void)
{
    bool good = true;
    if (line.size > 0) {
        line.text[line.size] = '\0';
        /* Text with a NUL is binary: it is not wrapped. */
        good = strlen(line.text) == line.size
                   ? wrap_line(line.text, fit_columns() - line.begun, put_guarded, NULL)
                   : put_out(line.text, line.size);
    }
    line.size = 0;
    return good;
}

/* Writes the beginning of a line; the rest is wrapped separately. */
static void begin_line(void)
{
    if (line.size > 0) {
        line.text[line.size] = '\0';
        line.begun += utf8_columns(line.text);
    }
    (void)flush_line();
}

/* Stores an incomplete line. Returns false on an error. */
static bool write_lines(const char *data, size_t size)
{
    bool good = true;
    for (size_t i = 0; i < size && good; i++) {
        if (data[i] == '\n') {
            good = flush_line() && put_out("\n", 1);
            line.begun = 0;
        } else if (GROW(line.text, line.capacity, line.size + 2)) {
            line.text[line.size++] = data[i];
        } else {
            good = false;
        }
    }
    return good;
}

static ssize_t write_guarded(void *cookie, const char *data, size_t size)
{
    struct terminal *terminal = cookie;
    if (line.wrapped && terminal == &guards[0] && !terminal->open)
        return write_lines(data, size) ? (ssize_t)size : 0;
    bool good = terminal == &guards[0] ? put_out(data, size) : terminal_write(terminal, data, size);
    return good ? (ssize_t)size : 0;
}

static void guard(FILE **stream, struct terminal *terminal, int buffering)
{
    cookie_io_functions_t functions = {.write = write_guarded};
    FILE *guarded = fopencookie(terminal, "w", functions);
    if (!guarded)
        return;
    (void)setvbuf(guarded, NULL, buffering, buffering == _IONBF ? 0 : BUFSIZ);
    *stream = guarded;
}

void terminal_guard(void)
{
    if (isatty(STDOUT_FILENO))
        guard(&stdout, &guards[0], _IOLBF);
    if (isatty(STDERR_FILENO))
        guard(&stderr, &guards[1], _IOLBF);
}

bool terminal_colours(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

void terminal_control(FILE *to, const char *controls)
{
    struct terminal *terminal = &guards[to == stderr];
    (void)fflush(to);
    if (to == stdout)
        begin_line();
    terminal->open = true;
    fputs(controls, to);
    (void)fflush(to);
    terminal->open = false;
}

void terminal_wrap(void)
{
    if (line.wrapped || (!isatty(STDOUT_FILENO) && fit_columns() == INT_MAX))
        return;
    line.wrapped = true;
    if (isatty(STDOUT_FILENO))
        return;
    is_piped = true;
    guard(&stdout, &guards[0], _IOFBF);
}

void terminal_unwrap(void)
{
    line.wrapped = line.wrapped && !is_piped;
}

bool terminal_end(void)
{
    bool good = flush_line();
    free(line.text);
    line.text = NULL;
    return terminal_finish(&guards[0]) && good;
}
