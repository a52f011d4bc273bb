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
    uint64_t counted, given; /* by scan_count: events, and those handed out */
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

/*
 * Opens a trace whose events are only counted, which several threads do without making them.
 * Returns false if that cannot be done, as for a v1 trace with an error; trace_reading_close must
 * be called in either case.
 */
bool scan_open_count(struct sql_scan *scan, struct traces *traces, size_t trace);

/* Hands out the next events, as many as there are rows in a batch, as trail_tables_next does. */
int scan_count(struct sql_scan *scan, size_t *count, trail_error *err);

/* Returns the type of a column, which the caller destroys. */
void *scan_type(const struct duckdb *duckdb, const trail_table_column *column);

size_t scan_cell_size(trail_cell cell);

/* Puts values into a vector. Texts are copied, or remain those of the scan. */
void scan_give(const struct duckdb *duckdb, void *vector, trail_cell cell,
               const trail_values *values, size_t count, bool copies);
