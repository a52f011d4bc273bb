/*
 * The traces whose tables DuckDB has, and their rows as its vectors.
 */
#pragma once

#include "sql/duckdb.h"
#include "ui/traces.h"

struct sql_pass;
struct sql_tables;

/* The data of a table function; lives as long as the struct sql_tables. */
struct sql_function {
    struct sql_tables *tables;
    trail_table_id id;
};

/* One reading of one trace. */
struct sql_scan {
    struct sql_scan *next;
    struct trace_reading reading;
};

/* The caller sets the first group of members. Must outlive the connection. */
struct sql_tables {
    struct duckdb *duckdb;
    struct traces traces;

    struct sql_function functions[TRAIL_TABLES];
    struct sql_pass *pass;  /* not NULL: its readers supply the rows of all tables (pass.h) */
    struct sql_scan *scans; /* own texts that a result may still refer to; protected by the lock of
                             * the traces */
};

/* Returns the type of a column, which the caller destroys. */
void *scan_type(const struct duckdb *duckdb, const trail_table_column *column);

size_t scan_cell_size(trail_cell cell);

/* Puts values into a vector. Texts are copied, or remain those of the scan. */
void scan_give(const struct duckdb *duckdb, void *vector, trail_cell cell,
               const trail_values *values, size_t count, bool copies);
