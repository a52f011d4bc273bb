/*
 * Results of queries: as a table for people, as JSON, as CSV.
 */
#ifndef TRAIL_SQL_SHOW_H
#define TRAIL_SQL_SHOW_H

#include "sql/duckdb.h"

enum sql_format { SQL_TABLE, SQL_JSON, SQL_CSV, SQL_CSV_SAFE };

/* Runs one statement and prints what it results in. EXIT_GOOD, or an exit code after telling why
 * not. */
int sql_show(struct duckdb *duckdb, const char *sql, enum sql_format format);

#endif
