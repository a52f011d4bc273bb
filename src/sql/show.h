/* Prints the results of queries as a table, JSON or CSV. */
#pragma once

#include "sql/duckdb.h"

enum sql_format { SQL_TABLE, SQL_JSON, SQL_CSV, SQL_CSV_SAFE };

/*
 * Runs one statement and prints its result if `shown`. Returns EXIT_GOOD, or prints an error and
 * returns an exit code.
 */
int sql_show(struct duckdb *duckdb, const char *sql, enum sql_format format, bool shown);
