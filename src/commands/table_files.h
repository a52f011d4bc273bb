/*
 * Files of tables that appear together or not at all, the table `traces` last: where its file
 * exists, the others are complete.
 */
#pragma once

#include <trail/tables.h>

#include "base/output.h"
#include "ui/folders.h"

/* Zero-initialised: none is open. */
struct table_files {
    struct output outputs[TRAIL_TABLES];
    char *paths[TRAIL_TABLES];
    bool open[TRAIL_TABLES];
    struct folders folders; /* those that were made */
};

/*
 * Returns the path of a table in folders whose hosts and days are known to readers of Hive
 * partitions: FOLDER/TABLE/host=HOST/day=DAY/NAME.parquet. NULL: out of memory. The columns of such
 * files are table_files_wanted.
 */
char *table_files_path(const char *folder, int table, const char *host, int32_t day,
                       const char *name);
uint32_t table_files_wanted(int table);

/*
 * Opens the file of a table, after its folder if that is to be made. Takes the path, which is NULL
 * if out of memory. Returns EXIT_GOOD, or an exit code after a message; table_files_close must be
 * called in either case.
 */
int table_files_open(struct table_files *files, int table, char *path, bool with_folder);

/* Whether writing one has failed; closing reports it. */
bool table_files_lost(const struct table_files *files);

/*
 * If `made`, gives all files their names, otherwise removes them. Returns `code`, or a worse one
 * after a message.
 */
int table_files_close(struct table_files *files, bool made, int code);
