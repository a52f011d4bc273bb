/*
 * trail symbolize: adds functions, files, lines and inlined calls to the stacks of a trace.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "collect/mapped_files.h"
#include "symbols/modules.h"
#include "symbols/named_files.h"
#include "ui/cli.h"
#include "ui/follow_up.h"
#include "ui/progress.h"
#include "ui/refused_file.h"
#include "ui/show.h"
#include "ui/trace_file.h"
#include "words/vocabulary.h"

enum { OPT_MODULE_PATH = 1 };

struct request {
    const char *output;
    const char **folders; /* room for as many as there are arguments */
    size_t count;
};

static const struct option rows[] = {
    {'o', "output", "FILE", "where the trace goes (- is stdout, the default)",
     TO_TEXT(struct request, output)},
    {'m', "module-path", "DIR",
     "where to look for programs, libraries and their debug information first: by build ID in "
     ".build-id, by path below DIR, by name; repeatable",
     TAKE(OPT_MODULE_PATH)},
    {0},
};

/* MARK: Telling */

static void print_missing(const struct module_file *file)
{
    const struct refused_file *refused = named_files_refused();
    if (*refused->problem && strcmp(file->path, refused->path) == 0)
        return; /* print_refused_file reports it */
    if (file->wrong->code == TRAIL_INCONSISTENT)
        print_message(
            "%s: not the file that was recorded: %s, recorded was %s; its frames stay as they were",
            file->path, file->wrong->message, file->build_id);
    else
        print_message("%s: %s; its frames stay as they were", file->path,
                      file->wrong->code == TRAIL_OK ? "not found" : file->wrong->message);
}

static void put_name(const struct module_file *file)
{
    show_plain_on(stderr, text_from(path_name(file->path)));
}

/* Reports which modules lack what, and how to get it. */
static void print_lacking(const struct modules *modules)
{
    unsigned missing = 0, bare = 0;
    for (struct module_file file = {0}; modules_next(modules, &file);) {
        if (file.state != MODULE_IS_MISSING)
            continue;
        print_missing(&file);
        missing++;
    }
    for (struct module_file file = {0}; modules_next(modules, &file);) {
        if (file.state != MODULE_HAS_NAMES)
            continue;
        fputs(bare++ == 0 ? "trail: names without lines, for lack of debug information: " : ", ",
              stderr);
        put_name(&file);
    }
    if (bare > 0)
        fputs(
            TRAIL_IS_STATIC
                ? "\ntrail: install it (packages -dbgsym or -debuginfo)\n"
                : "\ntrail: install it (packages -dbgsym or -debuginfo), or set DEBUGINFOD_URLS\n",
            stderr);
    if (missing + bare > 0)
        print_message("files of another machine: --module-path=DIR names a folder with them");
}

static void print_result(const struct modules *modules, const trail_symbolize_stats *stats,
                         const char *path)
{
    uint64_t left = stats->pcs - stats->resolved;
    char file[FOLLOW_UP_SIZE];
    print_lacking(modules);
    print_refused_file();
    if (stats->modules == 0 && stats->pcs > 0)
        print_message(
            "the trace has no module map, which libtrail-record writes: nothing can be named");
    fprintf(stderr, "trail: %" PRIu64 " PC%s: %" PRIu64 " named, %" PRIu64 " left as they were",
            stats->pcs, plural_s(stats->pcs), stats->resolved, left);
    if (stats->homeless > 0)
        fprintf(stderr, " (%" PRIu64 " in no module)", stats->homeless);
    if (stats->cut_stacks > 0)
        fprintf(stderr, "; %" PRIu64 " stack%s lost outer frames", stats->cut_stacks,
                plural_s(stats->cut_stacks));
    fputc('\n', stderr);
    if (strcmp(path, "-") != 0)
        print_message("next: trail summary %s, or trail print --stacks %s", shell_file(path, file),
                      file);
}

/* MARK: Copying */

static int copy(trail_source *source, struct modules *modules, const char *word, const char *path)
{
    struct trace_file file;
    struct progress progress;
    trail_symbolize_stats stats;
    trail_error err;
    int code = open_trace_file(&file, path);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = packed_sink(&file.packed);
    trail_symbolize_options options = {.resolve = modules_resolve,
                                       .resolve_context = modules,
                                       .progress = progress_step,
                                       .progress_context = &progress};
    progress_begin(&progress, source, PROGRESS_OUTPUT_MEANWHILE);
    bool good = trail_symbolize(source, &options, &sink, &stats, &err) == 0;
    progress_end(&progress);
    if (!good && !file.output.reason)
        code = print_error(word, &err);
    /* The copy of a damaged trace contains everything that can be read of the original. */
    bool made = good || (!file.output.reason && code == EXIT_BAD && err.code != TRAIL_UNSUPPORTED &&
                         err.code != TRAIL_NOT_A_TRACE);
    if (made)
        print_result(modules, &stats, path);
    return close_trace_file(&file, path, made, code);
}

static int symbolize(const char *word, const char *path, const char *const *folders, size_t count)
{
    trail_error err = no_error();
    mapped_files_guard();
    struct modules *modules = modules_open(folders, count, false, true);
    if (!modules) {
        err.code = TRAIL_NO_MEMORY;
        (void)snprintf(err.message, sizeof err.message, "out of memory");
        return print_error(word, &err);
    }
    trail_source *source = open_source(word, &err);
    int code = source ? copy(source, modules, word, path) : print_error(word, &err);
    trail_source_close(source);
    modules_close(modules);
    return code;
}

/* --module-path. */
static int add_folder(void *context, int id, const char *value)
{
    struct request *request = context;
    (void)id;
    request->folders[request->count++] = value;
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct options options;
    struct request request = {.output = "-",
                              .folders = calloc((size_t)argc + 1, sizeof *request.folders)};
    if (!request.folders)
        return exit_no_memory();
    int code = options_each(&options, command, argc, argv, add_folder, &request);
    if (code == EXIT_GOOD)
        code = check_trace_output(&options, "trace", request.output);
    if (code == EXIT_GOOD)
        code = symbolize(options.words[0], request.output, request.folders, request.count);
    free(request.folders);
    return code;
}

const struct command command_symbolize = {
    COMMAND_ROW(symbolize),
    .synopsis = "[options] TRACE --output=FILE",
    .details =
        "A trace of libtrail-record has addresses in its stacks, and a map of the files that they "
        "belong to. This finds the files, checks their build IDs, and writes a copy of the trace "
        "in which stacks have functions, files, lines and inlined calls, for 'go tool trace' and "
        "all others. Frames that have lines already stay as they are. Nothing is fetched from the "
        "network unless DEBUGINFOD_URLS names servers.",
    .examples =
        "  trail symbolize app.trace -o named.trace && go tool trace named.trace\n"
        "  trail symbolize --module-path=build --module-path=/mnt/root app.trace -o named.trace\n"
        "  trail symbolize - < app.trace | trail print --stacks -",
};
