/*
 * A table as a Parquet file (Apache Parquet), for the rows of one trace or of many:
 *
 *     file      = "PAR1" row group... footer, its size, "PAR1"
 *     row group = for each column: a page of its dictionary, if it has one, and a page of values
 *
 * Numbers are written as differences, texts and enumerations as numbers in a dictionary, booleans
 * as bits, and each page is compressed with zstd. The footer has the schema and, by row group and
 * column, the place, the least and greatest value, and the number of NULLs.
 *
 * Rows are collected in memory up to a row group. Several threads may do so for the same file, each
 * in a collection of its own.
 */
#pragma once

#include <trail/tables.h>

struct parquet;
struct parquet_rows;

/* Begins a file with the wanted columns; `table` must remain. NULL: out of memory. */
struct parquet *parquet_open(const trail_table *table, uint32_t wanted, const trail_sink *sink);

/*
 * Ends the file, or, unless `keep`, writes nothing more. All collections must have ended. Returns
 * 0, or -1 with *err: TRAIL_IO if the sink failed.
 */
int parquet_close(struct parquet *parquet, bool keep, trail_error *err);

/* Returns an empty collection of rows; NULL: out of memory. */
struct parquet_rows *parquet_rows_new(struct parquet *parquet);

/* Adds rows, which must have the wanted columns. Returns false if out of memory, or if the sink has
 * failed; the collection then takes no more. */
bool parquet_rows_add(struct parquet_rows *rows, const trail_rows *more);

/* Writes the rest of the rows if `keep`, and frees the collection. Returns as above. */
bool parquet_rows_end(struct parquet_rows *rows, bool keep);
