/*
 * trail sql: SQL queries on traces, answered by DuckDB over the tables of tables.h.
 *
 * Arguments are files up to the first query, which begins with @, or contains a space and is not
 * the name of a file.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/json.h"
#include "commands/sql_cache.h"
#include "commands/sql_store.h"
#include "commands/version.h"
#include "sql/queries.h"
#include "sql/show.h"
#include "sql/tables.h"
#include "sql/views.h"
#include "ui/cli.h"
#include "ui/follow_up.h"
#include "ui/input.h"
#include "ui/show.h"
#include "ui/values.h"

struct request {
    const struct command *command;
    char **files;
    size_t file_count;
    const char *store; /* instead of files */
    const char *query; /* NULL: interactive, or from stdin */
    char dot[64];      /* a query of two words: ".schema states" */
    enum sql_format format;
    struct duckdb_options duckdb;
    const char *host, *binary;
    struct window window;
    bool repair, cache;
};

static int take_memory(const struct command *command, void *memory, const char *value)
{
    uint64_t bytes;
    *(const char **)memory = value;
    if (parse_size(value, &bytes) && bytes > 0)
        return EXIT_GOOD;
    return usage_error(command, "--memory-limit is a size like 500M, not '%s'", value);
}

static const struct option rows[] = {
    {0, "from", "TIME",
     "only time from here on, counted from each file's first event: 1.5s 20ms 300us",
     TO_WINDOW_FROM(struct request, window)},
    {0, "to", "TIME", "only time up to here; +3ms counts from --from",
     TO_WINDOW_TO(struct request, window)},
    {'j', "json", NULL, "an array of objects, one per row", TAKE(SQL_JSON)},
    {0, "csv", NULL, "comma-separated values, with a line of titles", TAKE(SQL_CSV)},
    {0, "csv-safe", NULL,
     "the same, with an apostrophe before text that a spreadsheet would evaluate",
     TAKE(SQL_CSV_SAFE)},
    {0, "memory-limit", "SIZE",
     "memory that DuckDB may use: 500M, 4G (its own default: 80 % of the machine's)",
     TO_PARSED(struct request, duckdb.memory, const char *, take_memory)},
    {0, "spill", "DIR", "where to store what exceeds that; without it the query fails",
     TO_TEXT(struct request, duckdb.spill)},
    {0, "threads", "N",
     "threads that DuckDB may use (one per file, at most one per CPU; on a store one per CPU)",
     TO_NUMBER(struct request, duckdb.threads), .least = 1, .expects = "a number, at least 1"},
    {0, "cache", NULL,
     "keep the tables that the query uses, and read them from there the next time",
     TO_FLAG(struct request, cache)},
    {0, "allow-files", NULL, "queries may read and write files: COPY, read_parquet(...)",
     TO_FLAG(struct request, duckdb.files)},
    {0, "host", "NAME", "the machine on which the traces were made (this one)",
     TO_TEXT(struct request, host)},
    {0, "repair", NULL, "repair inconsistent orders of events", TO_FLAG(struct request, repair)},
    {0, "binary", "FILE", "Go 1.5 and 1.6: the traced program, for names",
     TO_TEXT(struct request, binary)},
    {0},
};

struct session {
    struct request *request;
    bool knows_begins; /* the macro since_start is defined */
    struct duckdb duckdb;
    struct sql_tables tables;
    struct sql_cache cache;
    struct symbols *symbols;
    const char **files;         /* those that can be read */
    int unreadable;             /* the exit code of the others */
    char host[TRACE_HOST_SIZE]; /* unless given by an option */
};

/* MARK: What there is to ask */

static const char *type_name(trail_cell cell)
{
    static const char *const names[] = {
        [TRAIL_CELL_I64] = "BIGINT", [TRAIL_CELL_I32] = "INTEGER",  [TRAIL_CELL_BOOL] = "BOOLEAN",
        [TRAIL_CELL_ENUM] = "ENUM",  [TRAIL_CELL_TEXT] = "VARCHAR", [TRAIL_CELL_DATE] = "DATE",
    };
    return names[cell];
}

static void show_columns(const trail_table *table)
{
    printf("%s: %s\n", table->name, table->meaning);
    for (size_t i = 0; i < table->column_count; i++) {
        const trail_table_column *column = &table->columns[i];
        printf("  %-16s  %-7s  %s%s\n", column->name, type_name(column->cell), column->meaning,
               column->nullable ? " (or NULL)" : "");
    }
}

