/* Opening and closing of files with messages and exit codes. */
#include "ui/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/part_name.h"
#include "base/text.h"
#include "ui/closed_stdout.h"
#include "ui/show.h"

int exit_code_of(const trail_error *err)
{
    switch (err->code) {
    case TRAIL_OK:
        return EXIT_GOOD;
    case TRAIL_USAGE:
        return EXIT_USAGE;
    case TRAIL_IO:
    case TRAIL_NO_MEMORY:
    case TRAIL_LIMIT:
        return EXIT_INOUT;
    default:
        return EXIT_BAD;
    }
}

const char *source_title(const char *word)
{
    return strcmp(word, "-") == 0 ? "stdin" : word;
}

struct input_limits input_limits;

trail_source *limit_source(trail_source *source)
{
    if (source)
        trail_source_limit_inflated(source, input_limits.max_bytes, input_limits.max_ratio);
    return source;
}

trail_source *open_source(const char *word, trail_error *err)
{
    struct part_name part;
    const char *opened = getenv(OPENED_VARIABLE);
    char path[64];
    if (opened) {
        (void)snprintf(path, sizeof path, "/proc/self/fd/%s", opened);
        return limit_source(trail_source_open_path(path, err));
    }
    if (part_name_parse(word, &part))
        return trail_source_open_part(part.file, part.number, input_limits.max_bytes,
                                      input_limits.max_ratio, err);
    return limit_source(strcmp(word, "-") == 0 ? trail_source_open_fd(STDIN_FILENO, err)
                                               : trail_source_open_path(word, err));
}

/* Whether the message already contains the word, as "cannot open WORD: ..." does. */
static bool names_word(const char *message, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = message; (at = strchr(at, ' ')) != NULL;) {
        at++;
        if (strncmp(at, word, length) == 0 && at[length] == ':')
            return true;
    }
    return false;
}

void print_message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("trail: ", stderr);
    show_line_on(stderr, format, args);
    va_end(args);
}

void print_message_lines(const char *message)
{
    fputs("trail: ", stderr);
    do {
        size_t size = strcspn(message, "\n");
        show_plain_on(stderr, (trail_string){message, size});
        fputc('\n', stderr);
        message += size + (message[size] == '\n');
    } while (*message);
}

/* Returns the columns that the text takes on a terminal. */
static int columns(const char *text, size_t size)
{
    const uint8_t *at = (const uint8_t *)text, *end = at + strnlen(text, size);
    int count = 0;
    while (at < end) {
        char shown[PLAIN_MOST];
        unsigned length;
        at += plain_step(at, end, shown, &length);
        count += (uint8_t)shown[0] >= 0x80 ? 1 : (int)length;
    }
    return count;
}

void print_marked_text(const char *indent, const char *text, size_t begin, size_t size)
{
    fputs(indent, stderr);
    show_plain_on(stderr, text_from(text));
    fprintf(stderr, "\n%s%*s^", indent, columns(text, begin), "");
    for (int i = columns(text + begin, size); i > 1; i--)
        fputc('~', stderr);
    fputc('\n', stderr);
}

int print_error(const char *word, const trail_error *err)
{
    char where[256];
    (void)trail_error_where(err, where, sizeof where);
    (void)fflush(stdout); /* so that earlier output appears before it */
    bool named = err->code == TRAIL_IO && names_word(err->message, word);
    print_message("%s%s%s%s%s%s", named ? "" : source_title(word), named ? "" : ": ", err->message,
                  *where ? " (at " : "", where, *where ? ")" : "");
    if (err->code == TRAIL_LIMIT)
        print_message(
            "if the file is to be trusted, allow more with --max-ratio=N and --max-inflated=SIZE "
            "(0: any)");
    return exit_code_of(err);
}

int print_error_message(const trail_error *err)
{
    print_message("%s", err->message);
    return exit_code_of(err);
}

int exit_no_memory(void)
{
    show_lacks();
    return EXIT_INOUT;
}

int print_output_error(const char *title, int reason)
{
    if (closed_stdout_is(reason))
        return EXIT_INOUT;
    trail_error err;
    (void)output_error(&err, title, reason);
    return print_error_message(&err);
}

int open_output_beside(struct output *output, const char *path)
{
    trail_error err;
    return output_open_beside(output, path, &err) ? EXIT_GOOD : print_error_message(&err);
}

int close_output(struct output *output, const char *path, bool made, int code)
{
    trail_error err;
    if (output_close(output, path, made, &err))
        return code;
    return closed_stdout_is(output->reason) ? EXIT_INOUT : print_error_message(&err);
}

/* An earlier failure to write to the stream has left no errno. */
static int reason_of_failure(void)
{
    return errno ? errno : closed_stdout_is(EPIPE) ? EPIPE : EIO;
}

int finish_stdout(int code)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) || !terminal_end())
        code = print_output_error("the output", reason_of_failure());
    closed_stdout_end();
    if (!show_is_whole()) {
        print_message("out of memory: a part of the output is missing");
        code = EXIT_INOUT;
    }
    return code;
}
