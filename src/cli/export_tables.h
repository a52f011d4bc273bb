/*
 * The formats of `trail export` that write tables: csv, rowbinary, parquet, and schemas.
 */
#ifndef TRAIL_CLI_EXPORT_TABLES_H
#define TRAIL_CLI_EXPORT_TABLES_H

#include "cli/export.h"

int export_csv(struct export_request *request);
int export_rowbinary(struct export_request *request);
int export_parquet(struct export_request *request);

/* Writes the schema for the system of that name. */
int export_schema(const struct export_request *request, const char *name);
#define EXPORT_SCHEMAS "duckdb clickhouse spark trino"

#endif
