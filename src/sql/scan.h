/*
 * The traces whose tables DuckDB has, and one reading of one of them, for the tables that are
 * wanted: its rows as vectors of DuckDB.
 */
#pragma once

#include <pthread.h>
#include <trail/tables.h>

#include "sql/duckdb.h"
#include "ui/input.h"
#include "ui/window.h"

struct sql_pass;
struct sql_tables;

/* The data of a table function; lives as long as the struct sql_tables. */
struct sql_function {
    struct sql_tables *tables;
    trail_table_id id;
};

/* The caller sets the first group of members. Must outlive the connection. */
struct sql_tables {
    struct duckdb *duckdb;
    struct input *inputs;
    const char *const *files; /* value of the column `file`, by input */
    size_t count;
    const char *host; /* not NULL */
    bool has_day;
    int32_t day; /* if has_day; otherwise each file's own day is used */
    struct window window;
    trail_reader_options reader;

    struct sql_function functions[TRAIL_TABLES];
    struct sql_pass *pass;      /* not NULL: its readers supply the rows of all tables (pass.h) */
    pthread_mutex_t lock;       /* protects the members below, shared by DuckDB's threads */
    struct sql_scan *scans;     /* own texts that a result may still refer to */
    bool *reported;             /* by file: its error was reported */
    char (*ids)[TRACE_ID_SIZE]; /* IDs of the traces, by file; "": not known yet */
    int code;                   /* the worst exit code of reading the files */
    size_t unopened;            /* files without any row in a pass; each was reported */
};

/* Owns the texts of its rows. */
struct sql_scan {
    struct sql_scan *next;
    trail_source *source;
    trail_reader *reader;
    trail_tables *tables;
    uint64_t counted, given; /* by scan_count: events, and those handed out */
};

/* scan_close must be called in either case. */
bool scan_open(struct sql_scan *scan, struct sql_tables *tables, size_t file,
               const uint32_t wanted[TRAIL_TABLES], trail_error *err);
void scan_close(struct sql_scan *scan);

/*
 * Opens a file whose events are only counted, which several threads do without making them. Returns
 * false if that cannot be done, as for a v1 trace with an error; scan_close must be called in either
 * case.
 */
bool scan_open_count(struct sql_scan *scan, struct sql_tables *tables, size_t file);
/* Hands out the next events, as many as there are rows in a batch, as trail_tables_next does. */
int scan_count(struct sql_scan *scan, size_t *count, trail_error *err);

/* Reports an error in a file, but only once per file. */
void scan_report(struct sql_tables *tables, size_t file, const trail_error *err);

/* Returns the type of a column, which the caller destroys. */
void *scan_type(const struct duckdb *duckdb, const trail_table_column *column);

size_t scan_cell_size(trail_cell cell);

/* Puts values into a vector. Texts are copied, or remain those of the scan. */
void scan_give(const struct duckdb *duckdb, void *vector, trail_cell cell,
               const trail_values *values, size_t count, bool copies);

/* The day of a trace, since 1970: by its wall clock, or else by the file's modification time. */
int32_t trace_day(struct input *input);
