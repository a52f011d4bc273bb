/*
 * trail merge: merges traces of several programs into one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "ui/cli.h"
#include "ui/input.h"
#include "ui/progress.h"
#include "ui/trace_file.h"
#include "ui/values.h"

/* An input trace: its command line, and its state while it is read. */
struct part {
    const char *word;
    char *name; /* from before "=", or derived from the file's */
    bool has_offset;
    int64_t offset_ns;
    struct input input;
    trail_source *source;
    trail_reader *reader;
    bool added;
};

struct offset {
    const char *name;
    size_t size;
    int64_t ns;
    bool used;
};

struct offsets {
    struct offset list[TRAIL_MERGE_MOST];
    size_t count;
};

struct request {
    const struct command *command;
    const char *output;
    trail_merge_options merge;
    struct offsets offsets;
    struct part parts[TRAIL_MERGE_MOST];
    size_t count;
};

/* MARK: The command line */

static int parse_offset(const struct command *command, void *member, const char *value)
{
    struct offsets *offsets = member;
    const char *equals = strrchr(value, '=');
    struct offset *offset = &offsets->list[offsets->count];
    bool before = equals && equals[1] == '-';
    if (!equals || equals == value || !parse_time(equals + 1 + before, &offset->ns))
        return usage_error(command, "--offset is like web=1.5s or db=-20ms, not '%s'", value);
    if (offsets->count + 1 == TRAIL_MERGE_MOST)
        return usage_error(command, "more than %d offsets", TRAIL_MERGE_MOST - 1);
    offset->name = value;
    offset->size = (size_t)(equals - value);
    offset->ns = before ? -offset->ns : offset->ns;
    offsets->count++;
    return EXIT_GOOD;
}

static const struct option_word alignments[] = {{"wall", false}, {"start", true}, {0}};
static const struct option_word versions[] = {
    {"go1.26", 26}, {"go1.25", 25}, {"go1.23", 23}, {"1.26", 26}, {"1.25", 25}, {"1.23", 23}, {0},
};

static const struct option rows[] = {
    {0, "offset", "NAME=TIME",
     "that trace begins this time after the first one (-TIME: before): 1.5s, -20ms",
     TO_PARSED(struct request, offsets, struct offsets, parse_offset)},
    {0, "align", "BY",
     "how traces without --offset are aligned: by their wall clocks (the default), or start: all "
     "begin together",
     TO_WORD(struct request, merge.align_start, alignments), .expects = "wall or start"},
    {0, "plain", NULL, "start functions without the name of their trace",
     TO_FLAG(struct request, merge.plain)},
    {'t', "to", "go1.N", "the version to write: go1.26 (the default), go1.25 or go1.23",
     TO_WORD(struct request, merge.version, versions), .expects = "go1.26, go1.25 or go1.23",
     .values = "go1.26 go1.25 go1.23"},
    {'o', "output", "FILE", "where the trace goes (- is stdout, the default)",
     TO_TEXT(struct request, output)},
    {0},
};

/* MARK: Names */

static bool name_taken(const struct request *request, const char *name)
{
    for (size_t i = 0; i < request->count; i++)
        if (strcmp(request->parts[i].name, name) == 0)
            return true;
    return false;
}

/* Returns "web-2" for "web", or with the first free number. NULL if out of memory. */
static char *next_name(const struct request *request, const char *base)
{
    for (unsigned n = 2;; n++) {
        char *name;
        if (asprintf(&name, "%s-%u", base, n) < 0)
            return NULL;
        if (!name_taken(request, name))
            return name;
        free(name);
    }
}

/* Returns "web" for "/var/traces/web.trace.gz"; a duplicate becomes "web-2". NULL if out of
 * memory. */
static char *name_of_file(const struct request *request, const char *word)
{
    static const char *const ends[] = {".gz", ".zst", ".xz", ".trace", ".out"};
    char *base = strcmp(word, "-") == 0 ? strdup("stdin") : NULL;
    if (!base)
        base = strdup(path_name(word));
    for (size_t i = 0; base && i < sizeof ends / sizeof *ends; i++) {
        size_t size = strlen(base), end = strlen(ends[i]);
        if (size > end && strcmp(base + size - end, ends[i]) == 0)
            base[size - end] = '\0';
    }
    if (!base || !name_taken(request, base))
        return base;
    char *name = next_name(request, base);
    free(base);
    return name;
}

