/* Gives DuckDB the tables of traces. */
#include "sql/tables.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/pass.h"
#include "ui/cli.h"

#define NO_COLUMN "no_column"

/* A scan of one table in one query: distributes the files among threads. Owned by DuckDB. */
struct sql_query {
    struct sql_function *function;
    uint32_t wanted;
    bool counts; /* only the number of events is needed */
    size_t column_count;
    uint64_t *columns; /* column of the table, by column of the output; or none of them */
    atomic_size_t next_file;
};

/* One thread of a query. Owned by DuckDB. */
struct sql_thread {
    struct sql_scan *scan; /* NULL: the next file has to be opened */
    size_t file;
    bool counts; /* its rows have no columns: scan_count */
};

/* MARK: Scanning */

/* Opens the next file that can be opened. Returns false if there is none. */
static bool next_file(struct sql_query *query, struct sql_thread *thread)
{
    struct sql_tables *tables = query->function->tables;
    uint32_t wanted[TRAIL_TABLES] = {0};
    trail_error err = no_error();
    wanted[query->function->id] = query->wanted;
    for (;;) {
        thread->file = atomic_fetch_add_explicit(&query->next_file, 1, memory_order_relaxed);
        struct sql_scan *scan =
            thread->file < tables->traces.count ? calloc(1, sizeof *scan) : NULL;
        if (!scan)
            return false;
        thread->counts = query->counts && scan_open_count(scan, &tables->traces, thread->file);
        if (!thread->counts)
            trace_reading_close(&scan->reading);
        bool good = thread->counts ||
                    trace_reading_open(&scan->reading, &tables->traces, thread->file, wanted, &err);
        pthread_mutex_lock(&tables->traces.lock);
        scan->next = tables->scans;
        tables->scans = scan;
        pthread_mutex_unlock(&tables->traces.lock);
        thread->scan = scan;
        if (good)
            return true;
        traces_report(&tables->traces, thread->file, &err);
    }
}

/* MARK: Rows */

static void give_rows(const struct sql_query *query, const trail_rows *rows, void *chunk)
{
    const struct duckdb *duckdb = query->function->tables->duckdb;
    const trail_table *table = trail_table_get(query->function->id);
    for (size_t i = 0; i < query->column_count; i++) {
        uint64_t column = query->columns[i];
        void *vector = duckdb->data_chunk_get_vector(chunk, i);
        if (column < table->column_count)
            scan_give(duckdb, vector, table->columns[column].cell, &rows->columns[column],
                      rows->count, false);
        else /* no_column, whose cells are bytes */
            memset(duckdb->vector_get_data(vector), 0, rows->count);
    }
    duckdb->data_chunk_set_size(chunk, rows->count);
}

/* Fills a chunk with the next rows of a file. Returns 1, 0 at its end, -1 on an error. */
static int next_rows(const struct sql_query *query, const struct sql_thread *thread, void *chunk,
                     trail_error *err)
{
    trail_rows rows = {0};
    int more = thread->counts ? scan_count(thread->scan, &rows.count, err)
                              : trail_tables_next(thread->scan->reading.tables, &rows, err);
    if (more > 0)
        give_rows(query, &rows, chunk);
    return more;
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
    struct sql_function *function = query->function;
    if (function->tables->pass) {
        pass_take(function->tables->pass, function->id, query->columns, query->column_count, chunk);
        return;
    }
    for (;;) {
        trail_error err = no_error();
        if (!thread->scan && !next_file(query, thread)) {
            library->data_chunk_set_size(chunk, 0);
            return;
        }
        int more = next_rows(query, thread, chunk, &err);
        if (more > 0)
            return;
        if (more < 0)
            traces_report(&query->function->tables->traces, thread->file, &err);
        thread->scan = NULL;
    }
}

/*
 * Declares the columns of a table. DuckDB requests the first column of a function where a query,
 * such as count(*), needs only the number of rows. So that this is known, the first one has no
 * values; the view of the table does not have it.
 */
static void bind(void *info)
{
    const struct sql_function *function = library->bind_get_extra_info(info);
    const trail_table *table = trail_table_get(function->id);
    void *nothing = library->create_logical_type(DUCKDB_TINYINT);
    library->bind_add_result_column(info, NO_COLUMN, nothing);
    library->destroy_logical_type(&nothing);
    for (size_t i = 0; i < table->column_count; i++) {
        void *type = scan_type(library, &table->columns[i]);
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
        query->columns[i] = library->init_get_column_index(info, i) - 1; /* without NO_COLUMN */
        if (query->columns[i] < trail_table_get(function->id)->column_count)
            query->wanted |= 1u << query->columns[i];
    }
    /* count(*) uses no column, but needs the rows: request one that costs nothing. */
    if (query->wanted == 0) {
        const struct window *window = &function->tables->traces.window;
        query->counts = function->id == TRAIL_TABLE_EVENTS && !window->has_from && !window->has_to;
        query->wanted = 1u << (trail_table_get(function->id)->column_count - 2);
    }
    library->init_set_init_data(info, query, query_drop);
    library->init_set_max_threads(info,
                                  function->tables->pass ? 1 : function->tables->traces.count);
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
    (void)snprintf(text, sizeof text,
                   "CREATE VIEW %s AS SELECT * EXCLUDE (" NO_COLUMN ") FROM trail_%s()",
                   table->name, table->name);
    return duckdb_run(duckdb, text);
}

int sql_tables_register(struct sql_tables *tables)
{
    library = tables->duckdb;
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
        trace_reading_close(&scan->reading);
        free(scan);
    }
}
