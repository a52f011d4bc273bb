/*
 * trail export --to=csv, rowbinary, parquet: writes the tables of a trace into files, one into a
 * file or all into a folder.
 */
#include "commands/export_request.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands/table_files.h"
#include "ui/follow_up.h"
#include "ui/traces.h"
#include "words/vocabulary.h"

struct tables_request {
    struct export_request *request;
    bool all; /* into a folder; else `only` */
    trail_table_id only;
    char *file; /* the value of the column: the last component of the trace's path */
    const char *host;
    char own_host[TRACE_HOST_SIZE];
    char id[TRACE_ID_SIZE];
    int32_t day;
};

/* MARK: What is asked for */

static int find_table(struct tables_request *tables)
{
    const struct export_request *request = tables->request;
    const char *names[TRAIL_TABLES + 1] = {0};
    tables->all = request->table == NULL;
    if (tables->all || trail_table_find(request->table, &tables->only))
        return EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES; i++)
        names[i] = trail_table_get((trail_table_id)i)->name;
    const char *near = nearest_word(request->table, names);
    if (near)
        return usage_error(request->command, "no table '%s'; did you mean '%s'?", request->table,
                           near);
    char file[FOLLOW_UP_SIZE];
    if (strspn(request->table, "abcdefghijklmnopqrstuvwxyz_") < strlen(request->table))
        return usage_error(request->command, "no table '%s'", request->table);
    return usage_error(request->command,
                       "no table '%s'; if it is a view: trail sql --csv %s 'from %s'",
                       request->table, shell_file(request->word, file), request->table);
}

static int find_day(struct tables_request *tables)
{
    const struct export_request *request = tables->request;
    struct tm day = {0};
    if (!request->day) {
        struct input input = {.word = request->word};
        tables->day =
            strcmp(request->word, "-") == 0 ? (int32_t)(time(NULL) / 86400) : trace_day(&input);
        return show_is_whole() ? EXIT_GOOD : EXIT_INOUT;
    }
    const char *end = strptime(request->day, "%Y-%m-%d", &day);
    int of_month = day.tm_mday;
    tables->day = (int32_t)(timegm(&day) / 86400); /* February 31 is March 3 then */
    if (!end || *end || strlen(request->day) != 10 || day.tm_mday != of_month)
        return usage_error(request->command, "--day is a day like 2026-11-22, not '%s'",
                           request->day);
    return EXIT_GOOD;
}

static int find_all(struct tables_request *tables)
{
    const struct export_request *request = tables->request;
    char file[FOLLOW_UP_SIZE];
    if (request->options.name || request->goroutines.count > 0)
        return usage_error(
            request->command,
            "tables contain all goroutines; for some of them: trail sql --csv %s 'select * "
            "from states where goroutine = 18'",
            shell_file(request->word, file));
    int code = find_table(tables);
    tables->host = request->host;
    if (code == EXIT_GOOD && tables->all && !request->output)
        code =
            usage_error(request->command, "all tables go into a folder: -o DIR (or --table=NAME)");
    size_t size = code == EXIT_GOOD && request->output ? strlen(request->output) : 0;
    const char *suffix = request->format->suffixes;
    size_t end = strlen(suffix);
    if (tables->all && size > end && strcmp(request->output + size - end, suffix) == 0)
        code = usage_error(request->command,
                           "no table given: --table=NAME; without it -o is a folder for all");
    if (code == EXIT_GOOD)
        code = trace_host_find(request->command, &tables->host, tables->own_host);
    if (code == EXIT_GOOD)
        code = find_day(tables);
    if (code != EXIT_GOOD)
        return code;
    char *path = strdup(source_title(request->word));
    tables->file = path ? strdup(basename(path)) : NULL;
    free(path);
    return tables->file ? EXIT_GOOD : exit_no_memory();
}

static bool is_wanted(const struct tables_request *tables, int table)
{
    return tables->all || (int)tables->only == table;
}

/* MARK: Folders */

/* Whether the tables go into folders by host and day, whose names then have these columns. */
static bool is_by_day(const struct tables_request *tables)
{
    return tables->all && tables->request->format->rows == TRAIL_ROWS_PARQUET;
}

/* Returns the path of a table; NULL if out of memory. */
static char *path_of(const struct tables_request *tables, int table)
{
    const char *output = tables->request->output;
    const char *name = trail_table_get((trail_table_id)table)->name;
    char *path = NULL;
    if (!tables->all)
        return strdup(output ? output : "-");
    if (is_by_day(tables)) {
        char *stem = NULL;
        if (asprintf(&stem, "%s-%s", tables->file, tables->id) < 0)
            return NULL;
        path = table_files_path(output, table, tables->host, tables->day, stem);
        free(stem);
        return path;
    }
    return asprintf(&path, "%s/%s%s", output, name, tables->request->format->suffixes) < 0 ? NULL
                                                                                           : path;
}

