/* trail import: makes a trace from what another recorder wrote. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "import/import.h"
#include "import/tool.h"
#include "ui/cli.h"
#include "ui/follow_up.h"
#include "ui/progress.h"
#include "ui/show.h"
#include "ui/trace_file.h"

struct request {
    const char *output;
    bool quiet;
};

static const struct option rows[] = {
    {'o', "output", "FILE", "where the trace goes (- is stdout)", TO_TEXT(struct request, output)},
    {'q', "quiet", NULL, "print only what was not understood", TO_FLAG(struct request, quiet)},
    {0},
};

/* MARK: What was read */

static const char *plural(uint64_t count)
{
    return plural_s(count);
}

static void print_unknown(const struct import_stats *stats)
{
    uint64_t total = stats->unknown_others;
    for (size_t i = 0; i < stats->unknown_names; i++)
        total += stats->unknown[i].count;
    if (total == 0)
        return;
    fprintf(stderr, "trail: %" PRIu64 " event%s of other kinds left out: ", total, plural(total));
    for (size_t i = 0; i < stats->unknown_names; i++) {
        const char *name = stats->unknown[i].name;
        fputs(i > 0 ? ", " : "", stderr);
        show_plain_on(stderr, text_from(name));
        fprintf(stderr, " %" PRIu64, stats->unknown[i].count);
    }
    if (stats->unknown_others > 0)
        fprintf(stderr, "%s%" PRIu64 " of further names", stats->unknown_names > 0 ? ", " : "",
                stats->unknown_others);
    fputc('\n', stderr);
}

static void print_count(uint64_t count, const char *one, const char *many, uint64_t first)
{
    if (count == 0)
        return;
    if (first > 0)
        print_message("%" PRIu64 " %s, the first in line %" PRIu64, count, count == 1 ? one : many,
                      first);
    else
        print_message("%" PRIu64 " %s", count, count == 1 ? one : many);
}

static void print_problems(const struct import_stats *stats)
{
    print_unknown(stats);
    print_count(stats->unreadable, "line is not an event", "lines are not events",
                stats->unreadable_first);
    print_count(stats->bad, "event left out because of unexpected fields",
                "events left out because of unexpected fields", stats->bad_first);
    print_count(stats->late, "event left out because it came too late to be put in order",
                "events left out because they came too late to be put in order", 0);
    print_count(stats->lost, "event was lost by the recorder", "events were lost by the recorder",
                0);
    print_count(stats->flows_unused, "flow is not a wake-up: its end did not wait for its start",
                "flows are not wake-ups: their ends did not wait for their starts", 0);
    print_count(
        stats->cut, "span shortened or left out because it did not nest with others of its thread",
        "spans shortened or left out because they did not nest with others of their threads", 0);
    print_count(
        stats->container_ids,
        "context switch recorded by perf in a container: its threads have the host's IDs",
        "context switches recorded by perf in a container: their threads have the host's IDs", 0);
    print_count(stats->corrected, "context switch is missing, and was inferred",
                "context switches are missing, and were inferred", 0);
}

static void print_result(const struct import_stats *stats, const char *path)
{
    char file[FOLLOW_UP_SIZE];
    fprintf(stderr,
            "trail: %s: %" PRIu64 " event%s; %" PRIu64 " thread%s, %" PRIu64 " wake-up%s, %" PRIu64
            " of them by threads\n",
            stats->form, stats->events, plural(stats->events), stats->threads,
            plural(stats->threads), stats->wakeups, plural(stats->wakeups),
            stats->wakeups_by_thread);
    if (strcmp(path, "-") != 0)
        print_message("next: trail summary %s, or trail why %s", shell_file(path, file), file);
}

/* MARK: Importing */

