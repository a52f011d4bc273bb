/*
 * trail export: a trace for other tools.
 */
#include "commands/export_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpu_quota.h"
#include "base/text.h"
#include "commands/export_push.h"
#include "export/formats.h"
#include "ui/trace_file.h"

static int export_stream(struct export_request *request);

static const struct export_format formats[] = {
#define STREAM(function) .run = export_stream, .stream = (function)
#define ROWS(format)     .run = export_tables, .rows = (format)
#define RUN(function)    .run = (function)
#define FORMAT(name, nature, output, how, suffixes, summary)                                       \
    {#name, summary, suffixes, EXPORT_##nature, EXPORT_##output, how},
#include "export/formats.def"
#undef FORMAT
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

/* Each is preceded by a space. */
#define FORMAT(name, ...) " " #name
static const char format_names[] =
#include "export/formats.def"
    ;
#undef FORMAT

static int add_resource(const struct command *command, void *pairs, const char *value)
{
    if (pairs_add(pairs, value))
        return EXIT_GOOD;
    return usage_error(command, "--resource is KEY=VALUE,..., not '%s'", value);
}

static const struct option rows[] = {
    {'t', "to", "FORMAT|TIME",
     "the format, such as chrome, pprof or csv; a time: nothing after it (+TIME: as long after "
     "--from)",
     TAKE(0), .values = format_names + 1},
    {'o', "output", "FILE",
     "where it goes (- is stdout, the default); its suffix can name the format",
     TO_TEXT(struct export_request, output)},
    {0, "from", "TIME", "nothing before this time since the first event: 1.5s, 20ms, 300us",
     TO_WINDOW_FROM(struct export_request, window)},
    {'g', "goroutine", "N,...", "only these goroutines",
     TO_IDS(struct export_request, goroutines, "gG")},
    {0, "name", "FUNCTION", "only goroutines with this start function",
     TO_TEXT(struct export_request, options.name)},
    {0, "type", "TYPE",
     "profiles: what to count: sync (the default), net, syscall, sched, cpu, running or offcpu",
     TO_TEXT(struct export_request, type), .values = "net sync syscall sched cpu running offcpu"},
    {0, "resource", "KEY=VALUE,...",
     "OTLP: attributes of the resource, such as service.name=shop (also from OTEL_SERVICE_NAME, "
     "OTEL_RESOURCE_ATTRIBUTES)",
     TO_PARSED(struct export_request, resource, struct pairs, add_resource)},
    {0, "endpoint", "URL", "OTLP: send it to a collector: http://localhost:4318",
     TO_TEXT(struct export_request, endpoint)},
    {0, "uncompressed", NULL, "perfetto: packets without compression, ten times as large",
     TO_FLAG(struct export_request, uncompressed)},
    {0, "table", "NAME", "tables: only this one; 'trail sql .tables' lists them",
     TO_TEXT(struct export_request, table),
     .values = "events states goroutines stacks frames strings tasks regions logs samples findings "
               "traces"},
    {0, "host", "NAME", "tables: the machine on which the trace was made (this one)",
     TO_TEXT(struct export_request, host)},
    {0, "day", "YYYY-MM-DD",
     "tables: the day of the trace (of its clock if it has one, or of the file)",
     TO_TEXT(struct export_request, day)},
    {0, "csv-safe", NULL, "csv: an apostrophe before text that a spreadsheet would evaluate",
     TO_FLAG(struct export_request, csv_safe)},
    {0, "schema", "SYSTEM", "no export: print the statements that define the tables for it",
     TO_TEXT(struct export_request, schema), .values = EXPORT_SCHEMAS},
    {0, "repair", NULL, "repair inconsistent orders of events",
     TO_FLAG(struct export_request, repair)},
    {0, "binary", "FILE", "Go 1.5 and 1.6: the traced program, for names in stacks",
     TO_TEXT(struct export_request, binary)},
    {0},
};

/* MARK: The command line */

static bool ends_with(const char *text, const char *end, size_t end_size)
{
    size_t size = strlen(text);
    return size > end_size && memcmp(text + size - end_size, end, end_size) == 0;
}

/* Returns the format with the longest suffix that matches the name. */
static const struct export_format *format_by_suffix(const char *path)
{
    const struct export_format *found = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        for (const char *at = formats[i].suffixes; at && *at;) {
            size_t size = strcspn(at, " ");
            if (size > longest && ends_with(path, at, size)) {
                found = &formats[i];
                longest = size;
            }
            at += size + (at[size] == ' ');
        }
    }
    return found;
}

/* --to, which is a format or a time. */
static int parse_to(void *context, int id, const char *value)
{
    struct export_request *request = context;
    (void)id;
    const char *names[FORMAT_COUNT + 1] = {0};
    int64_t ns;
    /* A time has a unit; no format's name looks like one. */
    if (parse_time(value + (*value == '+'), &ns))
        return window_to(request->command, &request->window, value);
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        names[i] = formats[i].name;
        if (strcmp(value, formats[i].name) == 0) {
            request->format = &formats[i];
            return EXIT_GOOD;
        }
    }
    return unknown_word(request->command, "format", value, names, format_names + 1);
}