/* Parses NAME=FILE or FILE; a file with "=" in its name is "./a=b". */
static int take_word(struct request *request, const char *word)
{
    struct part *part = &request->parts[request->count];
    const char *equals = strchr(word, '='), *slash = strchr(word, '/');
    bool named = equals && equals > word && (!slash || slash > equals);
    if (request->count == TRAIL_MERGE_MOST)
        return usage_error(request->command, "more than %d traces", TRAIL_MERGE_MOST);
    *part = (struct part){.word = named ? equals + 1 : word};
    part->name = named ? strndup(word, (size_t)(equals - word)) : name_of_file(request, part->word);
    if (!part->name) {
        print_message("out of memory");
        return EXIT_INOUT;
    }
    bool twice = named && name_taken(request, part->name);
    request->count++;
    if (twice)
        return usage_error(request->command, "two traces are called '%s'", part->name);
    for (size_t i = 0; i + 1 < request->count; i++)
        if (strcmp(part->word, "-") == 0 && strcmp(request->parts[i].word, "-") == 0)
            return usage_error(request->command, "stdin can be only one of the traces");
    if (overwrites(request->output, part->word))
        return usage_error(request->command, "the new trace would overwrite the old, '%s'",
                           request->output);
    return EXIT_GOOD;
}

static void use_offsets(struct request *request)
{
    for (size_t i = 0; i < request->offsets.count; i++) {
        struct offset *offset = &request->offsets.list[i];
        for (size_t k = 0; k < request->count; k++) {
            struct part *part = &request->parts[k];
            if (strlen(part->name) == offset->size &&
                memcmp(part->name, offset->name, offset->size) == 0) {
                part->has_offset = offset->used = true;
                part->offset_ns = offset->ns;
            }
        }
    }
}

/* Checks the names in --offset. */
static int check_offsets(const struct request *request)
{
    const char *names[TRAIL_MERGE_MOST + 1] = {NULL};
    for (size_t k = 0; k < request->count; k++)
        names[k] = request->parts[k].name;
    if (request->count > 0 && request->parts[0].has_offset)
        return usage_error(request->command,
                           "'%s' is the first trace, from which offsets are counted", names[0]);
    for (size_t i = 0; i < request->offsets.count; i++) {
        const struct offset *offset = &request->offsets.list[i];
        char name[128];
        if (offset->used)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)offset->size, offset->name);
        const char *near = nearest_word(name, names);
        return usage_error(request->command, "no trace is called '%s'%s%s%s", name,
                           near ? ": is it '" : "", near ? near : "", near ? "'?" : "");
    }
    return EXIT_GOOD;
}

static int check_usage(struct request *request, const struct options *options)
{
    if (options->word_count == 0)
        return usage_error(request->command, "no traces given");
    if (strcmp(request->output, "-") == 0 && isatty(STDOUT_FILENO))
        return usage_error(request->command, NO_BINARY_ON_TERMINAL);
    request->count = 0;
    for (int i = 0; i < options->word_count; i++) {
        int code = take_word(request, options->words[i]);
        if (code != EXIT_GOOD)
            return code;
    }
    use_offsets(request);
    return check_offsets(request);
}

/* MARK: Merging */

/* Adds a trace whose reader is open; a second reader looks ahead and is closed. */
static int add_part(trail_merge *merge, struct part *part, const trail_reader_options *options,
                    trail_error *err)
{
    trail_source *source = NULL;
    trail_merge_source from = {
        .reader = part->reader,
        .name = part->name,
        .has_offset = part->has_offset,
        .offset_ns = part->offset_ns,
    };
    if (trail_version_is_v2(trail_reader_version(part->reader))) {
        source = input_open(&part->input, err);
        from.ahead = source ? trail_reader_open(source, options, err) : NULL;
        if (!from.ahead) {
            trail_source_close(source);
            return -1;
        }
    }
    int result = trail_merge_add(merge, &from, err);
    trail_reader_close(from.ahead);
    trail_source_close(source);
    part->added = result == 0;
    return result;
}

/* Returns EXIT_GOOD, or another code after a message if it cannot be merged. */
static int open_part(trail_merge *merge, struct part *part)
{
    static const trail_reader_options options = {.partial = true};
    trail_error err;
    if (input_init(&part->input, part->word, true, &err) < 0)
        return print_error(part->word, &err);
    part->source = input_open(&part->input, &err);
    part->reader = part->source ? trail_reader_open(part->source, &options, &err) : NULL;
    if (!part->reader || add_part(merge, part, &options, &err) < 0)
        return print_error(part->word, &err);
    return EXIT_GOOD;
}

