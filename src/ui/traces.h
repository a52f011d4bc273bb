/*
 * Several traces whose tables are wanted, and one reading of one of them.
 */
#pragma once

#include <pthread.h>
#include <trail/tables.h>

#include "ui/input.h"
#include "ui/options.h"
#include "ui/window.h"

/* The caller sets the first group of members, zeroes the others and calls traces_init. */
struct traces {
    struct input *inputs;
    const char *const *files; /* value of the column `file`, by trace */
    size_t count;
    const char *host; /* not NULL */
    bool has_day;
    int32_t day; /* if has_day; otherwise each file's own day is used */
    struct window window;
    trail_reader_options reader;

    pthread_mutex_t lock;       /* protects the members below */
    bool *reported;             /* by trace: its error was reported */
    char (*ids)[TRACE_ID_SIZE]; /* "": not known yet */
    int code;                   /* the worst exit code of reading the traces */
    size_t unopened;            /* traces without any row in read_all; each was reported */
};

/* Returns false if out of memory. traces_free accepts both, and also traces that are all zero. */
bool traces_init(struct traces *traces);
void traces_free(struct traces *traces);

/* Reports an error in a trace, but only once per trace. */
void traces_report(struct traces *traces, size_t trace, const trail_error *err);

/* Owns the texts of its rows. */
struct trace_reading {
    trail_source *source;
    trail_reader *reader;
    trail_tables *tables;
};

/* trace_reading_close must be called in either case. */
bool trace_reading_open(struct trace_reading *reading, struct traces *traces, size_t trace,
                        const uint32_t wanted[TRAIL_TABLES], trail_error *err);
void trace_reading_close(struct trace_reading *reading);

/* MARK: Values of the common columns */

/* The day of a trace, since 1970: by its wall clock, or else by the file's modification time. */
int32_t trace_day(struct input *input);

/* The host of a trace that names none: this machine. */
#define TRACE_HOST_SIZE 256
void trace_host(char host[TRACE_HOST_SIZE]);

/*
 * Sets *host, of the option --host, to this machine, in `own`, if it is NULL. Hosts are also names
 * of folders: returns EXIT_USAGE after a message if it cannot be one.
 */
int trace_host_find(const struct command *command, const char **host, char own[TRACE_HOST_SIZE]);
