/*
 * Tables of traces as Parquet files, which appear together or not at all: the rows of each file are
 * collected by as many threads as read traces.
 */
#pragma once

#include <stdatomic.h>

#include "commands/table_files.h"
#include "export/parquet.h"
#include "ui/read_all.h"

/* Zero-initialised: no table. table_parquet_write releases it. */
struct table_parquet {
    struct table_files files;
    uint32_t wanted[TRAIL_TABLES];
    struct parquet *parquet[TRAIL_TABLES];
    struct parquet_rows *(*rows)[TRAIL_TABLES]; /* by thread; NULL: none yet */
    size_t threads;
    atomic_bool failed; /* rows were not taken: no memory, or an output has failed */
};

/*
 * Opens the file of a table for the wanted columns, after its folder if that is to be made. Takes
 * the path, which is NULL if out of memory. Returns EXIT_GOOD, or an exit code after a message.
 */
int table_parquet_open(struct table_parquet *to, int table, uint32_t wanted, char *path,
                       bool with_folder);

/*
 * Reads the traces and names the files; if `is_whole`, only if no trace is damaged. With a `code`
 * that is not EXIT_GOOD, only releases what was opened. Returns `code`, or another one after a
 * message.
 */
int table_parquet_write(struct table_parquet *to, struct traces *traces, bool is_whole, int code);
