/*
 * trail assemble: makes a trace from the text form of its records, which `trail print
 * --format=wire` prints.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

enum { OPT_OUTPUT = 1, OPT_VERSION };

static const struct option rows[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "where the trace goes (- is stdout)", NULL},
    {OPT_VERSION, 'V', "version", "VERSION",
     "the format, like 1.26, if the text does not begin with a line\n'Trace Go1.26'",
     "1.5 1.7 1.8 1.9 1.10 1.11 1.19 1.21 1.22 1.23 1.25 1.26"},
    {0},
};

/* The minor number of "1.26", "Go1.26" or "26"; 0 if there is no such format. */
static int parse_version(const char *text)
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

static int assemble(const char *word, const char *path, int version)
{
    trail_error err;
    struct output output;
    trail_source *text = open_source(word, &err);
    if (!text)
        return tell_error(word, &err);
    int code = output_open(&output, path);
    if (code == EXIT_GOOD) {
        trail_sink sink = output_sink(&output);
        bool made = trail_assemble(text, version, &sink, &err) == 0;
        if (!made && !output.reason)
            code = tell_error(word, &err);
        code = output_close(&output, path, made, code);
    }
    trail_source_close(text);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *output = NULL;
    int version = 0;
    struct options options;
    int id;
    options_begin(&options, command, argc, argv);
    while ((id = options_next(&options)) > 0) {
        if (id == OPT_OUTPUT) {
            output = options.value;
        } else {
            version = parse_version(options.value);
            if (version == 0)
                return usage_error(command, "no format '%s'; formats are like 1.26", options.value);
        }
    }
    if (id != OPTIONS_END)
        return id == OPTIONS_HELP ? EXIT_GOOD : EXIT_USAGE;
    if (options.word_count != 1)
        return usage_error(command, options.word_count == 0 ? "which text? (- is stdin)"
                                                            : "one text at a time");
    if (!output)
        return usage_error(command, "where to? --output=FILE (- is stdout)");
    if (overwrites(output, options.words[0]))
        return usage_error(command, "the trace would overwrite its text, '%s'", output);
    return assemble(options.words[0], output, version);
}

const struct command command_assemble = {
    .name = "assemble",
    .summary = "make a trace from the text form of its records",
    .synopsis = "[options] FILE.txt --output=FILE",
    .details =
        "The inverse of 'trail print --format=wire', for traces written by hand: for tests, and\n"
        "to try what a reader makes of a sequence of events. In hand-written text a batch may\n"
        "have size=auto.",
    .examples = "  trail assemble steal.txt -o steal.trace && trail check steal.trace\n"
                "  trail print -f wire app.trace | trail assemble --version=1.26 - -o copy.trace",
    .options = rows,
    .run = run,
};
