/*
 * trail convert: writes a trace of any version as one of another, in whole or in part.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands/convert_select.h"
#include "ui/progress.h"
#include "ui/trace_file.h"
#include "ui/values.h"
#include "ui/window.h"
#include "words/vocabulary.h"

struct request {
    const struct command *command;
    const char *word, *output, *binary;
    struct window window;
    trail_convert_options convert;
    trail_reader_options reader;
    struct selection selection;
};

static const struct option rows[] = {
    {'t', "to", "go1.N|TIME",
     "the version to write: go1.26 (the default), go1.25, go1.23 or go1.22; a time: nothing after "
     "it (+TIME: as long after --from)",
     TAKE(0), .values = "go1.26 go1.25 go1.23 go1.22"},
    {0, "from", "TIME", "nothing before this time since the first event: 1.5s, 20ms, 300us",
     TO_WINDOW_FROM(struct request, window)},
    SELECTION_ROWS(struct request, selection),
    {0, "anonymize", NULL, "replace all names and texts except those of the standard library",
     TO_FLAG(struct request, convert.anonymize)},
    {0, "key", "SECRET", "with --anonymize: the same replacements in all traces with this key",
     TO_TEXT(struct request, convert.secret)},
    {'o', "output", "FILE", "where the trace goes (- is stdout, the default)",
     TO_TEXT(struct request, output)},
    {0, "repair", NULL, "repair inconsistent orders of events",
     TO_FLAG(struct request, reader.repair)},
    {0, "binary", "FILE", "Go 1.5 and 1.6: the traced program, for names in stacks",
     TO_TEXT(struct request, binary)},
    {0},
};

/* MARK: The command line */

/* Returns the number for 1.23, go1.23 or 23; 0: not a version that can be written. */
static int version_of(const char *text)
{
    static const int versions[] = {22, 23, 25, 26};
    int64_t minor;
    if (strncmp(text, "go", 2) == 0)
        text += 2;
    if (strncmp(text, "1.", 2) != 0 || !parse_id(text + 2, "", &minor))
        return -1;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        if (versions[i] == minor)
            return versions[i];
    return 0;
}

/* --to, which is a version or a time. */
static int parse_to(void *context, int id, const char *value)
{
    struct request *request = context;
    int64_t ns;
    (void)id;
    /* A time has a unit, 1.5s; a version has none. */
    if (parse_time(value + (*value == '+'), &ns))
        return window_to(request->command, &request->window, value);
    int version = version_of(value);
    if (version < 0)
        return usage_error(request->command,
                           "--to is a version (go1.26) or a time (1.5s), not '%s'", value);
    if (version == 0)
        return usage_error(request->command,
                           "format '%s' cannot be written: go1.26, go1.25, go1.23 or go1.22",
                           value);
    request->convert.version = version;
    return EXIT_GOOD;
}

static int check_usage(struct request *request, const struct options *options)
{
    trail_convert_options *convert = &request->convert;
    int wrong = check_trace_output(options, "trace", request->output);
    if (!wrong)
        wrong = window_finish(&request->window, request->command);
    if (wrong)
        return wrong;
    request->word = options->words[0];
    WINDOW_PUT(convert, &request->window);
    if (convert->secret && !convert->anonymize)
        return usage_error(request->command, "--key is for --anonymize");
    return EXIT_GOOD;
}

/* MARK: Messages */

static void print_result(const struct request *request, const trail_reader *reader,
                         const trail_convert_stats *stats)
{
    const char *title = source_title(request->word);
    print_repairs(request->word, reader);
    if (stats->left_out > 0)
        print_message("%s: %" PRIu64 " event%s left out that cannot be in the new trace", title,
                      stats->left_out, plural_s(stats->left_out));
    if (stats->unknown_batches > 0)
        print_message("%s: %" PRIu64 " batch%s of experiments left out, because names in them are "
                      "not known",
                      title, stats->unknown_batches, stats->unknown_batches == 1 ? "" : "es");
}

/* MARK: Converting */

