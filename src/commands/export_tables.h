/*
 * The schemas of the tables that `trail export` writes.
 */
#pragma once

#include "commands/export_request.h"

/* Prints the schema for the system `name`. */
int export_schema(const struct export_request *request, const char *name);
#define EXPORT_SCHEMAS "duckdb clickhouse clickhouse-cluster spark trino"