static void close_part(struct part *part)
{
    trail_reader_close(part->reader);
    trail_source_close(part->source);
    input_free(&part->input);
    free(part->name);
}

/* Reports damage in the inputs. */
static int print_damage(const struct request *request, const trail_merge *merge)
{
    int code = EXIT_GOOD;
    size_t number = 0;
    for (size_t k = 0; k < request->count; k++) {
        const trail_error *err =
            request->parts[k].added ? trail_merge_source_error(merge, number++) : NULL;
        if (err)
            code = worse_exit(code, print_error(request->parts[k].word, err));
    }
    if (code == EXIT_BAD)
        print_message("the good part was merged");
    return code;
}

static int print_failure(const struct request *request, const trail_error *err)
{
    int code = exit_code_of(err);
    print_message("%s", err->message);
    if (code == EXIT_USAGE)
        print_message("state when the others begin: --offset=%s=TIME, relative to '%s'; or "
                      "--align=start",
                      request->count > 1 ? request->parts[1].name : "NAME", request->parts[0].name);
    return code;
}

static int write_parts(struct request *request, trail_merge *merge)
{
    struct trace_file file;
    trail_error err = no_error();
    trail_convert_stats stats;
    int code = open_trace_file(&file, request->output);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = packed_sink(&file.packed);
    bool good = trail_merge_write(merge, &sink, &stats, &err) == 0;
    bool made = stats.generations > 0 && !file.output.reason;
    if (!good && !file.output.reason)
        code = print_failure(request, &err);
    if (made) {
        code = worse_exit(code, print_damage(request, merge));
        if (stats.left_out > 0)
            print_message("%" PRIu64 " event%s left out that cannot be in the new trace",
                          stats.left_out, stats.left_out == 1 ? "" : "s");
    }
    return close_trace_file(&file, request->output, made && code != EXIT_INOUT, code);
}

/* Returns the largest input, whose position is shown as progress. */
static const trail_source *largest(const struct request *request)
{
    const trail_source *found = request->parts[0].source;
    for (size_t k = 1; k < request->count; k++) {
        const trail_source *source = request->parts[k].source;
        if (source && (!found || trail_source_size(source) > trail_source_size(found)))
            found = source;
    }
    return found;
}

static int merge_parts(struct request *request)
{
    struct progress progress;
    trail_error err;
    request->merge.progress = progress_step;
    request->merge.progress_context = &progress;
    int code = EXIT_GOOD;
    size_t added = 0;
    trail_merge *merge = trail_merge_open(&request->merge, &err);
    if (!merge)
        return print_error("merge", &err);
    for (size_t k = 0; k < request->count; k++) {
        code = worse_exit(code, open_part(merge, &request->parts[k]));
        added += request->parts[k].added;
    }
    if (code < EXIT_INOUT && added > 0) {
        progress_begin(&progress, largest(request), PROGRESS_OUTPUT_MEANWHILE);
        code = worse_exit(code, write_parts(request, merge));
        progress_end(&progress);
    }
    trail_merge_close(merge);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command, .output = "-"};
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code == EXIT_GOOD)
        code = check_usage(&request, &options);
    if (code == EXIT_GOOD)
        code = merge_parts(&request);
    for (size_t k = 0; k < request.count; k++)
        close_part(&request.parts[k]);
    return code;
}

const struct command command_merge = {
    COMMAND_ROW(merge),
    .synopsis = "[options] [NAME=]TRACE... --output=FILE",
    .details =
        "Writes the events of up to 64 traces, of Go 1.5 to 1.27 and of C programs, as one trace, "
        "side by side on one clock. Go 1.25 and later and trail's own traces have a wall clock; "
        "for others --offset or --align=start says how they are aligned. Numbers of the second "
        "trace's goroutines and threads begin with 1000000000, those of its Ps with 1000, and so "
        "on; names of start functions with the trace's: 'web: main.main'. The heap and GOMAXPROCS "
        "are sums. For a damaged trace, the good part is written and the exit status is 1.",
    .examples = "  trail merge web.trace db.trace -o both.trace && trail summary both.trace\n"
                "  trail merge web=host1/app.trace db=host2/app.trace -o both.trace\n"
                "  trail merge old.trace new.trace --offset=new=1.5s -o both.trace\n"
                "  trail merge --align=start --to=go1.23 *.trace -o all.trace",
};
