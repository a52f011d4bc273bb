/* Gives DuckDB the tables of traces. */
#include "sql/tables.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/part_name.h"
#include "ui/cli.h"
#include "ui/show.h"

/* A scan of one table in one query: distributes the files among threads. Owned by DuckDB. */
struct sql_query {
    struct sql_function *function;
    uint32_t wanted;
    size_t column_count;
    uint64_t *columns; /* column of the table, by column of the output */
    atomic_size_t next_file;
};

/* One thread's reading of one file. Kept until the result is dropped, because it owns the result's
 * texts, unless these are copied. */
struct sql_scan {
    struct sql_scan *next;
    trail_source *source;
    trail_reader *reader;
    trail_tables *tables;
};

/* One thread of a query. Owned by DuckDB. */
struct sql_thread {
    struct sql_scan *scan; /* NULL: the next file has to be opened */
    size_t file;
};

/* MARK: The day */

/* Returns the wall clock at the first Sync of a v2 trace; 0: none; -1: *err is set. */
static int64_t wall_clock(trail_source *source, trail_error *err)
{
    const trail_event *events;
    int64_t seconds = 0;
    trail_clock_snapshot clocks;
    trail_reader *reader = trail_reader_open(source, NULL, err);
    if (!reader)
        return -1;
    if (trail_version_is_v2(trail_reader_version(reader))) {
        long count = trail_reader_next_batch(reader, &events);
        if (count == 1 && events[0].kind == TRAIL_SYNC && events[0].sync.final)
            count = trail_reader_next_batch(reader, &events); /* an error may follow it */
        if (count < 0) {
            *err = *trail_reader_error(reader);
            seconds = -1;
        }
        for (long i = 0; i < count && seconds == 0; i++)
            if (trail_reader_wall_clock(reader, &events[i], &clocks))
                seconds = clocks.wall_s;
    }
    trail_reader_close(reader);
    return seconds;
}

int32_t trace_day(struct input *input)
{
    trail_error err;
    struct stat file;
    struct part_name part;
    const char *path = part_name_parse(input->word, &part) ? part.file : input->word;
    trail_source *source = input_open(input, &err);
    int64_t seconds = source ? wall_clock(source, &err) : 0;
    if ((!source || seconds < 0) && err.code == TRAIL_NO_MEMORY)
        show_lacks();
    trail_source_close(source);
    if (seconds <= 0)
        seconds = !input->data && stat(path, &file) == 0 ? file.st_mtime : time(NULL);
    return (int32_t)(seconds / 86400);
}

void trace_host(char host[TRACE_HOST_SIZE])
{
    if (gethostname(host, TRACE_HOST_SIZE) < 0)
        host[0] = '\0';
    host[TRACE_HOST_SIZE - 1] = '\0';
}

int trace_host_find(const struct command *command, const char **host, char own[TRACE_HOST_SIZE])
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (!*host) {
        trace_host(own);
        *host = own;
    }
    size_t size = strlen(*host);
    if (size == 0 || **host == '.' || strspn(*host, letters) != size)
        return usage_error(command, "--host is letters, digits, '.', '_' and '-', not '%s'", *host);
    return EXIT_GOOD;
}

/* MARK: Scanning */

static void scan_close(struct sql_scan *scan)
{
    trail_tables_close(scan->tables);
    trail_reader_close(scan->reader);
    trail_source_close(scan->source);
    *scan = (struct sql_scan){.next = scan->next};
}

/* Reports an error in a file, but only once per file. */
static void report_once(struct sql_tables *tables, size_t file, const trail_error *err)
{
    pthread_mutex_lock(&tables->lock);
    if (!tables->reported[file])
        tables->code = worse_exit(tables->code, print_error(tables->inputs[file].word, err));
    tables->reported[file] = true;
    pthread_mutex_unlock(&tables->lock);
}

/* IDs need a complete pass over every trace, so they are computed when a query first uses one. */
static void find_ids(struct sql_tables *tables)
{
    pthread_mutex_lock(&tables->lock);
    for (size_t i = 0; i < tables->count && !*tables->ids[i]; i++)
        input_trace_id(&tables->inputs[i], tables->host, tables->ids[i]);
    pthread_mutex_unlock(&tables->lock);
}

/* Whether no earlier file has the same ID: a trace given twice would be joined with itself. */
static bool is_first(const struct sql_tables *tables, size_t file, trail_error *err)
{
    size_t first = 0;
    while (strcmp(tables->ids[first], tables->ids[file]) != 0)
        first++;
    if (first == file)
        return true;
    *err = no_error();
    err->code = TRAIL_USAGE;
    (void)snprintf(err->message, sizeof err->message, "the same trace as %s; it is left out",
                   tables->inputs[first].word);
    return false;
}