static void show_tables(void)
{
    for (int i = 0; i < TRAIL_TABLES; i++) {
        const trail_table *table = trail_table_get((trail_table_id)i);
        printf("%-12s  %s\n", table->name, table->meaning);
    }
    for (const struct sql_named *view = sql_views; view->name; view++)
        printf("%-12s  %s\n", view->name, view->meaning);
}

static void show_queries(enum sql_format format)
{
    struct json json = json_on_stdout();
    if (format != SQL_JSON) {
        for (const struct sql_named *query = sql_queries; query->name; query++)
            printf("@%-14s  %s\n", query->name, query->meaning);
        return;
    }
    json_open(&json, NULL, '[');
    for (const struct sql_named *query = sql_queries; query->name; query++) {
        json_open(&json, NULL, '{');
        json_string(&json, "name", query->name);
        json_string(&json, "meaning", query->meaning);
        json_string(&json, "sql", query->sql);
        json_close(&json, '}');
    }
    json_close(&json, ']');
}

static void show_view(const struct sql_named *view)
{
    printf("%s: %s\n%s\n", view->name, view->meaning, view->sql);
}

static int show_schema(const char *name)
{
    trail_table_id table;
    const struct sql_named *view = sql_named_find(sql_views, name);
    if (view)
        return show_view(view), EXIT_GOOD;
    if (*name && !trail_table_find(name, &table)) {
        const char *names[TRAIL_TABLES + 1] = {0};
        for (int i = 0; i < TRAIL_TABLES; i++)
            names[i] = trail_table_get((trail_table_id)i)->name;
        const char *near = nearest_word(name, names);
        print_message("no table '%s'%s%s%s", name, near ? "; did you mean '" : "", near ? near : "",
                      near ? "'?" : "");
        return EXIT_USAGE;
    }
    for (int i = 0; i < TRAIL_TABLES; i++) {
        if (*name && (trail_table_id)i != table)
            continue;
        if (!*name && i > 0)
            putchar('\n');
        show_columns(trail_table_get((trail_table_id)i));
    }
    for (view = sql_views; !*name && view->name; view++) {
        putchar('\n');
        show_view(view);
    }
    return EXIT_GOOD;
}

/* MARK: Macros about the files */

/* Returns the time of a trace's first event; its tables report what is wrong with the trace. */
static int64_t begin_of(const struct sql_tables *tables, size_t file)
{
    trail_error err;
    const trail_event *events;
    int64_t begin = 0;
    trail_source *source = input_open(&tables->traces.inputs[file], &err);
    trail_reader *reader = source ? trail_reader_open(source, &tables->traces.reader, &err) : NULL;
    if (reader && trail_reader_next_batch(reader, &events) > 0)
        begin = events[0].time_ns;
    trail_reader_close(reader);
    trail_source_close(source);
    return begin;
}

/*
 * Writes the macro trail_of(number, file), which makes numbers of different files different:
 * Perfetto's queries join by numbers alone. Numbers of a single file are unchanged.
 */
static void put_numbers(FILE *to, const struct sql_tables *tables)
{
    fputs("CREATE MACRO trail_of(number, of_file) AS number", to);
    for (size_t i = 0; tables->traces.count > 1 && i < tables->traces.count; i++) {
        fputs(i == 0 ? " + (list_position([" : ", ", to);
        sql_put_text(to, tables->traces.files[i]);
    }
    fputs(tables->traces.count > 1 ? "], of_file) - 1) * 1099511627776" : "", to);
}

/*
 * Writes the macro, and its table of the files' begins: opens every trace, so called only if the
 * macro is used.
 */
static void put_since_start(FILE *to, const struct sql_tables *tables)
{
    fputs("CREATE TEMP TABLE trail_begins(file VARCHAR, ns BIGINT);", to);
    for (size_t i = 0; i < tables->traces.count; i++) {
        fputs("INSERT INTO trail_begins VALUES (", to);
        sql_put_text(to, tables->traces.files[i]);
        fprintf(to, ", %" PRId64 ");", begin_of(tables, i));
    }
    fputs(sql_macro_since_start(tables->traces.count > 1), to);
}

