/*
 * trail assemble: makes a trace from the text form of its records, which `trail print
 * --format=wire` prints.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/cli.h"
#include "ui/trace_file.h"

enum { OPT_VERSION = 1 };

struct request {
    const struct command *command;
    const char *output;
    int version;
};

static const struct option rows[] = {
    {'o', "output", "FILE", "where the trace goes (- is stdout)", TO_TEXT(struct request, output)},
    {'V', "version", "VERSION",
     "the format, like 1.26, if the text does not begin with a line 'Trace Go1.26'",
     TAKE(OPT_VERSION), .values = "1.5 1.7 1.8 1.9 1.10 1.11 1.19 1.21 1.22 1.23 1.25 1.26"},
    {0},
};

/* Returns the minor number of "1.26", "Go1.26" or "26"; 0 if there is no such format. */
static int version_of(const char *text)
{
    if (strncmp(text, "go", 2) == 0 || strncmp(text, "Go", 2) == 0)
        text += 2;
    if (strncmp(text, "1.", 2) == 0)
        text += 2;
    char *end;
    long minor = strtol(text, &end, 10);
    bool known = *text && *end == '\0' && minor > 0 && minor < 1000 &&
                 trail_version_writers((int)minor) != NULL;
    return known ? (int)minor : 0;
}

/* --version. */
static int parse_version(void *context, int id, const char *value)
{
    struct request *request = context;
    (void)id;
    request->version = version_of(value);
    if (request->version > 0)
        return EXIT_GOOD;
    return usage_error(request->command, "no format '%s'; formats are numbers such as 1.26", value);
}

static int assemble(const char *word, const char *path, int version)
{
    trail_error err;
    struct trace_file file;
    trail_source *text = open_source(word, &err);
    if (!text)
        return print_error(word, &err);
    int code = open_trace_file(&file, path);
    if (code == EXIT_GOOD) {
        trail_sink sink = packed_sink(&file.packed);
        bool made = trail_assemble(text, version, &sink, &err) == 0;
        if (!made && !file.output.reason)
            code = print_error(word, &err);
        code = close_trace_file(&file, path, made, code);
    }
    trail_source_close(text);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command};
    struct options options;
    int code = options_each(&options, command, argc, argv, parse_version, &request);
    if (code == EXIT_GOOD)
        code = check_trace_output(&options, "text", request.output);
    if (code != EXIT_GOOD)
        return code;
    return assemble(options.words[0], request.output, request.version);
}

const struct command command_assemble = {
    COMMAND_ROW(assemble),
    .synopsis = "[options] FILE.txt --output=FILE",
    .details =
        "The inverse of 'trail print --format=wire', for traces written by hand: for tests, and "
        "to try what a reader makes of a sequence of events. In hand-written text a batch may "
        "have size=auto.",
    .examples = "  trail assemble steal.txt -o steal.trace && trail check steal.trace\n"
                "  trail print -f wire app.trace | trail assemble --version=1.26 - -o copy.trace",
};
