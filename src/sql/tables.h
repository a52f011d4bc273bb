/*
 * The tables over traces as tables of DuckDB. Each query reads the files anew, each table that it
 * names in a pass of its own, and of each table only the columns that it uses are made.
 */
#ifndef TRAIL_SQL_TABLES_H
#define TRAIL_SQL_TABLES_H

#include <pthread.h>
#include <trail/tables.h>

#include "sql/duckdb.h"
#include "ui/input.h"
#include "ui/window.h"

struct sql_scan;
struct sql_tables;

/* What a table function is told of its table; lives as long as the tables. */
struct sql_function {
    struct sql_tables *tables;
    trail_table_id id;
};

/* Set up by its user but for the last members; must outlive the connection. */
struct sql_tables {
    struct duckdb *duckdb;
    struct input *inputs;
    const char *const *files; /* what the column `file` says of each */
    size_t count;
    const char *host;
    bool has_day;
    int32_t day; /* without it, that of the file */
    struct window window;
    trail_reader_options reader;

    struct sql_function functions[TRAIL_TABLES];
    pthread_mutex_t lock;   /* of what is below, which DuckDB's threads share */
    struct sql_scan *scans; /* whose texts a result may still show */
    bool *told;             /* by file: that it is damaged */
    int code;               /* the worst of what reading the files came to */
};

/* Makes a table of each kind known. EXIT_GOOD, or an exit code after telling why not. */
int sql_tables_register(struct sql_tables *tables);

/* After a result was dropped: forgets what it may have shown. */
void sql_tables_forget(struct sql_tables *tables);
void sql_tables_free(struct sql_tables *tables);

/* The day that a trace is of: that of its clock if it tells, else that of the file's last change. */
int32_t trace_day(struct input *input);

#endif
