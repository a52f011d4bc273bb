/*
 * trail report: one HTML file about a trace, to open from disk or to mail. The trace is read twice:
 * once for all figures, and once for what goroutines did at the moments that the figures mention.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "commands/report_embed.h"
#include "diagnose/gains.h"
#include "report/overview.h"
#include "report/report.h"
#include "ui/analysis.h"
#include "ui/follow_up.h"
#include "ui/input.h"
#include "ui/progress.h"

enum { WARNINGS = 4, LIMIT = 20 };

struct request {
    struct analysis analysis;
    const char *output, *title;
    size_t limit; /* 0: not given */
    bool embed;
    struct input input;
    struct series *series;
    struct moments moments;
    char warning_text[WARNINGS][700];
    const char *warnings[WARNINGS];
    size_t warning_count;
};

static const struct option rows[] = {
    {'o', "output", "FILE", "where the report goes (- is stdout, the default)",
     TO_TEXT(struct request, output)},
    {0, "title", "TEXT", "its title, instead of the file's name", TO_TEXT(struct request, title)},
    {'n', "limit", "N", "at most N rows in each table (default 20; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    {0, "embed", NULL,
     "the viewer instead, with the trace in it (up to 100 MB): one file that needs neither trail "
     "nor a server",
     TO_FLAG(struct request, embed)},
    SKIP_FRAMES_ROW,
    ANALYSIS_READ_ROWS,
    {0},
};

/* MARK: Command line */

static int parse_request(struct request *request, int argc, char **argv)
{
    struct analysis *analysis = &request->analysis;
    int code = analysis_parse(analysis, argc, argv);
    /* An option for the figures of the report was given. */
    bool figures = request->limit > 0 || analysis->skip_frames || analysis->window.has_from ||
                   analysis->window.has_to || analysis->repair || analysis->binary ||
                   analysis->options.words != TRAIL_WORDS_BY_TRACE;
    if (request->limit == 0)
        request->limit = LIMIT;
    analysis->options.what = REPORT_ANALYSES | GAINS_ANALYSES;
    analysis->options.mmu_flags[0] = TRAIL_MMU_OF_FINDINGS;
    analysis->options.profile.types = REPORT_PROFILES;
    if (code != EXIT_GOOD)
        return code;
    if (strcmp(request->output, "-") == 0 && isatty(STDOUT_FILENO))
        return usage_error(analysis->command,
                           "refusing to write a report to a terminal: use --output=FILE.html");
    if (request->embed && figures)
        return usage_error(
            analysis->command,
            "--embed contains the whole trace: only --output and --title can be used with it");
    if (overwrites(request->output, analysis->word))
        return usage_error(analysis->command, "the report would overwrite the trace, '%s'",
                           request->output);
    return EXIT_GOOD;
}

/* MARK: Reading */

static bool observe(void *context, const trail_event *events, long count)
{
    return series_feed(context, events, count);
}

/* First pass: all figures, and the number of goroutines in each state over time. */
static int read_figures(struct request *request)
{
    struct analysis *analysis = &request->analysis;
    trail_error err;
    request->series = calloc(1, sizeof *request->series);
    if (!request->series)
        return print_output_error(request->output, ENOMEM);
    if (input_init(&request->input, analysis->word, true, &err) < 0)
        return print_error(analysis->word, &err);
    analysis->input = &request->input;
    int code = analysis_open(analysis);
    if (code != EXIT_GOOD)
        return code;
    series_init(request->series, analysis->reader, &analysis->options);
    analysis->options.observe = observe;
    analysis->options.observe_context = request->series;
    code = analysis_run(analysis);
    if (analysis->answers && !gains_add(analysis->answers))
        code = exit_no_memory();
    if (analysis->answers)
        series_finish(request->series, analysis->span.end_ns);
    return code;
}

static int feed_moments(struct request *request, trail_reader *reader, trail_source *source)
{
    struct progress progress;
    const trail_event *events;
    int more = 1;
    long count = 0;
    progress_begin(&progress, source, PROGRESS_OUTPUT_AFTER);
    moments_open(&request->moments, reader);
    while (more > 0 && (count = trail_reader_next_batch(reader, &events)) > 0) {
        more = moments_feed(&request->moments, events, count);
        progress_step(&progress);
    }
    if (more >= 0)
        moments_finish(&request->moments);
    progress_end(&progress);
    if (count < 0 && trail_reader_error(reader)->code == TRAIL_NO_MEMORY)
        more = -1;
    return more < 0 ? print_output_error(request->output, ENOMEM) : EXIT_GOOD;
}

/* Second pass: the moments. Damage was reported by the first pass. */
static int read_moments(struct request *request, trail_reader **reader, trail_source **source)
{
    struct analysis *analysis = &request->analysis;
    trail_error err;
    moments_pick(&request->moments, analysis->answers, &analysis->vocabulary);
    if (request->moments.count == 0)
        return EXIT_GOOD;
    *source = input_open(&request->input, &err);
    if (!*source)
        return print_error(analysis->word, &err);
    *reader = analysis_reader(analysis, *source, &err);
    if (!*reader)
        return print_error(analysis->word, &err);
    return feed_moments(request, *reader, *source);
}

/* MARK: Writing */

