/*
 * Parquet files of tables, written by DuckDB: of one table, or of all into a folder, where readers
 * of Hive partitions recognise hosts and days: TABLE/host=HOST/day=DAY/NAME.parquet.
 */
#pragma once

#include "sql/tables.h"

/* How all files are written: the end of a COPY statement. */
#define PARQUET_FORMAT                                                                             \
    " (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 2000)"

/* Writes a table of the registered traces into a file. Returns EXIT_GOOD, or EXIT_INOUT after a
 * message. */
int parquet_write_one(struct sql_tables *sql, trail_table_id table, const char *path);

/*
 * Writes all tables of the registered traces, which must be of one host and day, into a folder. The
 * files get their names when all are complete, the table `traces` last: where its file exists, the
 * others are complete, too. Returns as above.
 */
int parquet_write(struct sql_tables *sql, const char *folder, const char *name);
