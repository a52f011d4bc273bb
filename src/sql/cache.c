/* See cache.h. */
#include "sql/cache.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "sql/queries.h"
#include "sql/views.h"
#include "ui/cache_folder.h"
#include "ui/cli.h"
#include "ui/show.h"

struct place {
    int folder;
    char file[64]; /* the path of the database in it */
};

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return hash_mix(hash, hash_bytes(text, strlen(text)));
}

static bool name_file(struct place *place, struct sql_tables *tables, const char *variant)
{
    uint64_t hash = mix_text(0, variant);
    for (size_t i = 0; i < tables->traces.count; i++) {
        input_trace_id(&tables->traces.inputs[i], tables->traces.host, tables->traces.ids[i]);
        hash = mix_text(mix_text(hash, tables->traces.files[i]), tables->traces.ids[i]);
    }
    (void)snprintf(place->file, sizeof place->file, "/proc/self/fd/%d/%016" PRIx64 ".db",
                   place->folder, hash);
    return show_is_whole();
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
static bool needs(const char *query, const char *table)
{
    if (!query || has_word(query, table))
        return true;
    if (strcmp(table, "frames") == 0 && (strcasestr(query, "stack(") || strcasestr(query, "path(")))
        return true;
    if (strcmp(table, "traces") == 0 && has_word(query, "wall_ns"))
        return true;
    for (const struct sql_named *view = sql_views; view->name && view->sql != query; view++)
        if (has_word(query, view->name) && needs(view->sql, table))
            return true;
    return false;
}

/* MARK: The database */

static bool try_run(struct duckdb *duckdb, const char *sql)
{
    duckdb_result result;
    bool good = duckdb->query(duckdb->connection, sql, &result) == 0;
    duckdb->destroy_result(&result);
    return good;
}

static bool attach(struct duckdb *duckdb, const char *file)
{
    char *sql = sql_statement_with("ATTACH ", file, " AS trail_cache (READ_ONLY)");
    bool good = sql && try_run(duckdb, sql);
    free(sql);
    return good;
}

/* False after a message. */
static bool attach_to_write(struct duckdb *duckdb, const char *file)
{
    char *sql = sql_statement_with("ATTACH ", file, " AS trail_cache");
    bool good = sql && duckdb_run(duckdb, sql) == EXIT_GOOD;
    free(sql);
    if (!good)
        print_message("the cache cannot be written: the traces are read");
    return good;
}

/* Makes the name of a table mean the one in the cache. Returns false if the cache has none. */
static bool take_table(struct duckdb *duckdb, const char *table)
{
    char sql[200];
    (void)snprintf(sql, sizeof sql, "CREATE OR REPLACE VIEW %s AS FROM trail_cache.%s", table,
                   table);
    return try_run(duckdb, sql);
}

/* Makes the query read the tables that it needs there; none of them if one is missing. */
static bool take_tables(struct duckdb *duckdb, const char *query)
{
    bool good = try_run(duckdb, "BEGIN");
    for (int i = 0; i < TRAIL_TABLES && good; i++) {
        const char *table = trail_table_get((trail_table_id)i)->name;
        good = !needs(query, table) || take_table(duckdb, table);
    }
    return try_run(duckdb, good ? "COMMIT" : "ROLLBACK") && good;
}

/* Adds those that are not there, in one transaction. False after a message: an error, or a damaged
 * trace. */
static bool add_tables(struct sql_tables *tables, const char *query)
{
    char sql[200];
    bool good = try_run(tables->duckdb, "BEGIN");
    for (int i = 0; i < TRAIL_TABLES && good; i++) {
        const char *table = trail_table_get((trail_table_id)i)->name;
        if (!needs(query, table))
            continue;
        (void)snprintf(sql, sizeof sql, "CREATE TABLE IF NOT EXISTS trail_cache.%s AS FROM %s",
                       table, table);
        good = duckdb_run(tables->duckdb, sql) == EXIT_GOOD && tables->traces.code == EXIT_GOOD;
        sql_tables_forget(tables);
    }
    return try_run(tables->duckdb, good ? "COMMIT" : "ROLLBACK") && good;
}

/* Returns false if the traces must be read instead. */
static bool fill(struct sql_tables *tables, const char *file, const char *query)
{
    if (!attach_to_write(tables->duckdb, file))
        return false;
    bool good = add_tables(tables, query);
    return try_run(tables->duckdb, "DETACH trail_cache") && good && attach(tables->duckdb, file) &&
           take_tables(tables->duckdb, query);
}

int sql_cache_use(struct sql_tables *tables, const char *query, const char *variant)
{
    struct place place = {.folder = -1};
    int code = cache_folder_open("sql", &place.folder);
    if (code == EXIT_GOOD && !name_file(&place, tables, variant))
        code = exit_no_memory();
    if (code == EXIT_GOOD) {
        bool there = attach(tables->duckdb, place.file);
        if (there && !take_tables(tables->duckdb, query))
            there = !try_run(tables->duckdb, "DETACH trail_cache");
        if (there || fill(tables, place.file, query))
            (void)utimensat(AT_FDCWD, place.file, NULL, 0);
    }
    if (place.folder >= 0)
        cache_folder_close(place.folder);
    return code;
}
