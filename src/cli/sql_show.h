/*
 * Results of queries: as a table for people, as JSON, as CSV.
 */
#ifndef TRAIL_CLI_SQL_SHOW_H
#define TRAIL_CLI_SQL_SHOW_H

#include "cli/duckdb.h"

enum sql_format { SQL_TABLE, SQL_JSON, SQL_CSV };

/* Runs one statement and prints what it results in. EXIT_GOOD, or an exit code after telling why
 * not. */
int sql_show(struct duckdb *duckdb, const char *sql, enum sql_format format);

#endif
