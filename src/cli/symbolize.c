/*
 * trail symbolize: puts functions, files, lines and inlined calls into the stacks of a trace.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/modules.h"
#include "cli/progress.h"

enum { OPT_OUTPUT = 1, OPT_MODULE_PATH };

static const struct option rows[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "where the trace goes (- is stdout, the default)", NULL},
    {OPT_MODULE_PATH, 'm', "module-path", "DIR",
     "where to look for programs, libraries and their debug information\n"
     "first: by build ID in .build-id, by path below DIR, by name; again\nfor more folders",
     NULL},
    {0},
};

static void tell_result(const struct modules *modules, const trail_symbolize_stats *stats,
                        const char *path)
{
    uint64_t left = stats->pcs - stats->resolved;
    modules_tell(modules);
    if (stats->modules == 0 && stats->pcs > 0)
        fputs("trail: the trace has no module map, as libtrail-record writes it: nothing can be "
              "named\n",
              stderr);
    fprintf(stderr, "trail: %" PRIu64 " PCs: %" PRIu64 " named, %" PRIu64 " left as they were",
            stats->pcs, stats->resolved, left);
    if (stats->homeless > 0)
        fprintf(stderr, " (%" PRIu64 " in no module)", stats->homeless);
    if (stats->cut_stacks > 0)
        fprintf(stderr, "; %" PRIu64 " stacks lost outer frames", stats->cut_stacks);
    fputc('\n', stderr);
    if (strcmp(path, "-") != 0)
        fprintf(stderr, "trail: next: go tool trace %s, or trail print --stacks %s\n", path, path);
}

static int copy(trail_source *source, struct modules *modules, const char *word, const char *path)
{
    struct output output;
    struct progress progress;
    trail_symbolize_stats stats;
    trail_error err;
    int code = output_open(&output, path);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&output);
    trail_symbolize_options options = {.resolve = modules_resolve,
                                       .resolve_context = modules,
                                       .progress = progress_step,
                                       .progress_context = &progress};
    progress_begin(&progress, source, PROGRESS_OUTPUT_MEANWHILE);
    bool good = trail_symbolize(source, &options, &sink, &stats, &err) == 0;
    progress_end(&progress);
    if (!good && !output.reason)
        code = tell_error(word, &err);
    /* A damaged trace is copied to its end: what can be read of it can be read of the copy. */
    bool made = good || (!output.reason && code == EXIT_BAD && err.code != TRAIL_UNSUPPORTED &&
                         err.code != TRAIL_NOT_A_TRACE);
    if (made)
        tell_result(modules, &stats, path);
    return output_close(&output, path, made, code);
}

static int symbolize(const char *word, const char *path, const char *const *folders, size_t count)
{
    trail_error err = no_error();
    struct modules *modules = modules_open(folders, count, false);
    if (!modules) {
        err.code = TRAIL_NO_MEMORY;
        (void)snprintf(err.message, sizeof err.message, "out of memory");
        return tell_error(word, &err);
    }
    trail_source *source = open_source(word, &err);
    int code = source ? copy(source, modules, word, path) : tell_error(word, &err);
    trail_source_close(source);
    modules_close(modules);
    return code;
}

/* Reads the options; `folders` has room for all of them. */
static int read_options(struct options *options, const char **output, const char **folders,
                        size_t *count)
{
    int id;
    while ((id = options_next(options)) > 0) {
        if (id == OPT_OUTPUT)
            *output = options->value;
        else
            folders[(*count)++] = options->value;
    }
    return id;
}

static int check_usage(const struct command *command, const struct options *options,
                       const char *output)
{
    if (options->word_count != 1)
        return usage_error(command, options->word_count == 0 ? "which trace? (- is stdin)"
                                                             : "one trace at a time");
    if (strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
        return usage_error(command, "a trace is nothing for a terminal: --output=FILE");
    if (overwrites(output, options->words[0]))
        return usage_error(command, "the new trace would overwrite the old, '%s'", output);
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *output = "-";
    size_t count = 0;
    struct options options;
    const char **folders = calloc((size_t)argc + 1, sizeof *folders);
    if (!folders)
        return EXIT_INOUT;
    options_begin(&options, command, argc, argv);
    int id = read_options(&options, &output, folders, &count);
    int code = id == OPTIONS_HELP ? EXIT_GOOD : EXIT_USAGE;
    if (id == OPTIONS_END)
        code = check_usage(command, &options, output);
    if (id == OPTIONS_END && code == EXIT_GOOD)
        code = symbolize(options.words[0], output, folders, count);
    free(folders);
    return code;
}

const struct command command_symbolize = {
    .name = "symbolize",
    .summary = "put functions, files and lines into the stacks of a trace",
    .synopsis = "[options] TRACE --output=FILE",
    .details =
        "A trace of libtrail-record has addresses in its stacks, and a map of the files that they\n"
        "belong to. This finds the files, checks their build IDs, and writes a copy of the trace\n"
        "in which stacks have functions, files, lines and inlined calls, for 'go tool trace' and\n"
        "all others. Frames that have lines already stay as they are. Nothing is fetched from\n"
        "the network unless DEBUGINFOD_URLS says from where.",
    .examples =
        "  trail symbolize app.trace -o named.trace && go tool trace named.trace\n"
        "  trail symbolize --module-path=build --module-path=/mnt/root app.trace -o named.trace\n"
        "  trail symbolize - < app.trace | trail print --stacks -",
    .options = rows,
    .run = run,
};