static int write_trace(trail_source *source, const char *word, const struct request *request,
                       struct tool *tool)
{
    struct trace_file file;
    struct import_stats stats;
    struct progress progress;
    trail_error err = no_error();
    int code = open_trace_file(&file, request->output);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = packed_sink(&file.packed);
    progress_begin(&progress, source, PROGRESS_OUTPUT_MEANWHILE);
    bool made = import_trace(source, &sink, progress_step, &progress, &stats, &err) == 0;
    progress_end(&progress);
    /* The tool's failure explains why nothing was understood. */
    made = tool_end(tool, !file.output.reason, &err) == 0 && made;
    print_problems(&stats);
    if (!made && !file.output.reason)
        code = print_error(word, &err);
    else if (made && !request->quiet)
        print_result(&stats, request->output);
    return close_trace_file(&file, request->output, made, code);
}

static int import_by_tool(char *const *argv, const char *word, const struct request *request,
                          const char *advice)
{
    struct tool tool;
    trail_error err = no_error();
    trail_source *source = tool_start(&tool, argv, &err);
    if (!source && errno == ENOENT) {
        print_message(
            "%s: read by %s, which is not installed here; where it is, run '%s > FILE.txt', "
            "and import that",
            word, argv[0], advice);
        return EXIT_INOUT;
    }
    if (!source)
        return print_error(word, &err);
    int code = write_trace(source, word, request, &tool);
    trail_source_close(source);
    return code;
}

/* perf's own file: perf prints it. */
static int import_perf_data(const char *word, const struct request *request)
{
    char *argv[] = {"perf", "script", "--ns", "--show-lost-events", "-i", (char *)word, NULL};
    if (strcmp(word, "-") != 0)
        return import_by_tool(argv, word, request, "perf script --ns -i FILE");
    print_message("perf.data on stdin: give its file name, or pipe 'perf script --ns' here");
    return EXIT_INOUT;
}

/* A folder is a trace of LTTng: babeltrace2 prints it. */
static int import_ctf(const char *word, const struct request *request)
{
    char path[PATH_MAX]; /* absolute, so that it is not taken for an option */
    char *argv[] = {"babeltrace2", "--clock-seconds", "--no-delta", path, NULL};
    if (realpath(word, path))
        return import_by_tool(argv, word, request, "babeltrace2 --clock-seconds FOLDER");
    print_message("cannot open %s: %s", word, strerror(errno));
    return EXIT_INOUT;
}

static int import_file(const char *word, const struct request *request)
{
    trail_error err;
    struct stat about;
    if (strcmp(word, "-") != 0 && stat(word, &about) == 0 && S_ISDIR(about.st_mode))
        return import_ctf(word, request);
    struct tool none = {0};
    trail_source *source = open_source(word, &err);
    if (!source)
        return print_error(word, &err);
    bool perf_data = import_is_perf_data(source);
    int code = perf_data ? EXIT_GOOD : write_trace(source, word, request, &none);
    trail_source_close(source);
    return perf_data ? import_perf_data(word, request) : code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {0};
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code == EXIT_GOOD)
        code = check_trace_output(&options, "recording", request.output);
    if (code != EXIT_GOOD)
        return code;
    return import_file(options.words[0], &request);
}

const struct command command_import = {
    COMMAND_ROW(import),
    .synopsis = "[options] FILE --output=FILE",
    .details =
        "Reads what another recorder wrote, and writes a trace of threads for all commands: text "
        "of 'perf script' of 'perf sched record' (or perf.data, where perf is installed), text of "
        "ftrace or 'trace-cmd report', the folder of an LTTng kernel trace (where babeltrace2 is "
        "installed), and Perfetto's kernel events: states and wake-ups are those of the "
        "recording. Of Perfetto's track events, slices become regions, and flows wake-ups. What "
        "is not understood is counted and named.",
    .examples = "  perf sched record -- ./server; trail import perf.data -o server.trace\n"
                "  perf script --ns | trail import - -o server.trace && trail why server.trace\n"
                "  trace-cmd report | trail import - -o machine.trace\n"
                "  trail import ~/lttng-traces/my-session/kernel -o machine.trace",
};