/* Runs the statements that `put` writes. */
static int define(struct session *session, void (*put)(FILE *to, const struct sql_tables *tables))
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return EXIT_INOUT;
    put(to, &session->tables);
    int code = fclose(to) == 0 ? duckdb_run(&session->duckdb, text) : EXIT_INOUT;
    free(text);
    return code;
}

/* MARK: One query */

/* Returns the argument after a query's or command's name and a space. */
static const char *rest_of(const char *line, const char *word)
{
    size_t length = strlen(word);
    if (strncasecmp(line, word, length) != 0 || (line[length] && line[length] != ' '))
        return NULL;
    line += length;
    while (*line == ' ')
        line++;
    return line;
}

/* Runs .schema and the like. Returns -1 if it is not such a command. */
static int run_dot(const char *line, enum sql_format format)
{
    const char *rest;
    if ((rest = rest_of(line, ".schema")))
        return show_schema(rest);
    if (rest_of(line, ".tables"))
        return show_tables(), EXIT_GOOD;
    if (rest_of(line, ".queries"))
        return show_queries(format), EXIT_GOOD;
    if (rest_of(line, ".help")) {
        fputs(".tables          the tables\n.schema [TABLE]  their columns\n"
              ".queries         named queries, run as @NAME; .show NAME prints one\n"
              ".quit            end\n"
              "Everything else is DuckDB's SQL, and ends with a semicolon.\n",
              stdout);
        return EXIT_GOOD;
    }
    return -1;
}

static int no_query(const char *name)
{
    const char *near = sql_query_near(name);
    print_message("no query '@%s'%s%s%s; .queries lists them", name,
                  near ? "; did you mean '@" : "", near ? near : "", near ? "'?" : "");
    return EXIT_USAGE;
}

/* Runs a query, or a command with a dot; prints the result of SQL if `shown`. */
static int run_one(struct session *session, const char *text, bool shown)
{
    const char *rest = rest_of(text, ".show");
    const struct sql_named *named =
        rest || *text == '@' ? sql_query_find(rest ? rest : text + 1) : NULL;
    if ((rest || *text == '@') && !named)
        return no_query(rest ? rest : text + 1);
    if (rest)
        return printf("%s;\n", named->sql), EXIT_GOOD;
    if (*text == '.') {
        int code = run_dot(text, session->request->format);
        if (code < 0)
            print_message("no command '%s'; .help lists them", text);
        return code < 0 ? EXIT_USAGE : code;
    }
    const char *sql = named ? named->sql : text;
    int code = EXIT_GOOD;
    if (!session->knows_begins && strcasestr(sql, "since_start")) {
        code = define(session, put_since_start);
        session->knows_begins = code == EXIT_GOOD;
    }
    if (code == EXIT_GOOD)
        code = sql_show(&session->duckdb, sql, session->request->format, shown);
    sql_tables_forget(&session->tables);
    return worse_exit(code, session->tables.traces.code);
}

/* MARK: Several queries */

/* Returns the start of a statement, after white space and comments. */
static const char *statement_begin(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (at[0] == '-' && at[1] == '-') {
            at += strcspn(at, "\n");
        } else if (at[0] == '/' && at[1] == '*' && strstr(at + 2, "*/")) {
            at = strstr(at + 2, "*/") + 2;
        } else {
            return at;
        }
    }
}

/* Returns the size of the statement up to its semicolon, or of all of the text if it is incomplete.
 * Semicolons in quotes and comments do not count. */
static size_t statement_size(const char *text)
{
    const char *at = statement_begin(text);
    while (*at && *at != ';') {
        const char *end = *at == '\'' || *at == '"' ? strchr(at + 1, *at) : at;
        if (!end || strncmp(at, "/*", 2) == 0)
            return strlen(text);
        at = statement_begin(end + 1);
    }
    return (size_t)(at - text);
}

static bool is_blank(const char *text)
{
    return *statement_begin(text) == '\0';
}

/* Runs all complete statements of the text, and returns the rest. */
static char *run_whole(struct session *session, char *text, int *code)
{
    for (char *end; *(end = text + statement_size(text)); text = end + 1) {
        *end = '\0';
        if (!is_blank(text))
            *code = worse_exit(*code, run_one(session, statement_begin(text), true));
    }
    return text;
}

/* Runs all statements of a text. JSON and CSV are one document: the result of the last
 * statement. */
