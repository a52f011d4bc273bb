/* See sql_cache.h. */
#include "commands/sql_cache.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "commands/table_parquet.h"
#include "sql/queries.h"
#include "sql/views.h"
#include "ui/cache_folder.h"
#include "ui/cli.h"
#include "ui/show.h"

/* The use of a cache by a query. */
struct use {
    struct sql_tables *tables;
    const char *query;
    int folder;
    uint64_t hash;
    bool taken[TRAIL_TABLES]; /* queries read its file */
};

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return hash_mix(hash, hash_bytes(text, strlen(text)));
}

static bool hash_traces(struct use *use, const char *variant)
{
    struct traces *traces = &use->tables->traces;
    use->hash = mix_text(0, variant);
    for (size_t i = 0; i < traces->count; i++) {
        input_trace_id(&traces->inputs[i], traces->host, traces->ids[i]);
        use->hash = mix_text(mix_text(use->hash, traces->files[i]), traces->ids[i]);
    }
    return show_is_whole();
}

/* By its descriptor, as others may replace what leads to the folder. NULL: out of memory. */
static char *path_of(const struct use *use, int table)
{
    char *path = NULL;
    return asprintf(&path, "/proc/self/fd/%d/%016" PRIx64 "-%s.parquet", use->folder, use->hash,
                    trail_table_get((trail_table_id)table)->name) < 0
               ? NULL
               : path;
}

/* MARK: What a query needs */

/* Whether the text contains the word, in any case. */
static bool has_word(const char *text, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = text; (at = strcasestr(at, word)); at++) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        if (begins && !(isalnum((unsigned char)at[size]) || at[size] == '_'))
            return true;
    }
    return false;
}

/*
 * Whether the query reads the table: itself, through a view or through a macro. A view uses only
 * those above it. A table that is missed is read from the traces.
 */
static bool names(const char *query, const char *table)
{
    if (!query || has_word(query, table))
        return true;
    if (strcmp(table, "frames") == 0 && (strcasestr(query, "stack(") || strcasestr(query, "path(")))
        return true;
    if (strcmp(table, "traces") == 0 && has_word(query, "wall_ns"))
        return true;
    for (const struct sql_named *view = sql_views; view->name && view->sql != query; view++)
        if (has_word(query, view->name) && names(view->sql, table))
            return true;
    return false;
}

static bool needs(const struct use *use, int table)
{
    return names(use->query, trail_table_get((trail_table_id)table)->name);
}

/* MARK: Tables */

/* Writes the type that the column has as a table of traces; in the file it is text. */
static void put_enum(FILE *to, const trail_table_column *column)
{
    fprintf(to, "\"%s\"::ENUM(", column->name);
    for (size_t i = 0; column->words[i]; i++) {
        fputs(i > 0 ? ", " : "", to);
        sql_put_text(to, column->words[i]);
    }
    fprintf(to, ") AS \"%s\"", column->name);
}

/* Returns the statement that makes the name of a table mean its file; NULL: out of memory. */
static char *view_of(const trail_table *table, const char *path)
{
    char *sql = NULL;
    size_t size = 0;
    const char *before = " REPLACE (";
    FILE *to = open_memstream(&sql, &size);
    if (!to)
        return NULL;
    fprintf(to, "CREATE OR REPLACE VIEW %s AS SELECT *", table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].cell != TRAIL_CELL_ENUM)
            continue;
        fputs(before, to);
        put_enum(to, &table->columns[i]);
        before = ", ";
    }
    fputs(*before == ',' ? ") FROM read_parquet(" : " FROM read_parquet(", to);
    sql_put_text(to, path);
    fputs(")", to);
    if (fclose(to) == 0)
        return sql;
    free(sql);
    return NULL;
}

static bool try_run(struct duckdb *duckdb, const char *sql)
{
    duckdb_result result;
    bool good = sql && duckdb->query(duckdb->connection, sql, &result) == 0;
    if (sql)
        duckdb->destroy_result(&result);
    return good;
}

/* Returns false if the cache has no such table, or its file is damaged. */
static bool take_table(struct use *use, int table)
{
    char *path = path_of(use, table);
    char *sql = path && access(path, F_OK) == 0
                    ? view_of(trail_table_get((trail_table_id)table), path)
                    : NULL;
    use->taken[table] =
        try_run(use->tables->duckdb, sql) && utimensat(AT_FDCWD, path, NULL, 0) == 0;
    free(sql);
    free(path);
    return use->taken[table];
}

/* Opens the file of a table with all columns, to be written once: queries may not change it. */
static int open_table(const struct use *use, struct table_parquet *to, int table)
{
    int code = table_parquet_open(to, table, TRAIL_ALL_COLUMNS, path_of(use, table), false);
    if (code == EXIT_GOOD)
        (void)fchmod(to->files.outputs[table].fd, 0400);
    return code;
}

/* Takes the tables that the query needs, after adding those that are not there. Those that cannot
 * be written are read from the traces. */
static void take_tables(struct use *use)
{
    struct traces *traces = &use->tables->traces;
    struct table_parquet to = {0};
    bool lacks[TRAIL_TABLES] = {false}, any = false;
    int code = EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        lacks[i] = needs(use, i) && !take_table(use, i);
        any |= lacks[i];
        code = lacks[i] ? open_table(use, &to, i) : EXIT_GOOD;
    }
    if (!any)
        return;
    code = table_parquet_write(&to, traces, true, code);
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++)
        if (lacks[i] && !take_table(use, i))
            code = EXIT_INOUT;
    if (code != EXIT_GOOD && traces->code == EXIT_GOOD)
        print_message("cannot write the cache: reading the traces instead");
}

/* Lets queries reach the files that they read, and no others. */
static int allow_files(const struct use *use)
{
    char *sql = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&sql, &size);
    if (!to)
        return exit_no_memory();
    const char *before = "SET allowed_paths = [";
    for (int i = 0; i < TRAIL_TABLES; i++) {
        char *path = use->taken[i] ? path_of(use, i) : NULL;
        if (!path)
            continue;
        fputs(before, to);
        sql_put_text(to, path);
        before = ", ";
        free(path);
    }
    fputs(*before == ',' ? "]; " : "", to);
    fputs("SET enable_external_access = false", to);
    int code = fclose(to) == 0 ? duckdb_run(use->tables->duckdb, sql) : exit_no_memory();
    free(sql);
    return code;
}

int sql_cache_use(struct sql_cache *cache, struct sql_tables *tables, const char *query,
                  const char *variant, bool files)
{
    int code = cache_folder_open("sql", &cache->folder);
    struct use use = {.tables = tables, .query = query, .folder = cache->folder};
    if (code == EXIT_GOOD && !hash_traces(&use, variant))
        code = exit_no_memory();
    if (code != EXIT_GOOD)
        return code;
    take_tables(&use);
    return files ? EXIT_GOOD : allow_files(&use);
}

void sql_cache_end(struct sql_cache *cache)
{
    if (cache->folder >= 0)
        cache_folder_close(cache->folder);
}
