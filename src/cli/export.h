/*
 * Exporting: what a format of `trail export` gets to work with, and what it is.
 *
 * A format is a row in the table of export.c: its name, what it is for, and a function. Most write one
 * stream of a reader's events: they have `stream`. One that does all by itself has `run`.
 */
#ifndef TRAIL_CLI_EXPORT_H
#define TRAIL_CLI_EXPORT_H

#include "cli/cli.h"
#include "cli/values.h"
#include "cli/window.h"

struct tables_request;

struct export_request {
    const struct command *command;
    const struct export_format *format;
    const char *word;   /* the trace */
    const char *output; /* NULL: stdout */
    const char *type;   /* of profiles; NULL: the default */
    const char *binary;
    bool repair;
    struct window window;
    struct id_list goroutines;
    const char *schema; /* the system that one is wanted for; NULL: none */
    const char *table, *host,
        *day; /* of formats that are tables; NULL: all, this one, the trace's */
    const struct tables_request *tables; /* while export_tables.c works on it */
    trail_export_options options;        /* what stands in the others, for the library */
};

struct export_format {
    const char *name, *summary;
    const char *suffixes; /* of names that mean it: ".pftrace .perfetto-trace"; or NULL */
    bool is_text;         /* may go to a terminal */
    int (*stream)(trail_reader *reader, const trail_export_options *options, const trail_sink *sink,
                  trail_export_stats *stats, trail_error *err);
    int (*run)(struct export_request *request); /* returns the exit code */
};

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