static bool scan_open_tables(struct sql_scan *scan, const struct sql_query *query, size_t file,
                             trail_error *err)
{
    const struct sql_function *function = query->function;
    struct sql_tables *tables = function->tables;
    const trail_table *table = trail_table_get(function->id);
    uint32_t wants_day = 1u << (table->column_count - 1);
    uint32_t wants_id = 1u << (table->column_count - TRAIL_TABLE_COMMON);
    if ((query->wanted & wants_id) != 0) {
        find_ids(tables);
        if (!is_first(tables, file, err))
            return false;
    }
    trail_tables_options options = {
        .trace = tables->ids[file],
        .file = tables->files[file],
        .host = tables->host,
        .day = tables->day,
        .has_from = tables->window.has_from,
        .has_to = tables->window.has_to,
        .from_ns = tables->window.from_ns,
        .to_ns = tables->window.to_ns,
    };
    options.wanted[function->id] = query->wanted;
    if (!tables->has_day && (query->wanted & wants_day) != 0)
        options.day = trace_day(&tables->inputs[file]);
    scan->source = input_open(&tables->inputs[file], err);
    if (!scan->source)
        return false;
    scan->reader = trail_reader_open(scan->source, &tables->reader, err);
    if (!scan->reader)
        return false;
    scan->tables = trail_tables_open(scan->reader, &options, err);
    return scan->tables != NULL;
}

/* Opens the next file that can be opened. Returns false if there is none. */
static bool next_file(struct sql_query *query, struct sql_thread *thread)
{
    struct sql_tables *tables = query->function->tables;
    trail_error err = no_error();
    for (;;) {
        thread->file = atomic_fetch_add_explicit(&query->next_file, 1, memory_order_relaxed);
        struct sql_scan *scan = thread->file < tables->count ? calloc(1, sizeof *scan) : NULL;
        if (!scan)
            return false;
        bool good = scan_open_tables(scan, query, thread->file, &err);
        pthread_mutex_lock(&tables->lock);
        scan->next = tables->scans;
        tables->scans = scan;
        pthread_mutex_unlock(&tables->lock);
        thread->scan = scan;
        if (good)
            return true;
        report_once(tables, thread->file, &err);
    }
}

/* MARK: Rows */

static void give_texts(const struct sql_tables *tables, void *vector, const trail_values *values,
                       size_t count)
{
    const struct duckdb *duckdb = tables->duckdb;
    duckdb_text *to = duckdb->vector_get_data(vector);
    const trail_string *from = values->text;
    for (size_t i = 0; i < count; i++) {
        if (from[i].size <= DUCKDB_INLINE_TEXT) {
            to[i] = (duckdb_text){.size = (uint32_t)from[i].size};
            if (from[i].size > 0) /* the data of an empty text may be NULL */
                memcpy(to[i].start, from[i].data, from[i].size);
        } else if (tables->closes || values->passes || from[i].size > UINT32_MAX) {
            duckdb->vector_assign_string_element_len(vector, i, from[i].data, from[i].size);
        } else {
            to[i].size = (uint32_t)from[i].size;
            memcpy(to[i].start, from[i].data, sizeof to[i].start);
            to[i].data = from[i].data;
        }
    }
}

static void give_column(const struct sql_tables *tables, void *vector, trail_cell cell,
                        const trail_values *values, size_t count)
{
    const struct duckdb *duckdb = tables->duckdb;
    size_t size = cell == TRAIL_CELL_I64                              ? 8
                  : cell == TRAIL_CELL_I32 || cell == TRAIL_CELL_DATE ? 4
                                                                      : 1;
    if (cell == TRAIL_CELL_TEXT)
        give_texts(tables, vector, values, count);
    else
        memcpy(duckdb->vector_get_data(vector), values->any, count * size);
    if (!values->valid)
        return;
    duckdb->vector_ensure_validity_writable(vector);
    memcpy(duckdb->vector_get_validity(vector), values->valid, (count + 63) / 64 * 8);
}

static void give_rows(const struct sql_query *query, const trail_rows *rows, void *chunk)
{
    const struct sql_tables *tables = query->function->tables;
    const struct duckdb *duckdb = tables->duckdb;
    const trail_table *table = trail_table_get(query->function->id);
    for (size_t i = 0; i < query->column_count; i++) {
        uint64_t column = query->columns[i];
        if (column < table->column_count)
            give_column(tables, duckdb->data_chunk_get_vector(chunk, i),
                        table->columns[column].cell, &rows->columns[column], rows->count);
    }
    duckdb->data_chunk_set_size(chunk, rows->count);
}

/* MARK: Callbacks of DuckDB */

/*
 * The callbacks get a handle that only DuckDB's functions can read, and those are known only
 * through this pointer, so it cannot be passed as an argument. Set before the first callback.
 */
static const struct duckdb *library;

/* Fills a chunk with the next rows; an empty chunk marks the end. */
static void fill(void *info, void *chunk)
{
    struct sql_query *query = library->function_get_init_data(info);
    struct sql_thread *thread = library->function_get_local_init_data(info);
    for (;;) {
        trail_rows rows;
        trail_error err = no_error();
        if (!thread->scan && !next_file(query, thread)) {
            library->data_chunk_set_size(chunk, 0);
            return;
        }
        int more = trail_tables_next(thread->scan->tables, &rows, &err);
        if (more > 0) {
            give_rows(query, &rows, chunk);
            return;
        }
        if (more < 0)
            report_once(query->function->tables, thread->file, &err);
        if (query->function->tables->closes)
            scan_close(thread->scan);
        thread->scan = NULL;
    }
}