static bool is_otlp(const struct export_format *format)
{
    return format->nature == EXPORT_SPANS || format->nature == EXPORT_METRICS;
}

static int check_format(struct export_request *request)
{
    if (!request->format && request->output)
        request->format = format_by_suffix(request->output);
    const struct export_format *format = request->format;
    if (!format)
        return usage_error(request->command, "no format given: --to=%s", format_names + 1);
    bool tables = format->nature == EXPORT_TABLES || format->nature == EXPORT_CSV;
    if (request->type && format->nature != EXPORT_PROFILE)
        return usage_error(request->command, "--type is for profiles, which %s is not",
                           format->name);
    if ((request->table || request->host || request->day) && !tables)
        return usage_error(request->command,
                           "--table, --host and --day are for tables, which %s is not",
                           format->name);
    if ((request->endpoint || request->resource.count > 0) && !is_otlp(format))
        return usage_error(request->command,
                           "--endpoint and --resource are for otlp and otlp-metrics, not for %s",
                           format->name);
    if (request->endpoint && request->output)
        return usage_error(request->command, "--endpoint or --output, not both");
    if (request->uncompressed && strcmp(format->name, "perfetto") != 0)
        return usage_error(request->command, "--uncompressed is for perfetto, not for %s",
                           format->name);
    if (request->csv_safe && format->nature != EXPORT_CSV)
        return usage_error(request->command, "--csv-safe is for csv, not for %s", format->name);
    if (!request->output && format->output == EXPORT_FOLDER)
        return usage_error(request->command, "this format writes a folder: --output=FOLDER");
    if (!request->output && format->output != EXPORT_TEXT && isatty(STDOUT_FILENO))
        return usage_error(request->command, NO_BINARY_ON_TERMINAL);
    return EXIT_GOOD;
}

static int check_usage(struct export_request *request, const struct options *options)
{
    if (options->word_count != 1)
        return usage_error(request->command, options->word_count == 0
                                                 ? "no trace given (- is stdin)"
                                                 : "one trace at a time");
    request->word = options->words[0];
    if (request->output && strcmp(request->output, "-") == 0)
        request->output = NULL;
    int wrong = check_format(request);
    if (!wrong)
        wrong = window_finish(&request->window, request->command);
    if (wrong)
        return wrong;
    if (request->output && overwrites(request->output, request->word))
        return usage_error(request->command, "%s is the trace itself", request->output);
    request->options.title = path_name(source_title(request->word));
    WINDOW_PUT(&request->options, &request->window);
    request->options.goroutines = request->goroutines.ids;
    request->options.goroutine_count = request->goroutines.count;
    request->options.perfetto_compressed = !request->uncompressed;
    request->options.perfetto_threads =
        input_limits.threads ? input_limits.threads : cpu_quota_usable();
    return EXIT_GOOD;
}

/* OpenTelemetry's variables come first, and options override them. */
static int take_environment(struct export_request *request)
{
    const char *attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"),
               *name = getenv("OTEL_SERVICE_NAME");
    if (attributes && !pairs_add(&request->environment, attributes)) {
        print_message("OTEL_RESOURCE_ATTRIBUTES is KEY=VALUE,..., not '%s'", attributes);
        return EXIT_USAGE;
    }
    bool good = !name || !*name || pairs_set(&request->environment, "service.name", name);
    for (size_t i = 0; i < request->resource.count && good; i++)
        good = pairs_set(&request->environment, request->resource.items[i].key,
                         request->resource.items[i].value);
    request->options.resource = request->environment.items;
    request->options.resource_count = request->environment.count;
    return good ? EXIT_GOOD : EXIT_INOUT;
}

