/* See sql_store.h. */
#include "commands/sql_store.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <trail/tables.h>

#include "commands/load_store.h"
#include "ui/cli.h"
#include "ui/folder_files.h"

/* Frees the statement. */
static int run_made(struct duckdb *duckdb, char *sql)
{
    int code = sql ? duckdb_run(duckdb, sql) : exit_no_memory();
    free(sql);
    return code;
}

/* The definition of each table begins so. */
#define VIEW "CREATE VIEW %s AS SELECT * REPLACE (file || '-' || trace AS file) FROM "

/* Lets queries use the folder. DuckDB checks patterns as they are written, and each file that they
 * match. */
static int allow_folder(struct duckdb *duckdb, const char *folder)
{
    char *pattern = load_pattern_in(folder, "");
    char *before = sql_statement_with("SET allowed_directories = [", folder, ", ");
    char *sql = pattern && before ? sql_statement_with(before, pattern, "]") : NULL;
    free(pattern);
    free(before);
    return run_made(duckdb, sql);
}

static int open_parquet(struct duckdb *duckdb, const char *folder)
{
    int code = EXIT_GOOD;
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        const char *table = trail_table_get((trail_table_id)i)->name;
        char before[160], rest[80];
        (void)snprintf(before, sizeof before, VIEW "read_parquet(", table);
        (void)snprintf(rest, sizeof rest, "/%s/host=*/day=*/*.parquet", table);
        char *pattern = load_pattern_in(folder, rest);
        code =
            run_made(duckdb, pattern ? sql_statement_with(before, pattern,
                                                          ", union_by_name = true"
                                                          ", hive_partitioning = true, hive_types"
                                                          " = {'host': VARCHAR, 'day': DATE})")
                                     : NULL);
        free(pattern);
    }
    return code == EXIT_GOOD ? allow_folder(duckdb, folder) : code;
}

/* The tables of a batch are committed one after the other (load_stores.c). */
static void warn_unfinished(struct duckdb *duckdb, const char *file)
{
    duckdb_result result;
    void *chunk = NULL;
    if (duckdb->query(duckdb->connection,
                      "FROM duckdb_tables() WHERE database_name = 'trail_store'"
                      " AND table_name = '" LOAD_UNFINISHED "'",
                      &result) == 0)
        chunk = duckdb->fetch_chunk(result);
    if (chunk && duckdb->data_chunk_get_size(chunk) > 0)
        print_message("%s: its last batch is incomplete; 'trail load --to=duckdb:%s TRACE...' "
                      "removes it",
                      file, file);
    if (chunk)
        duckdb->destroy_data_chunk(&chunk);
    duckdb->destroy_result(&result);
}

static int open_duckdb(struct duckdb *duckdb, const char *file)
{
    int code = run_made(duckdb, sql_statement_with("ATTACH ", file, " AS trail_store (READ_ONLY)"));
    for (int i = 0; i < TRAIL_TABLES && code == EXIT_GOOD; i++) {
        const char *table = trail_table_get((trail_table_id)i)->name;
        char sql[160];
        (void)snprintf(sql, sizeof sql, VIEW "trail_store.%s", table, table);
        code = duckdb_run(duckdb, sql);
    }
    if (code == EXIT_GOOD)
        warn_unfinished(duckdb, file);
    return code;
}

bool sql_store_is_folder(const char *folder)
{
    char path[PATH_MAX];
    return (size_t)snprintf(path, sizeof path, "%s/traces", folder) < sizeof path &&
           is_folder(path);
}

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static const struct store {
    const char *prefix;
    bool (*is_there)(const char *place);
    int (*open)(struct duckdb *duckdb, const char *place);
} stores[] = {
    {"parquet:", sql_store_is_folder, open_parquet}, {"duckdb:", is_file, open_duckdb}, {0}};

static const struct store *find(const char *word)
{
    for (const struct store *store = stores; store->prefix; store++)
        if (strncmp(word, store->prefix, strlen(store->prefix)) == 0)
            return store;
    return NULL;
}

bool sql_store_is(const char *word)
{
    return find(word) != NULL;
}

/* As of several traces on the command line, in the order of their names. */
static const char numbers[] =
    "CREATE MACRO trail_of(number, of_file) AS number + (list_position("
    "(SELECT list(file ORDER BY file) FROM traces), of_file) - 1) * 1099511627776;"
    "CREATE TEMP TABLE trail_begins AS SELECT file, begin_ns AS ns FROM traces";

int sql_store_open(struct duckdb *duckdb, const char *word, bool files)
{
    const struct store *store = find(word);
    const char *place = word + strlen(store->prefix);
    if (!store->is_there(place)) {
        print_message("%s: there is no store of 'trail load'", word);
        return EXIT_INOUT;
    }
    int code = store->open(duckdb, place);
    if (code == EXIT_GOOD)
        code = duckdb_run(duckdb, numbers);
    return code == EXIT_GOOD && !files ? duckdb_run(duckdb, "SET enable_external_access = false")
                                       : code;
}
