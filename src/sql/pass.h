/*
 * All tables of traces in one pass. For each table, a statement that reads it runs in a thread and
 * a connection of its own. Other threads read the traces, each of them once, and queue the rows of
 * all tables as chunks of DuckDB, which the statements take.
 */
#pragma once

#include "sql/scan.h"

/* What becomes of the rows of a table. */
struct sql_use {
    char *sql;        /* reads that table once, completely, and no other */
    const char *then; /* run when all statements have succeeded, in the order of the tables; NULL:
                       * nothing */
};

/*
 * The database should have one thread (duckdb_options.threads): those of the statements suffice.
 * Errors in traces are reported in `tables`, as for queries. Returns EXIT_GOOD, or EXIT_INOUT after
 * a message; transactions of the statements are then rolled back, unless `then` has committed them.
 */
int sql_pass(struct sql_tables *tables, const struct sql_use uses[TRAIL_TABLES]);

/* For the table functions: fills a chunk with these columns of the next rows; none: the end. */
void pass_take(struct sql_pass *pass, trail_table_id id, const uint64_t *columns, size_t count,
               void *chunk);