static int run_all(struct session *session, const char *query)
{
    char *text = strdup(query), *at = text;
    int code = text ? EXIT_GOOD : EXIT_INOUT;
    while (at && !is_blank(at)) {
        char *end = at + statement_size(at), *next = *end ? end + 1 : NULL;
        bool last = !next || is_blank(next);
        *end = '\0';
        if (!is_blank(at))
            code = worse_exit(code, run_one(session, statement_begin(at),
                                            last || session->request->format == SQL_TABLE));
        at = next;
    }
    free(text);
    return code;
}

/* MARK: The prompt */

/* Lines are read with libedit if it is installed and stdin is a terminal. */
struct lines {
    bool asked;
    char *(*edit)(const char *prompt);
    int (*remember)(const char *line);
};

static void lines_begin(struct lines *lines)
{
    *lines = (struct lines){.asked = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    void *library = lines->asked ? dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return;
    void *edit = dlsym(library, "readline"), *remember = dlsym(library, "add_history");
    if (!edit || !remember)
        return;
    memcpy(&lines->edit, &edit, sizeof edit);
    memcpy(&lines->remember, &remember, sizeof remember);
}

/* Returns the next line without its newline, which the caller frees; NULL at the end. */
static char *lines_next(const struct lines *lines, const char *prompt)
{
    char *line = NULL;
    size_t capacity = 0;
    if (lines->edit) {
        line = lines->edit(prompt);
        if (line && *line)
            (void)lines->remember(line);
        return line;
    }
    if (lines->asked) {
        fputs(prompt, stdout);
        (void)fflush(stdout);
    }
    ssize_t size = getline(&line, &capacity, stdin);
    if (size < 0) {
        free(line);
        return NULL;
    }
    if (size > 0 && line[size - 1] == '\n')
        line[size - 1] = '\0';
    return line;
}

/* Appends a line to an incomplete statement. Returns false if out of memory. */
static bool append(char **text, const char *line)
{
    char *grown = NULL;
    if (asprintf(&grown, "%s%s%s", *text ? *text : "", *text ? "\n" : "", line) < 0)
        return false;
    free(*text);
    *text = grown;
    return true;
}

static bool is_quit(const char *line)
{
    return strcmp(line, ".quit") == 0 || strcmp(line, ".exit") == 0;
}

static int prompt(struct session *session)
{
    struct lines lines;
    char *text = NULL, *line;
    int code = EXIT_GOOD;
    lines_begin(&lines);
    if (lines.asked)
        puts("SQL over traces; .help lists the commands, .quit ends.");
    while ((line = lines_next(&lines, text ? "  ...> " : "trail> ")) && (text || !is_quit(line))) {
        bool alone = !text && (*line == '.' || *line == '@');
        int one = EXIT_GOOD;
        if (alone) {
            one = run_one(session, line, true);
        } else if (append(&text, line)) {
            const char *rest = run_whole(session, text, &one);
            char *left = is_blank(rest) ? NULL : strdup(rest);
            free(text);
            text = left;
        }
        code = lines.asked ? EXIT_GOOD : worse_exit(code, one);
        free(line);
    }
    free(line);
    if (text && !is_blank(text))
        code = worse_exit(code, run_one(session, statement_begin(text), true));
    free(text);
    return code;
}

/* MARK: The cache */

static const char *sql_of(const char *query)
{
    const struct sql_named *named = query && *query == '@' ? sql_query_find(query + 1) : NULL;
    return named ? named->sql : query;
}

static int use_cache(struct session *session)
{
    const struct request *request = session->request;
    const struct window *w = &request->window;
    char variant[400];
    (void)snprintf(variant, sizeof variant, "%s %s %d%" PRId64 " %d%" PRId64 " %d", TRAIL_VERSION,
                   version_commit, w->has_from, w->from_ns, w->has_to, w->to_ns, request->repair);
    return sql_cache_use(&session->cache, &session->tables, sql_of(request->query), variant,
                         request->duckdb.files);
}

/* MARK: The session */

/* Reports files that cannot be opened once, not for each query; queries run on the others. */
static int open_inputs(struct session *session)
{
    struct traces *traces = &session->tables.traces;
    const struct request *request = session->request;
    trail_error err = no_error();
    traces->inputs = calloc(request->file_count + 1, sizeof *traces->inputs);
    session->files = calloc(request->file_count + 1, sizeof *session->files);
    traces->files = session->files;
    if (!traces->inputs || !session->files)
        return EXIT_INOUT;
    for (size_t i = 0; i < request->file_count; i++) {
        struct input *input = &traces->inputs[traces->count];
        for (size_t j = 0; j < i; j++)
            if (strcmp(request->files[i], request->files[j]) == 0)
                return usage_error(request->command, "%s is given twice", request->files[i]);
        bool good = input_init(input, request->files[i], true, &err) == 0;
        trail_source *source = good ? input_open(input, &err) : NULL;
        trail_reader *reader = source ? trail_reader_open(source, &traces->reader, &err) : NULL;
        trail_reader_close(reader);
        trail_source_close(source);
        if (reader) {
            session->files[traces->count++] = request->files[i];
            continue;
        }
        char word[FOLLOW_UP_SIZE];
        session->unreadable = worse_exit(session->unreadable, print_error(request->files[i], &err));
        if (sql_store_is_folder(request->files[i]))
            print_message("to query a store of 'trail load': trail sql parquet:%s",
                          shell_word(request->files[i], word));
        input_free(input);
    }
    return traces->count > 0 || request->file_count == 0 ? EXIT_GOOD : session->unreadable;
}

static int use_files(struct session *session)
{
    int code = traces_init(&session->tables.traces) ? sql_tables_register(&session->tables)
                                                    : exit_no_memory();
    if (code == EXIT_GOOD && session->request->cache)
        code = use_cache(session);
    return code == EXIT_GOOD ? define(session, put_numbers) : code;
}

static int use_store(struct session *session)
{
    const struct request *request = session->request;
    int code = sql_store_open(&session->duckdb, request->store, request->duckdb.files);
    session->knows_begins = code == EXIT_GOOD;
    return code == EXIT_GOOD ? duckdb_run(&session->duckdb, sql_macro_since_start(true)) : code;
}

static int begin(struct session *session)
{
    struct request *request = session->request;
    struct sql_tables *tables = &session->tables;
    trace_host(session->host);
    *tables = (struct sql_tables){
        .duckdb = &session->duckdb,
        .traces = {.host = request->host ? request->host : session->host,
                   .window = request->window,
                   .reader = {.repair = request->repair, .partial = true, .ahead = true}},
    };
    int code = open_binary(request->binary, &session->symbols, &tables->traces.reader);
    if (code != EXIT_GOOD)
        return code;
    if (session->symbols)
        request->duckdb.threads = 1; /* symbols are looked up by one thread at a time */
    struct duckdb_options options = request->duckdb;
    if (!options.threads && !request->cache && !request->store) {
        /* A file is read by one thread; more threads would only wait for it. */
        long most = sysconf(_SC_NPROCESSORS_ONLN), files = (long)request->file_count;
        options.threads = (unsigned)(files < most ? files : most > 0 ? most : 1);
    }
    options.files |= request->cache || request->store;
    code = open_inputs(session);
    if (code == EXIT_GOOD)
        code = duckdb_begin(&session->duckdb, &options);
    if (code == EXIT_GOOD)
        code = request->store ? use_store(session) : use_files(session);
    if (code == EXIT_GOOD)
        code = sql_views_create(&session->duckdb);
    if (code == EXIT_GOOD)
        code = duckdb_run(&session->duckdb, sql_macros(request->store || tables->traces.count > 1));
    /* From here on, queries cannot change settings that restrict access. */
    return code == EXIT_GOOD ? duckdb_run(&session->duckdb, "SET lock_configuration = true") : code;
}

static void end(struct session *session)
{
    duckdb_end(&session->duckdb);
    sql_cache_end(&session->cache);
    sql_tables_forget(&session->tables);
    traces_free(&session->tables.traces);
    for (size_t i = 0; i < session->tables.traces.count; i++)
        input_free(&session->tables.traces.inputs[i]);
    free(session->tables.traces.inputs);
    free((void *)session->files);
    close_binary(session->symbols);
}

/* MARK: The command line */

static int take_format(void *context, int id, const char *value)
{
    struct request *request = context;
    (void)value;
    request->format = (enum sql_format)id;
    return EXIT_GOOD;
}

/* Whether it is a query rather than a file: @NAME, .schema, or several words that do not name a
 * file. */
static bool is_query(const char *word)
{
    if (*word == '@' || *word == '.')
        return access(word, F_OK) != 0;
    return strpbrk(word, " \n\t") && access(word, F_OK) != 0;
}

/* Takes a store, which replaces all traces. */
static int take_store(struct request *request, struct options *options)
{
    if (options->word_count == 0 || !sql_store_is(options->words[0]))
        return EXIT_GOOD;
    request->store = *options->words++;
    options->word_count--;
    if (request->window.has_from || request->window.has_to || request->host || request->repair ||
        request->binary || request->cache)
        return usage_error(request->command, "--from, --to, --host, --repair, --binary and "
                                             "--cache are for traces, not for what is stored");
    return EXIT_GOOD;
}

static int take_words(struct request *request, const struct options *options)
{
    int count = options->word_count;
    request->files = options->words;
    /* ".schema states" as one word or as two. */
    if (count > 1 && *options->words[count - 2] == '.' && is_query(options->words[count - 2])) {
        (void)snprintf(request->dot, sizeof request->dot, "%s %s", options->words[count - 2],
                       options->words[count - 1]);
        request->query = request->dot;
        count -= 2;
    }
    if (!request->query && count > 0 && is_query(options->words[count - 1]))
        request->query = options->words[--count];
    for (int i = 0; i < count; i++)
        if (is_query(options->words[i]))
            return usage_error(request->command, "one query, as the last argument");
    request->file_count = (size_t)count;
    if (request->cache && request->binary)
        return usage_error(request->command,
                           "--cache cannot be used with --binary, whose program may have changed");
    bool facts = request->query && *request->query == '.';
    if (request->store ? count > 0 : count == 0 && !facts)
        return usage_error(request->command, request->store
                                                 ? "a store cannot be combined with traces"
                                                 : "no trace given");
    for (int i = 0; i < count && !request->query; i++)
        if (strcmp(options->words[i], "-") == 0)
            return usage_error(request->command,
                               "the trace is on stdin: the query must be an argument");
    return EXIT_GOOD;
}

/* Answers requests that need neither a trace nor DuckDB. */
static int answer_facts(const struct request *request)
{
    const char *rest = rest_of(request->query, ".show");
    if (rest) {
        const struct sql_named *named = sql_query_find(rest);
        return named ? (printf("%s;\n", named->sql), EXIT_GOOD) : no_query(rest);
    }
    int code = run_dot(request->query, request->format);
    return code >= 0
               ? code
               : usage_error(request->command, "no command '%s'; .help lists them", request->query);
}

static int answer(struct request *request)
{
    struct session session = {.request = request, .cache = {.folder = -1}};
    if (request->query && *request->query == '.')
        return answer_facts(request);
    if (request->query && *request->query == '@' && !sql_query_find(request->query + 1))
        return no_query(request->query + 1);
    int code = begin(&session);
    if (code == EXIT_GOOD)
        code = request->query ? run_all(&session, request->query) : prompt(&session);
    end(&session);
    return worse_exit(code, session.unreadable);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.command = command};
    struct options options;
    int code = options_each(&options, command, argc, argv, take_format, &request);
    if (code != EXIT_GOOD)
        return code;
    code = window_finish(&request.window, command);
    if (code == EXIT_GOOD)
        code = take_store(&request, &options);
    if (code == EXIT_GOOD)
        code = take_words(&request, &options);
    return code == EXIT_GOOD ? answer(&request) : code;
}

const struct command command_sql = {
    COMMAND_ROW(sql),
    .synopsis = "[options] FILE...|STORE [QUERY]",
    .details =
        "Answers a query over the tables of one or several traces, read straight from the files "
        "by DuckDB, whose library is loaded for it ($TRAIL_DUCKDB, or below "
        "~/.local/share/trail). QUERY is SQL, or @NAME for a query with a name; without one, "
        "queries are read from stdin, at a prompt if that is a terminal. '.tables', '.schema "
        "[TABLE]' and '.queries' list what there is. STORE is what 'trail load' has filled: "
        "parquet:DIR or duckdb:FILE. Queries read the traces, and reach no other files, unless "
        "--allow-files; the files of a store they could also change.",
    .examples = "  trail sql app.trace 'select kind, count(*) from events group by kind'\n"
                "  trail sql parquet:/srv/traces @long-waits\n"
                "  trail sql --from=1.5s --to=+20ms app.trace @states\n"
                "  trail sql --json a.trace b.trace 'select file, max(exec_ns) from goroutines "
                "group by file'\n"
                "  trail sql .schema",
};
