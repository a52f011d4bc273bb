/*
 * trail print: the ordered events of a trace, as text, in the format of Go's tools, or as JSON.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli.h"
#include "ui/input.h"
#include "ui/progress.h"
#include "ui/show.h"
#include "ui/terminal.h"
#include "ui/values.h"
#include "ui/window.h"
#include "ui/words.h"

/* FORMAT_WIRE prints records; the other formats print events. */
enum { FORMAT_WIRE = 100 };

/* The lists of --kind. */
struct kinds {
    const char *lists[16];
    size_t count;
};

/* The command line. */
struct request {
    const struct command *command;
    const char *word;
    int format;
    struct kinds kinds;
    struct id_list goroutines, procs, threads;
    trail_filter filter;
    struct window window;
    bool filtered;
    bool stacks, no_stacks;
    unsigned color;
    trail_words words;
    const char *binary;
    trail_reader_options reader;
};

static int parse_format(const struct command *command, void *format, const char *word)
{
    static const char *const names[] = {"text", "go", "go-v1", "jsonl", "wire", NULL};
    static const int formats[] = {TRAIL_FORMAT_TEXT, TRAIL_FORMAT_GO, TRAIL_FORMAT_GO_V1,
                                  TRAIL_FORMAT_JSONL, FORMAT_WIRE};
    for (size_t i = 0; names[i]; i++) {
        *(int *)format = formats[i];
        if (strcmp(word, names[i]) == 0)
            return EXIT_GOOD;
    }
    return unknown_word(command, "format", word, names, "text, go, go-v1, wire and jsonl");
}

static int add_kinds(const struct command *command, void *member, const char *list)
{
    struct kinds *kinds = member;
    if (kinds->count == sizeof kinds->lists / sizeof *kinds->lists)
        return usage_error(command, "too many --kind; names may be joined by commas");
    kinds->lists[kinds->count++] = list;
    return EXIT_GOOD;
}

enum { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

static const struct option_word colors[] = {
    {"auto", COLOR_AUTO}, {"always", COLOR_ALWAYS}, {"never", COLOR_NEVER}, {0}};

static const struct option rows[] = {
    {'f', "format", "FORM",
     "text (one event per line; the default), jsonl (one JSON object per event), wire (the records "
     "of "
     "the file, unordered, for 'trail assemble'), go (as 'go tool trace -d=parsed' of Go 1.26 and "
     "1.27) or go-v1 (as 'go tool trace -d' of Go 1.21, for traces of Go 1.5 to 1.21)",
     TO_PARSED(struct request, format, int, parse_format), .values = "text go go-v1 wire jsonl"},
    {'g', "goroutine", "N,...", "only events by or about these goroutines",
     TO_IDS(struct request, goroutines, "gG")},
    {'p', "proc", "N,...", "only events on or of these Ps", TO_IDS(struct request, procs, "pP")},
    {'m', "thread", "N,...", "only events on these threads (Ms)",
     TO_IDS(struct request, threads, "mM")},
    {'k', "kind", "NAME,...",
     "only events of these kinds: StateTransition, Log, ..., or types in the file: GoBlock, ...",
     TO_PARSED(struct request, kinds, struct kinds, add_kinds)},
    {0, "from", "TIME", "from this time on, counted from the first event: 1.5s 20ms 300us",
     TO_WINDOW_FROM(struct request, window)},
    {0, "to", "TIME", "up to this time; +3ms counts from --from",
     TO_WINDOW_TO(struct request, window)},
    {'n', "limit", "N", "at most N events", TO_NUMBER(struct request, filter.limit), .least = 1,
     .expects = "a number from 1 on"},
    {'s', "stacks", NULL, "text: show stacks, one frame per line", TO_FLAG(struct request, stacks)},
    {0, "no-stacks", NULL, "jsonl: leave stacks out", TO_FLAG(struct request, no_stacks)},
    {0, "color", "WHEN",
     "when to use colours: auto (on a terminal, unless NO_COLOR is set; the default), always or "
     "never",
     TO_WORD(struct request, color, colors), .expects = "auto, always or never"},
    {0, "repair", NULL,
     "repair inconsistent orders of events; 'trail check --repair --list' lists the assumptions",
     TO_FLAG(struct request, reader.repair)},
    {0, "partial", NULL, "Go 1.5 to 1.21, in the format of Go's tools: print the good part, too",
     TO_FLAG(struct request, reader.partial)},
    {0, "strict", NULL,
     "fail at a misused region, task or log, as Go's tools do; --format=go and go-v1 imply it",
     TO_FLAG(struct request, reader.strict)},
    {0, "binary", "FILE", "Go 1.5 and 1.6: the traced program, for names in stacks",
     TO_TEXT(struct request, binary)},
    WORDS_ROW(struct request, words),
    {0},
};

/* MARK: Filters */

static int unknown_kind(const struct request *request, trail_view view, const char *name)
{
    const char *names[256];
    size_t count = 0;
    while (count < 255 && (names[count] = trail_filter_kind_name(view, count)) != NULL)
        count++;
    names[count] = NULL;
    const char *nearest = nearest_word(name, names);
    if (nearest)
        return usage_error(request->command, "no kind of event '%s'; did you mean '%s'?", name,
                           nearest);
    return usage_error(request->command, "no kind of event '%s'", name);
}

/* Which kinds of events there are depends on the view, so this is called once --format is known. */
static int finish_kinds(struct request *request)
{
    trail_view view = request->reader.view;
    for (size_t i = 0; i < request->kinds.count; i++) {
        const char *at = request->kinds.lists[i];
        for (;;) {
            size_t length = strcspn(at, ",");
            char name[64];
            (void)snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), at);
            if (!trail_filter_add_kind(&request->filter, view, name))
                return unknown_kind(request, view, name);
            if (at[length] == '\0')
                break;
            at += length + 1;
        }
    }
    return EXIT_GOOD;
}

