/*
 * The IDs of the traces in a Parquet file of the table `traces`, as a note in its footer: a store
 * knows its traces without reading their rows.
 *
 *     trail_traces = ID , ID ...      (an entry of the footer's key_value_metadata)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PARQUET_IDS "trail_traces"

/*
 * Returns the note of the file, to be freed; it ends with a NUL. NULL: the file is none of Parquet,
 * or has no note with as many IDs as it has rows, as when another program has changed it; or out of
 * memory.
 */
char *parquet_ids(const char *path);
