/*
 * What `trail export` passes to a format; a format is a row of export/formats.def.
 */
#pragma once

#include <trail/tables.h>

#include "commands/export_pairs.h"
#include "ui/cli.h"
#include "ui/values.h"
#include "ui/window.h"

struct tables_request;

struct export_request {
    const struct command *command;
    const struct export_format *format;
    const char *word;   /* the trace's path */
    const char *output; /* NULL: stdout */
    const char *type;   /* of profiles; NULL: the default */
    const char *binary;
    const char *endpoint;               /* OTLP: of a collector; NULL: write to the output */
    struct pairs resource, environment; /* OTLP: attributes of the resource, from options and from
                                         * the environment */
    bool repair, csv_safe, uncompressed;
    struct window window;
    struct id_list goroutines;
    const char *schema; /* print the schema for this system; NULL: no */
    const char *table, *host,
        *day; /* for formats that write tables; NULL: all tables, the file's name, the day of the
               * trace */
    const struct tables_request *tables; /* used by export_tables.c */
    struct input *input;                 /* what to read; NULL: the word */
    trail_export_options options;        /* the options above, in the library's form */
};

enum export_nature {
    EXPORT_EVENTS,
    EXPORT_SPANS,
    EXPORT_METRICS,
    EXPORT_PROFILE,
    EXPORT_TABLES,
    EXPORT_CSV
};
enum export_output { EXPORT_TEXT, EXPORT_BINARY, EXPORT_FOLDER };

struct export_format {
    const char *name, *summary, *suffixes;
    enum export_nature nature;
    enum export_output output;
    int (*run)(struct export_request *request); /* returns the exit code */
    int (*stream)(trail_reader *reader, const trail_export_options *options, const trail_sink *sink,
                  trail_export_stats *stats, trail_error *err); /* of export_stream */
    trail_rows_format rows;                                     /* of export_tables */
};

/* Functions that run formats: each opens its output, reads the trace, and closes both. */
int export_ctf(struct export_request *request);
int export_profile(struct export_request *request);
int export_tables(struct export_request *request);

/* Prints the schema for the system that was asked for. */
int export_schema(const struct export_request *request);
#define EXPORT_SCHEMAS "duckdb clickhouse clickhouse-cluster spark trino"

/* Opens a reader as the request selects, calls `use`, and closes it. Returns the exit code of
 * `use`. */
int export_with_reader(struct export_request *request,
                       int (*use)(struct export_request *request, trail_reader *reader));

/*
 * Called after a writer of the library: prints its messages, sets *made to whether to keep the
 * output, and returns the exit code. `lost`: an output failed.
 */
int export_result(const struct export_request *request, int result, bool lost,
                  const trail_export_stats *stats, const trail_error *err, bool *made);
