/*
 * Exporting: what a format of `trail export` gets to work with, and what it is: a row of export/formats.def.
 */
#ifndef TRAIL_COMMANDS_EXPORT_H
#define TRAIL_COMMANDS_EXPORT_H

#include <trail/tables.h>

#include "ui/cli.h"
#include "ui/values.h"
#include "ui/window.h"

struct tables_request;

struct export_request {
    const struct command *command;
    const struct export_format *format;
    const char *word;   /* the trace */
    const char *output; /* NULL: stdout */
    const char *type;   /* of profiles; NULL: the default */
    const char *binary;
    bool repair, csv_safe;
    struct window window;
    struct id_list goroutines;
    const char *schema; /* the system that one is wanted for; NULL: none */
    const char *table, *host,
        *day; /* of formats that are tables; NULL: all, this one, the trace's */
    const struct tables_request *tables; /* while export_tables.c works on it */
    trail_export_options options;        /* what stands in the others, for the library */
};

enum export_nature { EXPORT_EVENTS, EXPORT_SPANS, EXPORT_PROFILE, EXPORT_TABLES, EXPORT_CSV };
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

/* What runs formats. Each opens what it writes, reads the trace, and closes. */
int export_ctf(struct export_request *request);
int export_profile(struct export_request *request);
int export_tables(struct export_request *request);
int export_parquet(struct export_request *request);

/* With a reader: opened as the request says, and closed. `use` returns the exit code. */
int export_with_reader(struct export_request *request,
                       int (*use)(struct export_request *request, trail_reader *reader));

/*
 * After a writer of the library has run: tells what is to be told. Sets *made to whether the output
 * is worth keeping, and returns the exit code. `lost` is whether an output failed.
 */
int export_result(const struct export_request *request, int result, bool lost,
                  const trail_export_stats *stats, const trail_error *err, bool *made);

#endif