static void *type_of(const trail_table_column *column)
{
    static const int types[] = {
        [TRAIL_CELL_I64] = DUCKDB_BIGINT,   [TRAIL_CELL_I32] = DUCKDB_INTEGER,
        [TRAIL_CELL_BOOL] = DUCKDB_BOOLEAN, [TRAIL_CELL_TEXT] = DUCKDB_VARCHAR,
        [TRAIL_CELL_DATE] = DUCKDB_DATE,
    };
    const char *words[256];
    uint64_t count = 0;
    if (column->cell != TRAIL_CELL_ENUM)
        return library->create_logical_type(types[column->cell]);
    for (; column->words[count]; count++)
        words[count] = column->words[count];
    return library->create_enum_type(words, count);
}

/* Declares the columns of a table. */
static void bind(void *info)
{
    const struct sql_function *function = library->bind_get_extra_info(info);
    const trail_table *table = trail_table_get(function->id);
    for (size_t i = 0; i < table->column_count; i++) {
        void *type = type_of(&table->columns[i]);
        library->bind_add_result_column(info, table->columns[i].name, type);
        library->destroy_logical_type(&type);
    }
}

static void query_drop(void *data)
{
    struct sql_query *query = data;
    free(query->columns);
    free(query);
}

/* Called when a query begins: determines the columns it uses. */
static void init(void *info)
{
    struct sql_function *function = library->init_get_extra_info(info);
    struct sql_query *query = calloc(1, sizeof *query);
    size_t count = (size_t)library->init_get_column_count(info);
    if (query)
        query->columns = calloc(count + 1, sizeof *query->columns);
    if (!query || !query->columns) {
        library->init_set_error(info, "no memory for the query");
        free(query);
        return;
    }
    query->function = function;
    query->column_count = count;
    for (size_t i = 0; i < count; i++) {
        query->columns[i] = library->init_get_column_index(info, i);
        if (query->columns[i] < trail_table_get(function->id)->column_count)
            query->wanted |= 1u << query->columns[i];
    }
    /* count(*) uses no column, but needs the rows: request one that costs nothing. */
    if (query->wanted == 0)
        query->wanted = 1u << (trail_table_get(function->id)->column_count - 2);
    library->init_set_init_data(info, query, query_drop);
    library->init_set_max_threads(info, function->tables->count);
}

static void init_thread(void *info)
{
    struct sql_thread *thread = calloc(1, sizeof *thread);
    if (thread)
        library->init_set_init_data(info, thread, free);
    else
        library->init_set_error(info, "no memory for the query");
}

/* MARK: Registering */

static int register_table(struct sql_tables *tables, trail_table_id id)
{
    char text[256];
    const trail_table *table = trail_table_get(id);
    struct duckdb *duckdb = tables->duckdb;
    void *function = duckdb->create_table_function();
    tables->functions[id] = (struct sql_function){tables, id};
    (void)snprintf(text, sizeof text, "trail_%s", table->name);
    duckdb->table_function_set_name(function, text);
    duckdb->table_function_set_extra_info(function, &tables->functions[id], NULL);
    duckdb->table_function_set_bind(function, bind);
    duckdb->table_function_set_init(function, init);
    duckdb->table_function_set_local_init(function, init_thread);
    duckdb->table_function_set_function(function, fill);
    duckdb->table_function_supports_projection_pushdown(function, true);
    int failed = duckdb->register_table_function(duckdb->connection, function);
    duckdb->destroy_table_function(&function);
    if (failed != 0) {
        print_message("DuckDB does not accept the table %s", table->name);
        return EXIT_INOUT;
    }
    (void)snprintf(text, sizeof text, "CREATE VIEW %s AS SELECT * FROM trail_%s()", table->name,
                   table->name);
    return duckdb_run(duckdb, text);
}

int sql_tables_register(struct sql_tables *tables)
{
    library = tables->duckdb;
    pthread_mutex_init(&tables->lock, NULL);
    tables->reported = calloc(tables->count + 1, sizeof *tables->reported);
    tables->ids = calloc(tables->count + 1, sizeof *tables->ids);
    if (!tables->reported || !tables->ids)
        return EXIT_INOUT;
    if (library->vector_size() < TRAIL_TABLE_ROWS) {
        print_message("this libduckdb.so takes fewer rows at a time than are made");
        return EXIT_INOUT;
    }
    for (int i = 0; i < TRAIL_TABLES; i++) {
        int code = register_table(tables, (trail_table_id)i);
        if (code != EXIT_GOOD)
            return code;
    }
    return EXIT_GOOD;
}

void sql_tables_forget(struct sql_tables *tables)
{
    while (tables->scans) {
        struct sql_scan *scan = tables->scans;
        tables->scans = scan->next;
        scan_close(scan);
        free(scan);
    }
}

void sql_tables_free(struct sql_tables *tables)
{
    sql_tables_forget(tables);
    if (tables->reported)
        pthread_mutex_destroy(&tables->lock);
    free(tables->reported);
    free((void *)tables->ids);
}
