/* Views over the tables of traces, which queries use as they use tables. */
#ifndef TRAIL_SQL_VIEWS_H
#define TRAIL_SQL_VIEWS_H

#include "sql/duckdb.h"
#include "sql/queries.h"

/* The text is what CREATE VIEW takes. Each uses only those above it. Ends with a row without a
 * name. */
extern const struct sql_named sql_views[];

/* Returns an exit code; errors are printed. */
int sql_views_create(struct duckdb *duckdb);

#endif