/* MARK: Profiles */

/* Accepts the same words as 'trail profile'. */
int export_profile(struct export_request *request)
{
    char format[32], from[64], to[64], type[64], *goroutine = NULL, *name = NULL;
    char *words[16];
    int count = 0;
    size_t size = 0;
    FILE *list = open_memstream(&goroutine, &size);
    if (!list)
        return print_output_error("the profile", errno);
    fputs("--goroutine=", list);
    for (size_t i = 0; i < request->goroutines.count; i++)
        fprintf(list, "%s%" PRId64, i ? "," : "", request->goroutines.ids[i]);
    (void)fclose(list);
    (void)snprintf(format, sizeof format, "--format=%s", request->format->name);
    (void)snprintf(type, sizeof type, "--type=%s", request->type ? request->type : "sync");
    (void)snprintf(from, sizeof from, "--from=%" PRId64 "ns", request->window.from_ns);
    (void)snprintf(to, sizeof to, "--to=%" PRId64 "ns", request->window.to_ns);
    words[count++] = format;
    words[count++] = type;
    if (request->window.has_from)
        words[count++] = from;
    if (request->window.has_to)
        words[count++] = to;
    if (request->goroutines.count > 0)
        words[count++] = goroutine;
    if (request->options.name && asprintf(&name, "--name=%s", request->options.name) >= 0)
        words[count++] = name;
    if (request->repair)
        words[count++] = "--repair";
    if (request->binary) {
        words[count++] = "--binary";
        words[count++] = (char *)(uintptr_t)request->binary;
    }
    words[count++] = "--output";
    words[count++] = (char *)(uintptr_t)(request->output ? request->output : "-");
    words[count++] = "--";
    words[count++] = (char *)(uintptr_t)request->word;
    words[count] = NULL;
    int code = command_profile.run(&command_profile, count, words);
    free(goroutine);
    free(name);
    return code;
}

/* MARK: Streams */

static void print_no_span(const struct export_request *request, const trail_export_stats *stats)
{
    if (is_otlp(request->format) && stats->spans == 0)
        print_message(request->format->nature == EXPORT_SPANS ? "%s: it has no tasks and no regions"
                                                              : "%s: no wait begins and ends in it",
                      source_title(request->word));
}

/* MARK: A collector */

/*
 * Returns a variable of OpenTelemetry's SDKs, "OTEL_EXPORTER_OTLP_..."; the one for traces or for
 * metrics takes precedence. *name is set to its name. Returns NULL if neither is set; an empty one
 * counts as unset.
 */
static const char *exporter_variable(const char *const names[2], const char **name)
{
    for (int i = 0; i < 2; i++) {
        const char *value = getenv(names[i]);
        *name = names[i];
        if (value && *value)
            return value;
    }
    return NULL;
}

#define EXPORTER_VARIABLE(key, name)                                                               \
    exporter_variable((const char *const[]){options->metrics ? "OTEL_EXPORTER_OTLP_METRICS_" key   \
                                                             : "OTEL_EXPORTER_OTLP_TRACES_" key,   \
                                            "OTEL_EXPORTER_OTLP_" key},                            \
                      name)

/* Reads the environment's settings for sending. Returns an exit code, after a message on an
 * error. */
