/*
 * The tables over traces as DuckDB table functions. Each query reads the files again, in one pass
 * for each table it uses, and computes only the columns it uses. pass.h reads them once for all
 * tables.
 */
#pragma once

#include "sql/scan.h"

/* Registers all tables. Returns EXIT_GOOD, or prints an error and returns an exit code. */
int sql_tables_register(struct sql_tables *tables);

/*
 * Call it after a result has been dropped, and at the end: frees the texts that results may have
 * referred to.
 */
void sql_tables_forget(struct sql_tables *tables);