static int finish_filter(struct request *request)
{
    trail_filter *filter = &request->filter;
    int wrong = window_finish(&request->window, request->command);
    if (wrong)
        return wrong;
    WINDOW_PUT(filter, &request->window);
    filter->goroutines = request->goroutines.ids;
    filter->goroutine_count = request->goroutines.count;
    filter->procs = request->procs.ids;
    filter->proc_count = request->procs.count;
    filter->threads = request->threads.ids;
    filter->thread_count = request->threads.count;
    wrong = finish_kinds(request);
    if (wrong)
        return wrong;
    request->filtered = filter->goroutine_count || filter->proc_count || filter->thread_count ||
                        filter->has_kinds || filter->has_from || filter->has_to || filter->limit;
    if (request->format == FORMAT_WIRE && request->filtered)
        return usage_error(
            request->command,
            "--format=wire prints the records of the file as they stand: it cannot be filtered");
    return EXIT_GOOD;
}

/* Returns OPTIONS_HELP if help was printed, else an exit code. */
static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, request->command, argc, argv, NULL, request);
    if (code != EXIT_GOOD)
        return code;
    if (options.word_count != 1)
        return usage_error(request->command, options.word_count == 0 ? "no file given (- is stdin)"
                                                                     : "one file at a time");
    request->word = options.words[0];
    if (request->format == TRAIL_FORMAT_GO || request->format == TRAIL_FORMAT_GO_V1)
        request->reader.strict = true;
    request->reader.partial |= !request->reader.strict;
    if (request->format == TRAIL_FORMAT_GO_V1) {
        request->reader.view = TRAIL_VIEW_V1;
        request->reader.verdict = TRAIL_VERDICT_GO121;
    }
    return finish_filter(request);
}

/* MARK: Printing */

static bool want_colour(const struct request *request)
{
    return request->color == COLOR_AUTO ? terminal_colours() : request->color == COLOR_ALWAYS;
}

static int print_result(const struct request *request, int result, struct output *output,
                        const trail_error *err)
{
    int code = result == 0 || output->reason ? EXIT_GOOD : print_error(request->word, err);
    return close_output(output, "-", true, code);
}

static int print_events(struct request *request, trail_source *source, trail_error *err)
{
    struct progress progress;
    progress_begin(&progress, source, PROGRESS_OUTPUT_MEANWHILE);
    trail_print_options options = {
        .format = (trail_format)request->format,
        .filter = request->filtered ? &request->filter : NULL,
        .stacks = request->format == TRAIL_FORMAT_JSONL ? !request->no_stacks : request->stacks,
        .colour = want_colour(request),
        .words = request->words,
        .micro_sign = show_is_utf8(),
        .flush = trail_source_size(source) < 0,
        .progress = progress_step,
        .progress_context = &progress,
    };
    request->reader.ahead = true;
    request->reader.threads = input_limits.threads;
    trail_reader *reader = trail_reader_open(source, &request->reader, err);
    if (!reader)
        return print_error(request->word, err);
    struct output output;
    (void)open_output_beside(&output, "-");
    /* Only text has colours, and escapes names. */
    output.terminal.colours = options.colour && options.format == TRAIL_FORMAT_TEXT;
    trail_sink sink = output_sink(&output);
    int result = trail_print(reader, &options, &sink, err);
    progress_end(&progress);
    print_repairs(request->word, reader);
    trail_reader_close(reader);
    return print_result(request, result, &output, err);
}

static int print_records(struct request *request, trail_source *source, trail_error *err)
{
    struct output output;
    (void)open_output_beside(&output, "-");
    trail_sink sink = output_sink(&output);
    int result = trail_print_wire(source, &sink, err);
    return print_result(request, result, &output, err);
}

static int print_file(struct request *request)
{
    trail_error err;
    struct symbols *symbols = NULL;
    int code = open_binary(request->binary, &symbols, &request->reader);
    if (code != EXIT_GOOD)
        return code;
    trail_source *source = open_source(request->word, &err);
    if (!source)
        code = print_error(request->word, &err);
    else if (request->format == FORMAT_WIRE)
        code = print_records(request, source, &err);
    else
        code = print_events(request, source, &err);
    trail_source_close(source);
    close_binary(symbols);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command};
    int code = parse_request(&request, argc, argv);
    if (code == EXIT_GOOD)
        code = print_file(&request);
    free(request.goroutines.ids);
    free(request.procs.ids);
    free(request.threads.ids);
    return code;
}

const struct command command_print = {
    COMMAND_ROW(print),
    .synopsis = "[options] FILE",
    .details =
        "Prints the events in order, one per line. Conditions combine: an event is shown if it "
        "meets each that is given. Input from a pipe is shown as it arrives.",
    .examples = "  trail print app.trace | less\n"
                "  trail print --goroutine=18 --stacks app.trace\n"
                "  trail print --kind=GoBlock,GoUnblock --from=1.5s --to=+20ms app.trace\n"
                "  curl -s localhost:6060/debug/pprof/trace?seconds=30 | trail print -\n"
                "  trail print --format=jsonl --no-stacks app.trace.gz | jq 'select(.g == 18)'",
};