static int convert_to(struct request *request, trail_reader *reader, struct trace_file *file,
                      const char *path)
{
    trail_convert_stats stats;
    trail_error err = no_error();
    trail_sink sink = packed_sink(&file->packed);
    int code = EXIT_GOOD;
    bool good = trail_convert(reader, &request->convert, &sink, &stats, &err) == 0;
    bool made = stats.generations > 0 && !file->output.reason;
    if (!good && !file->output.reason)
        code = print_error(request->word, &err);
    if (made) {
        print_result(request, reader, &stats);
        if (code == EXIT_BAD)
            print_message("%s: the good part was converted: %" PRIu64 " event%s",
                          source_title(request->word), stats.events, plural_s(stats.events));
    } else if (code == EXIT_GOOD && !file->output.reason) {
        print_message("%s: no event in %s", source_title(request->word),
                      request->convert.has_from || request->convert.has_to ? "that window" : "it");
        code = EXIT_BAD;
    }
    return close_trace_file(file, path, made && code != EXIT_INOUT, code);
}

static int convert_source(struct request *request, trail_source *source)
{
    struct trace_file file;
    struct progress progress;
    trail_error err;
    trail_reader *reader = trail_reader_open(source, &request->reader, &err);
    if (!reader)
        return print_error(request->word, &err);
    int code = open_trace_file(&file, request->output);
    if (code == EXIT_GOOD) {
        progress_begin(&progress, source, PROGRESS_OUTPUT_MEANWHILE);
        request->convert.progress = progress_step;
        request->convert.progress_context = &progress;
        code = convert_to(request, reader, &file, request->output);
        progress_end(&progress);
    }
    trail_reader_close(reader);
    return code;
}

/* Converts the trace, once the goroutines to keep are known. */
static int convert_input(struct request *request)
{
    struct input input;
    trail_error err;
    int64_t *ids = NULL;
    bool some = selection_is_some(&request->selection);
    if (input_init(&input, request->word, some, &err) < 0)
        return print_error(request->word, &err);
    int code = EXIT_GOOD;
    if (some) {
        code = selection_find(&request->selection, request->command, &input, &request->reader, &ids,
                              &request->convert.goroutine_count);
        request->convert.goroutines = ids;
    }
    if (code == EXIT_GOOD) {
        trail_source *source = input_open(&input, &err);
        code = source ? convert_source(request, source) : print_error(request->word, &err);
        trail_source_close(source);
    }
    free(ids);
    input_free(&input);
    return code;
}

static int convert_file(struct request *request)
{
    struct symbols *symbols = NULL;
    int code = open_binary(request->binary, &symbols, &request->reader);
    if (code != EXIT_GOOD)
        return code;
    request->reader.partial = true;
    request->reader.ahead = true;
    request->reader.threads = input_limits.threads;
    request->reader.from_ns = request->convert.from_ns;
    code = convert_input(request);
    close_binary(symbols);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command, .output = "-"};
    struct options options;
    int code = options_each(&options, command, argc, argv, parse_to, &request);
    if (code == EXIT_GOOD)
        code = check_usage(&request, &options);
    if (code == EXIT_GOOD)
        code = convert_file(&request);
    selection_free(&request.selection);
    return code;
}

const struct command command_convert = {
    COMMAND_ROW(convert),
    .synopsis = "[options] TRACE --output=FILE",
    .details = "Writes the events of a trace of Go 1.5 to 1.27 as a trace that Go's tools of the "
               "chosen version open. For a damaged trace, the good part is written and the exit "
               "status is 1. With --from and --to only a window is written, with what was alive "
               "when it began. The file appears under its name only when it is complete. With "
               "--goroutine, --name or --task only these goroutines are kept, with those that woke "
               "them and garbage collection. With --anonymize it can be published: only texts of "
               "the standard library stay, with all times, numbers, lines and addresses.",
    .examples = "  trail convert old.trace -o new.trace && go tool trace new.trace\n"
                "  trail convert --to=go1.23 app.trace -o app-1.23.trace\n"
                "  trail convert --from=1.5s --to=+20ms app.trace -o moment.trace\n"
                "  trail convert --name='net/http.(*conn).serve' app.trace -o requests.trace\n"
                "  trail convert --anonymize app.trace -o anonymous.trace\n"
                "  trail convert --repair cgo.trace -o whole.trace",
};
