/*
 * The tables of traces that were asked before, kept as Parquet files in the user's cache folder.
 * Their names begin with a hash of the contents of the traces and of all else that makes their
 * rows, so that they are never out of date.
 */
#pragma once

#include "sql/tables.h"

struct sql_cache {
    int folder; /* -1: not open, as the caller sets it at first */
};

/*
 * Makes queries read the tables that `query` names (NULL: all tables) from the cache, after adding
 * those that it lacks. Call it after sql_tables_register and before the views are made; it needs
 * the option `files` of duckdb_begin. `variant` names whatever makes the rows besides the traces,
 * their names and tables->traces.host. Damaged traces are read as without a cache, as all are if it
 * cannot be written. Afterwards queries read no other files, unless `files`. Returns EXIT_GOOD, or
 * an exit code after a message.
 */
int sql_cache_use(struct sql_cache *cache, struct sql_tables *tables, const char *query,
                  const char *variant, bool files);

/* Call it after the last query. */
void sql_cache_end(struct sql_cache *cache);
