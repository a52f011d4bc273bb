/*
 * What an import counts, so that no part of the input is dropped silently. Names of unknown events
 * are kept up to a limit; events with further names are counted together.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

#define IMPORT_NAMES     64
#define IMPORT_NAME_SIZE 48

struct import_count {
    char name[IMPORT_NAME_SIZE];
    uint64_t count;
};

struct import_stats {
    const char *form;          /* "perf script or ftrace text", ...; NULL before it is known */
    uint64_t lines;            /* or JSON objects */
    uint64_t events;           /* understood */
    uint64_t unreadable;       /* lines that are not events */
    uint64_t unreadable_first; /* number of the first of these; 0: none */
    uint64_t bad;              /* events with a known name whose numbers or fields are invalid */
    uint64_t bad_first;
    uint64_t late;          /* too far out of order */
    uint64_t corrected;     /* a thread ran, or did not run, contrary to earlier events */
    uint64_t container_ids; /* switches whose two IDs for one thread come from two PID namespaces */
    uint64_t lost;          /* by the recorder, as it reports */
    uint64_t flows_unused;  /* between threads neither of which waits for the other */
    uint64_t cut;           /* spans that overlap others of their thread, shortened to nest */
    struct import_count unknown[IMPORT_NAMES];
    size_t unknown_names;
    uint64_t unknown_others; /* with other names */
    uint64_t threads, wakeups, wakeups_by_thread;
};

/* Counts an event with a name that has no meaning here. */
void import_count_unknown(struct import_stats *stats, trail_string name);

/* Count a line that is not an event, and an event that contradicts its own form. */
void import_count_unreadable(struct import_stats *stats);
void import_count_bad(struct import_stats *stats);
