/* Views over the tables of traces, which queries use like tables. */
#pragma once

#include "sql/duckdb.h"
#include "sql/queries.h"

/* The text is the body of a CREATE VIEW. Each view uses only those above it. Ends with a row
 * without a name. */
extern const struct sql_named sql_views[];

/* Returns an exit code; errors are printed. */
int sql_views_create(struct duckdb *duckdb);