/* MARK: Writing */

static int open_files(const struct tables_request *tables, struct table_files *files,
                      trail_tables_options *options, trail_sink *sinks)
{
    int code = EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        if (!is_wanted(tables, i))
            continue;
        code = table_files_open(files, i, path_of(tables, i), tables->all);
        options->wanted[i] = is_by_day(tables) ? table_files_wanted(i) : TRAIL_ALL_COLUMNS;
        sinks[i] = output_sink(&files->outputs[i]);
    }
    return code;
}

/* Closes a single file, which may be stdout. */
static int close_file(const struct tables_request *tables, struct table_files *files, bool made,
                      int code)
{
    int i = (int)tables->only;
    if (files->open[i])
        code = close_output(&files->outputs[i], files->paths[i], made, code);
    free(files->paths[i]);
    return code;
}

/* Reports what was left out. */
static void print_count(const struct export_request *request, int code, uint64_t count)
{
    const char *title = source_title(request->word);
    bool window = request->window.has_from || request->window.has_to;
    if (code == EXIT_BAD && count > 0)
        print_message("%s: the good part was exported: %" PRIu64 " row%s", title, count,
                      plural_s(count));
    else if (code == EXIT_GOOD && count == 0 && window)
        print_message("%s: no row is in that window", title);
}

static int write_tables(struct export_request *request, trail_reader *reader)
{
    const struct tables_request *tables = request->tables;
    struct table_files *files = calloc(1, sizeof *files);
    trail_sink sinks[TRAIL_TABLES] = {0};
    uint64_t rows[TRAIL_TABLES], count = 0;
    trail_error err = no_error();
    trail_tables_options options = {
        .trace = tables->id,
        .file = tables->file,
        .host = tables->host,
        .day = tables->day,
        .csv_safe = request->csv_safe,
        .progress = request->options.progress,
        .progress_context = request->options.progress_context,
    };
    if (!files)
        return exit_no_memory();
    WINDOW_PUT(&options, &request->window);
    int code = open_files(tables, files, &options, sinks);
    bool opened = code == EXIT_GOOD, lost = false;
    if (opened &&
        trail_tables_write(reader, &options, request->format->rows, sinks, rows, &err) < 0) {
        lost = table_files_lost(files);
        code = lost ? EXIT_GOOD : print_error(request->word, &err);
    }
    for (int i = 0; opened && i < TRAIL_TABLES; i++)
        count += rows[i];
    if (!lost)
        print_count(request, code, count);
    bool made = opened && !lost && (code == EXIT_GOOD || (code == EXIT_BAD && count > 0));
    code =
        tables->all ? table_files_close(files, made, code) : close_file(tables, files, made, code);
    free(files);
    return code;
}

int export_tables(struct export_request *request)
{
    struct tables_request tables = {.request = request};
    struct input input = {0};
    trail_error err = no_error();
    int code = find_all(&tables);
    /* cppcheck-suppress-begin autoVariables; they are gone before the variables are */
    request->tables = &tables;
    request->input = &input;
    /* cppcheck-suppress-end autoVariables */
    if (code == EXIT_GOOD && input_init(&input, request->word, true, &err) < 0)
        code = print_error(request->word, &err);
    if (code == EXIT_GOOD) {
        input_trace_id(&input, tables.host, tables.id);
        code = show_is_whole() ? export_with_reader(request, write_tables) : EXIT_INOUT;
    }
    input_free(&input);
    request->input = NULL;
    request->tables = NULL;
    free(tables.file);
    return code;
}

/* MARK: Schemas */

int export_schema(const struct export_request *request)
{
    const char *name = request->schema, *names[TRAIL_DIALECTS + 1] = {0},
               *path = request->output ? request->output : "-";
    struct output output;
    trail_error err = no_error();
    int dialect = TRAIL_DIALECTS;
    for (int i = 0; i < TRAIL_DIALECTS; i++) {
        names[i] = trail_dialect_name((trail_dialect)i);
        if (strcmp(names[i], name) == 0)
            dialect = i;
    }
    if (dialect == TRAIL_DIALECTS)
        return unknown_word(request->command, "schema for", name, names, EXPORT_SCHEMAS);
    int code = open_output_beside(&output, path);
    if (code != EXIT_GOOD)
        return code;
    trail_sink sink = output_sink(&output);
    bool good = trail_tables_schema((trail_dialect)dialect, &sink, &err) == 0;
    return close_output(&output, path, good,
                        good || output.reason ? EXIT_GOOD : exit_code_of(&err));
}