static void add_warning(struct request *request, const char *before, const char *text,
                        const char *behind)
{
    char *to = request->warning_text[request->warning_count];
    (void)snprintf(to, sizeof request->warning_text[0], "%s%s%s", before, text, behind);
    request->warnings[request->warning_count++] = to;
}

static void add_damage(struct request *request)
{
    const trail_analysis_span *span = &request->analysis.span;
    char length[DURATION_SIZE];
    (void)duration_text(length, ns_between(span->begin_ns, span->end_ns), DURATION_WORDS);
    add_warning(request, "The trace is damaged: what is shown spans ", length,
                ". Sums and shares are of the recovered part; 'trail check' shows where it is "
                "damaged.");
}

static void add_warnings(struct request *request, int code)
{
    const trail_reader *reader = request->analysis.reader;
    trail_reader_stats stats;
    char number[32];
    trail_reader_get_stats(reader, &stats);
    if (code == EXIT_BAD)
        add_damage(request);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)stats.repairs);
    if (stats.repairs > 0 && trail_version_is_v2(trail_reader_version(reader)))
        add_warning(request, "States inferred where events are lost: ", number,
                    ". Sums leave out what is uncertain there.");
    else if (stats.repairs > 0)
        add_warning(request, "Repairs: ", number, ". 'trail check --repair --list' lists them.");
    if (stats.frequency_assumed)
        add_warning(request, "The speed of the clock is not in the trace: durations are right in ",
                    "proportion", " only.");
}

/* What made the trace. The format's version is the oldest Go version that writes it. */
static const char *maker_of(const trail_reader *reader, char *buf, size_t size)
{
    switch (trail_reader_maker(reader)->made_by) {
    case TRAIL_MADE_BY_RECORD:
        return "recorded by trail record";
    case TRAIL_MADE_BY_HOST:
        return "recorded with libtrail-record";
    case TRAIL_MADE_BY_IMPORT:
        return "imported by trail import";
    case TRAIL_MADE_BY_GO:
        break;
    }
    (void)snprintf(buf, size, "Go program, trace format 1.%d", trail_reader_version(reader));
    return buf;
}

static int write_report(struct request *request)
{
    char maker[64];
    struct analysis *analysis = &request->analysis;
    char file[FOLLOW_UP_SIZE];
    struct report report = {
        .title = request->title ? request->title : path_name(source_title(analysis->word)),
        .file = strcmp(analysis->word, "-") == 0 ? "FILE" : shell_file(analysis->word, file),
        .version = TRAIL_VERSION,
        .maker = maker_of(analysis->reader, maker, sizeof maker),
        .warnings = request->warnings,
        .warning_count = request->warning_count,
        .answers = analysis->answers,
        .series = request->series,
        .moments = &request->moments,
        .words = &analysis->vocabulary,
        .limit = request->limit,
    };
    struct output output;
    trail_error err;
    int code = open_output_beside(&output, request->output);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&output);
    bool made = report_write(&report, &sink, &err) == 0;
    if (!made && err.code != TRAIL_IO)
        code = print_error(request->output, &err);
    if (made && !overview_is_whole()) {
        made = false;
        code = exit_no_memory();
    }
    return close_output(&output, request->output, made, code);
}

static int make(struct request *request)
{
    trail_reader *reader = NULL;
    trail_source *source = NULL;
    int code = read_figures(request);
    if (!request->analysis.answers)
        return code;
    if (request->analysis.span.events == 0) {
        print_message("%s: no event in %s: there is nothing to report",
                      source_title(request->analysis.word),
                      request->analysis.window.has_from ? "that window" : "it");
        return worse_exit(code, EXIT_BAD);
    }
    int moments = read_moments(request, &reader, &source);
    if (moments == EXIT_GOOD) {
        add_warnings(request, code);
        moments = write_report(request);
    }
    moments_free(&request->moments);
    trail_reader_close(reader);
    trail_source_close(source);
    return worse_exit(code, moments);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .analysis = {.command = command},
        .output = "-",
    };
    int code = parse_request(&request, argc, argv);
    if (code == EXIT_GOOD && request.embed)
        code = report_embed(request.analysis.word, request.title, request.output);
    else if (code == EXIT_GOOD)
        code = make(&request);
    if (request.series)
        series_free(request.series);
    free(request.series);
    analysis_close(&request.analysis);
    input_free(&request.input);
    return code;
}

const struct command command_report = {
    COMMAND_ROW(report),
    .synopsis = "[options] FILE --output=REPORT.html",
    .details =
        "Writes one file that opens from disk in any browser and can be mailed: the figures and "
        "findings of 'trail summary', how many goroutines ran, were ready and waited over time, "
        "where the program ran and waited as flame graphs, histograms of latency, heap and "
        "garbage collection, tables, and what goroutines did in the worst moments. It needs no "
        "network and asks for nothing; without scripts all but sorting, zooming and searching "
        "works. For a damaged trace, the report covers the good part, with a note at the top, and "
        "the exit status is 1. The file appears under its name only when it is complete. With "
        "--embed it is the "
        "viewer of 'trail view' instead, with all of the trace in it.",
    .examples =
        "  trail report app.trace -o report.html\n"
        "  trail report --from=1s --to=+200ms --title='The slow second' app.trace -o "
        "second.html\n"
        "  curl -s localhost:6060/debug/pprof/trace?seconds=5 | trail report - -o now.html\n"
        "  trail report --embed app.trace -o viewer.html",
};
