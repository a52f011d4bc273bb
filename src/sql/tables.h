/*
 * The tables over traces as DuckDB table functions. Each query reads the files again, in one pass
 * for each table it uses, and computes only the columns it uses.
 */
#pragma once

#include <pthread.h>
#include <trail/tables.h>

#include "sql/duckdb.h"
#include "ui/input.h"
#include "ui/window.h"

struct sql_scan;
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
    bool
        closes; /* each file is closed at its end, and texts are copied: for many files whose rows are only written */

    struct sql_function functions[TRAIL_TABLES];
    pthread_mutex_t lock;       /* protects the members below, shared by DuckDB's threads */
    struct sql_scan *scans;     /* own texts that a result may still refer to */
    bool *reported;             /* by file: its error was reported */
    char (*ids)[TRACE_ID_SIZE]; /* IDs of the traces, by file; "": not known yet */
    int code;                   /* the worst exit code of reading the files */
};

/* Registers all tables. Returns EXIT_GOOD, or prints an error and returns an exit code. */
int sql_tables_register(struct sql_tables *tables);

/* Call it after a result has been dropped: frees the texts that it may have referred to. */
void sql_tables_forget(struct sql_tables *tables);
void sql_tables_free(struct sql_tables *tables);

/* The host of a trace that names none: this machine. */
#define TRACE_HOST_SIZE 256
void trace_host(char host[TRACE_HOST_SIZE]);

/*
 * Sets *host, of the option --host, to this machine, in `own`, if it is NULL. Hosts are also names
 * of folders: returns EXIT_USAGE after a message if it cannot be one.
 */
int trace_host_find(const struct command *command, const char **host, char own[TRACE_HOST_SIZE]);

/* The day of a trace, since 1970: by its wall clock, or else by the file's modification time. */
int32_t trace_day(struct input *input);
