/*
 * The tables of traces that were asked before, kept as a database of DuckDB in the user's cache
 * folder. Its name is a hash of the contents of the traces and of all else that makes their rows,
 * so that it is never out of date.
 */
#pragma once

#include "sql/tables.h"

/*
 * Makes queries read the tables that `query` names (NULL: all tables) from the cache, after adding
 * those that it lacks. Call it after sql_tables_register and before the views are made; it needs
 * the option `files` of duckdb_begin. `variant` names whatever makes the rows besides the traces,
 * their names and tables->traces.host. Damaged traces are read as without a cache, as all are if it
 * cannot be written. Returns EXIT_GOOD, or an exit code after a message.
 */
int sql_cache_use(struct sql_tables *tables, const char *query, const char *variant);
