/*
 * trail profile: waits and running time of the program, by stack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ui/analysis.h"
#include "ui/goroutine_filter.h"
#include "ui/profile_tree.h"
#include "ui/trace_file.h"
#include "ui/values.h"

enum { AS_TREE = -1, AS_SUFFIX = -2 };

#define TYPES   "net sync syscall sched cpu running offcpu"
#define FORMATS "tree pprof folded speedscope json"

struct request {
    struct analysis analysis;
    trail_profile_type type;
    int format; /* trail_profile_format or AS_... */
    struct goroutine_filter filter;
    const char *output, *region;
    struct id_list tasks;
    double least;
};

/* MARK: Command line */

static int parse_type(const struct command *command, void *member, const char *word)
{
    trail_profile_type *type = member;
    const char *names[TRAIL_PROFILES + 1] = {0};
    for (int i = 0; i < TRAIL_PROFILES; i++) {
        names[i] = trail_profile_type_name((trail_profile_type)i);
        *type = (trail_profile_type)i;
        if (strcmp(word, names[i]) == 0)
            return EXIT_GOOD;
    }
    return unknown_word(command, "type", word, names, TYPES);
}

static const struct {
    const char *name, *suffix, *suffix_too;
    int format;
} formats[] = {
    {"tree", NULL, NULL, AS_TREE},
    {"pprof", ".pb.gz", ".pprof", TRAIL_PROFILE_AS_PPROF},
    {"folded", ".folded", ".txt", TRAIL_PROFILE_AS_FOLDED},
    {"speedscope", ".json", ".speedscope", TRAIL_PROFILE_AS_SPEEDSCOPE},
    {"json", NULL, NULL, TRAIL_PROFILE_AS_JSON},
};

enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

static int parse_format(const struct command *command, void *format, const char *word)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        *(int *)format = formats[i].format;
        if (strcmp(word, formats[i].name) == 0)
            return EXIT_GOOD;
    }
    return usage_error(command, "no format '%s'; there are %s", word, FORMATS);
}

/* Sets the format by the suffix of the output. */
static int format_by_suffix(struct request *request)
{
    if (!request->output) {
        request->format = AS_TREE;
        return EXIT_GOOD;
    }
    trail_string output = text_from(request->output);
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        request->format = formats[i].format;
        if (formats[i].suffix &&
            (text_ends(output, formats[i].suffix) || text_ends(output, formats[i].suffix_too)))
            return EXIT_GOOD;
    }
    return usage_error(request->analysis.command,
                       "the name '%s' does not name a format: use --format=", request->output);
}

static int parse_least(const struct command *command, void *least, const char *value)
{
    char *end;
    double percent = strtod(value, &end);
    if (end == value || (*end && strcmp(end, "%") != 0) || !(percent >= 0 && percent <= 100))
        return usage_error(command, "'%s' is not a share from 0 to 100", value);
    *(double *)least = percent / 100;
    return EXIT_GOOD;
}