static int take_exporter(struct push_options *options)
{
    const char *name, *value = EXPORTER_VARIABLE("PROTOCOL", &name);
    int64_t ms = 0;
    options->form = value && strcmp(value, "http/json") == 0 ? PUSH_JSON : PUSH_PROTOBUF;
    if (value && options->form == PUSH_PROTOBUF && strcmp(value, "http/protobuf") != 0) {
        print_message("%s=%s: trail sends http/protobuf or http/json, which collectors accept on "
                      "port 4318; set it to one of these",
                      name, value);
        return EXIT_USAGE;
    }
    value = EXPORTER_VARIABLE("COMPRESSION", &name);
    options->gzip = value && strcmp(value, "gzip") == 0;
    if (value && !options->gzip && strcmp(value, "none") != 0) {
        print_message("%s is gzip or none, not '%s'", name, value);
        return EXIT_USAGE;
    }
    value = EXPORTER_VARIABLE("TIMEOUT", &name);
    if (value && (!parse_id(value, "", &ms) || ms <= 0 || ms > INT32_MAX)) {
        print_message("%s is a number of milliseconds, at least 1, not '%s'", name, value);
        return EXIT_USAGE;
    }
    options->timeout_ms = value ? (long)ms : 0;
    value = EXPORTER_VARIABLE("HEADERS", &name);
    if (value && !pairs_add(&options->headers, value)) {
        print_message("%s is KEY=VALUE,..., not '%s'", name, value);
        return EXIT_USAGE;
    }
    return EXIT_GOOD;
}

/* Sends to a collector what would otherwise go to the output. */
static int stream_to_endpoint(struct export_request *request, trail_reader *reader)
{
    struct push_options options = {.metrics = request->format->nature == EXPORT_METRICS};
    trail_export_stats stats;
    trail_error err = no_error();
    bool made;
    int code = take_exporter(&options);
    request->options.otlp_protobuf = options.form == PUSH_PROTOBUF;
    struct push *push = code == EXIT_GOOD ? push_begin(request->endpoint, &options) : NULL;
    pairs_free(&options.headers);
    if (!push)
        return code == EXIT_GOOD ? EXIT_INOUT : code;
    trail_sink sink = push_sink(push);
    int result = request->format->stream(reader, &request->options, &sink, &stats, &err);
    code = push_end(push);
    if (code == EXIT_GOOD) {
        code = export_result(request, result, false, &stats, &err, &made);
        print_no_span(request, &stats);
    }
    return code;
}

static int stream_to(struct export_request *request, trail_reader *reader)
{
    const char *path = request->output ? request->output : "-";
    struct output output;
    trail_export_stats stats;
    trail_error err = no_error();
    bool made;
    int code = open_output_beside(&output, path);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&output);
    int result = request->format->stream(reader, &request->options, &sink, &stats, &err);
    code = export_result(request, result, output.reason != 0, &stats, &err, &made);
    if (made)
        print_no_span(request, &stats);
    return close_output(&output, path, made, code);
}

static int export_stream(struct export_request *request)
{
    if (!is_otlp(request->format))
        return export_with_reader(request, stream_to);
    int code = take_environment(request);
    if (code == EXIT_GOOD)
        code = export_with_reader(request, request->endpoint ? stream_to_endpoint : stream_to);
    return code;
}

/* MARK: Run */

static void list_formats(FILE *to)
{
    fputs("Formats:\n", to);
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        fprintf(to, "  %-10s  %s\n", formats[i].name, formats[i].summary);
}

static int answer(struct export_request *request, const struct options *options)
{
    if (request->schema)
        return options->word_count > 0 ? usage_error(request->command, "a schema needs no trace")
                                       : export_schema(request);
    int code = check_usage(request, options);
    return code == EXIT_GOOD ? request->format->run(request) : code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct export_request request = {.command = command};
    struct options options;
    int code = options_each(&options, command, argc, argv, parse_to, &request);
    if (code == EXIT_GOOD)
        code = answer(&request, &options);
    free(request.goroutines.ids);
    pairs_free(&request.resource);
    pairs_free(&request.environment);
    return code;
}

const struct command command_export = {
    COMMAND_ROW(export),
    .synopsis = "--to=FORMAT [options] TRACE [-o FILE]",
    .list = list_formats,
    .details = "For a damaged trace, the good part is written and the exit status is 1. A file "
               "appears under its name only when it is complete.",
    .examples = "  trail export --to=chrome app.trace -o app.json\n"
                "  trail export --to=chrome --from=1.5s --to=+20ms app.trace -o moment.json\n"
                "  trail export --to=folded --type=offcpu app.trace | flamegraph.pl >wait.svg\n"
                "  trail export --to=csv --table=goroutines app.trace\n"
                "  trail export --to=parquet --host=web1 app.trace -o traces",
};
