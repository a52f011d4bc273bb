/*
 * trail sql on what trail load has stored, parquet:DIR or duckdb:FILE, instead of on traces: the
 * names of the tables mean those of the store, so that views, functions and named queries are the
 * same. As traces there may have equal names, `file` is followed by the trace's ID.
 */
#pragma once

#include "sql/duckdb.h"

/* Whether the word names a store. */
bool sql_store_is(const char *word);

/* Whether the folder is a store of Parquet files. */
bool sql_store_is_folder(const char *folder);

/*
 * Makes the tables, and the macro trail_of of the views. It needs the option `files` of
 * duckdb_begin; afterwards queries read no other files, unless `files`. Returns EXIT_GOOD, or an
 * exit code after a message.
 */
int sql_store_open(struct duckdb *duckdb, const char *word, bool files);
