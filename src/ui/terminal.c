#include "ui/terminal.h"

#include <unistd.h>

#include "base/terminal.h"

static struct terminal guards[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};

static ssize_t write_guarded(void *cookie, const char *data, size_t size)
{
    return terminal_write(cookie, data, size) ? (ssize_t)size : 0;
}

static void guard(FILE **stream, struct terminal *terminal, int buffering)
{
    cookie_io_functions_t functions = {.write = write_guarded};
    FILE *guarded = isatty(terminal->fd) ? fopencookie(terminal, "w", functions) : NULL;
    if (!guarded)
        return;
    (void)setvbuf(guarded, NULL, buffering, buffering == _IONBF ? 0 : BUFSIZ);
    *stream = guarded;
}

void terminal_guard(void)
{
    guard(&stdout, &guards[0], _IOLBF);
    guard(&stderr, &guards[1], _IOLBF);
}

void terminal_control(FILE *to, const char *controls)
{
    struct terminal *terminal = &guards[to == stderr];
    (void)fflush(to);
    terminal->open = true;
    fputs(controls, to);
    (void)fflush(to);
    terminal->open = false;
}

bool terminal_end(void)
{
    return terminal_finish(&guards[0]);
}
