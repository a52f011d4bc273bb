/*
 * All tables of traces in one pass. For each table, a statement that reads it runs in a thread and
 * a connection of its own. Other threads read the traces, each of them once, and queue copies of
 * the rows of all tables, which the statements take.
 */
#pragma once

#include "sql/scan.h"

/* What becomes of the rows of a table. */
struct sql_use {
    const char *sql;  /* reads that table once, completely, and no other */
    const char *then; /* run when all statements have succeeded, in the order of the tables; NULL:
                       * nothing */
};

/*
 * Open the database with one thread (duckdb_options.threads): each statement brings its own.
 * Errors in traces are reported in `tables`, as for queries; a lack of memory, or a file whose rest
 * cannot be read, ends the pass. Returns EXIT_GOOD, or EXIT_INOUT after a message; transactions of
 * the statements are then rolled back, unless `then` has committed them.
 */
int sql_pass(struct sql_tables *tables, const struct sql_use uses[TRAIL_TABLES]);

/* For the table functions: fills a chunk with these columns of the next rows; none: the end. */
void pass_take(struct sql_pass *pass, trail_table_id id, const uint64_t *columns, size_t count,
               void *chunk);