static const struct option rows[] = {
    {'t', "type", "TYPE",
     "what to count: sync (the default), net, syscall, sched, cpu, running or offcpu",
     TO_PARSED(struct request, type, trail_profile_type, parse_type), .values = TYPES},
    {'o', "output", "FILE",
     "write there: .pb.gz is for pprof, .folded for flame graphs, .json for speedscope",
     TO_TEXT(struct request, output)},
    {'f', "format", "FORMAT", "tree (the default), pprof, folded, speedscope or json",
     TO_PARSED(struct request, format, int, parse_format), .values = FORMATS},
    GOROUTINE_FILTER_ROWS(struct request, filter),
    {0, "region", "NAME", "only time inside user regions of this name",
     TO_TEXT(struct request, region)},
    {0, "task", "N,...", "only time inside regions of these tasks",
     TO_IDS(struct request, tasks, "")},
    {0, "min", "PERCENT", "tree: leave out branches below this share (default 1)",
     TO_PARSED(struct request, least, double, parse_least)},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

static int check_output(struct request *request)
{
    if (request->analysis.json)
        request->format = TRAIL_PROFILE_AS_JSON;
    if (request->format == AS_SUFFIX) {
        int wrong = format_by_suffix(request);
        if (wrong)
            return wrong;
    }
    if (request->output && request->format == AS_TREE)
        return usage_error(request->analysis.command, "a tree is only printed on stdout");
    bool to_stdout = !request->output || strcmp(request->output, "-") == 0;
    if (request->format == (int)TRAIL_PROFILE_AS_PPROF && to_stdout && isatty(STDOUT_FILENO))
        return usage_error(request->analysis.command, NO_BINARY_ON_TERMINAL);
    if (request->output && overwrites(request->output, request->analysis.word))
        return usage_error(request->analysis.command, "%s is the trace itself", request->output);
    return EXIT_GOOD;
}

static int parse_request(struct request *request, int argc, char **argv)
{
    int code = analysis_parse(&request->analysis, argc, argv);
    request->analysis.options.what = TRAIL_ANALYZE_PROFILES;
    if (request->filter.name)
        request->analysis.options.what |= TRAIL_ANALYZE_GROUPS;
    request->analysis.options.profile = (trail_profile_options){
        .types = 1U << request->type,
        .name = request->filter.name,
        .region = request->region,
        .goroutines = request->filter.goroutines.ids,
        .goroutine_count = request->filter.goroutines.count,
        .tasks = request->tasks.ids,
        .task_count = request->tasks.count,
    };
    return code ? code : check_output(request);
}

/* MARK: Output */

/* Writes to a temporary name, so that a file is complete or absent. */
static int write_profile(const struct request *request, const trail_profile *profile)
{
    const char *path = request->output ? request->output : "-";
    struct output output;
    trail_error err;
    int code = open_output_beside(&output, path);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&output);
    bool made = trail_profile_write(request->analysis.answers, profile,
                                    (trail_profile_format)request->format, &sink, &err) == 0;
    if (!made && err.code != TRAIL_IO)
        code = print_error(path, &err);
    return close_output(&output, path, made, code);
}

static int show(void *context)
{
    const struct request *request = context;
    trail_profile profile;
    trail_analysis_profile(request->analysis.answers, request->type, &profile);
    if (profile.goroutines == 0 && (request->filter.name || request->filter.goroutines.count > 0))
        return goroutine_filter_no_match(request->filter.name, &request->analysis);
    if (profile.regions == 0 && (request->region || request->tasks.count > 0))
        return usage_error(request->analysis.command,
                           "no such region in the trace; 'trail regions' lists them");
    if (request->format != AS_TREE)
        return write_profile(request, &profile);
    if (profile_tree(request->analysis.answers, &profile, request->least))
        return EXIT_GOOD;
    print_message("no memory for the tree");
    return EXIT_INOUT;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .analysis = {.command = command},
        .type = TRAIL_PROFILE_SYNC,
        .format = AS_SUFFIX,
        .least = 0.01,
    };
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    goroutine_filter_free(&request.filter);
    free(request.tasks.ids);
    return code;
}

const struct command command_profile = {
    COMMAND_ROW(profile),
    .synopsis = "[options] FILE",
    .details = "Adds up by call stack: waits for channels and locks (sync), for the network (net), "
               "system calls (syscall), time from ready to running (sched, by the waker's stack), "
               "CPU samples (cpu), time running (running, by the stack where it ended), waits of "
               "any kind (offcpu, by the waker's stack). net, sync, syscall and sched are what 'go "
               "tool trace -pprof' computes.",
    .examples =
        "  trail profile app.trace\n"
        "  trail profile --type=sched -o sched.pb.gz app.trace && go tool pprof sched.pb.gz\n"
        "  trail profile --type=offcpu --format=folded app.trace | flamegraph.pl >wait.svg\n"
        "  trail profile --name=main.worker --from=1s --to=+200ms app.trace",
};
