/* Generates statements that create the tables in other systems from their one definition. */
#include <string.h>
#include <trail/tables.h>

#include "base/error.h"
#include "base/out.h"

/* A system's names for the cell types, and its statement for a table. */
struct dialect {
    const char *name;
    const char *head;       /* printed before the first table */
    const char *apostrophe; /* how it is written in a text; NULL: has no texts */
    const char *types[TRAIL_CELL_DATE + 1];
    void (*table)(struct out *out, const struct dialect *dialect, const trail_table *table);
};

static bool is_partition(const trail_table *table, size_t column)
{
    return column + 2 >= table->column_count; /* host and day */
}

static void put_text(struct out *out, const struct dialect *dialect, const char *text)
{
    out_char(out, '\'');
    for (; *text; text++)
        if (*text == '\'')
            out_str(out, dialect->apostrophe);
        else
            out_char(out, *text);
    out_char(out, '\'');
}

/* One line per column, with its meaning. Partition columns come last, as in the tables. */
static void columns(struct out *out, const struct dialect *dialect, const trail_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const trail_table_column *column = &table->columns[i];
        out_format(out, "    %s %s COMMENT ", column->name, dialect->types[column->cell]);
        put_text(out, dialect, column->meaning);
        out_str(out, i + 1 < table->column_count ? ",\n" : "\n");
    }
}

/* MARK: DuckDB */

static void duckdb_table(struct out *out, const struct dialect *dialect, const trail_table *table)
{
    (void)dialect;
    out_format(out, "\n-- %s\nCREATE OR REPLACE VIEW %s AS SELECT\n", table->meaning, table->name);
    for (size_t i = 0; i < table->column_count; i++)
        out_format(out, "    %s%s -- %s\n", table->columns[i].name,
                   i + 1 < table->column_count ? "," : "", table->columns[i].meaning);
    out_format(out,
               "FROM read_parquet('traces/%s/*/*/*.parquet', hive_partitioning = true,\n"
               "                  hive_types = {'host': VARCHAR, 'day': DATE});\n",
               table->name);
}

/* MARK: ClickHouse */

static void clickhouse_columns(struct out *out, const struct dialect *dialect,
                               const trail_table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const trail_table_column *column = &table->columns[i];
        const char *type = dialect->types[column->cell];
        bool words = column->cell == TRAIL_CELL_ENUM || is_partition(table, i) ||
                     strcmp(column->name, "file") == 0 || strcmp(column->name, "trace") == 0;
        words = words && column->cell != TRAIL_CELL_DATE;
        out_format(out, "    `%s` %s%s%s%s%s%s -- %s\n", column->name,
                   words ? "LowCardinality(" : "", column->nullable ? "Nullable(" : "", type,
                   column->nullable ? ")" : "", words ? ")" : "",
                   i + 1 < table->column_count ? "," : "", column->meaning);
    }
}

/* Writes the table itself; its name ends in `suffix`. */
static void clickhouse_merge_tree(struct out *out, const struct dialect *dialect,
                                  const trail_table *table, const char *suffix)
{
    out_format(out, "\n-- %s\nCREATE TABLE IF NOT EXISTS trail.%s%s\n(\n", table->meaning,
               table->name, suffix);
    clickhouse_columns(out, dialect, table);
    out_format(out, ")\nENGINE = ReplacingMergeTree PARTITION BY day ORDER BY (host, trace, %s);\n",
               table->key);
}

static void clickhouse_table(struct out *out, const struct dialect *dialect,
                             const trail_table *table)
{
    clickhouse_merge_tree(out, dialect, table, "");
}

static void clickhouse_cluster_table(struct out *out, const struct dialect *dialect,
                                     const trail_table *table)
{
    clickhouse_merge_tree(out, dialect, table, "_local ON CLUSTER trail");
    out_format(out,
               "\nCREATE TABLE IF NOT EXISTS trail.%s ON CLUSTER trail AS trail.%s_local\n"
               "ENGINE = Distributed(trail, trail, %s_local, cityHash64(host, trace));\n",
               table->name, table->name, table->name);
}

/* MARK: Spark and Trino */

static void spark_table(struct out *out, const struct dialect *dialect, const trail_table *table)
{
    out_format(out, "\nCREATE TABLE IF NOT EXISTS trail.%s (\n", table->name);
    columns(out, dialect, table);
    out_format(out, ") USING parquet PARTITIONED BY (host, day) LOCATION 'traces/%s'\nCOMMENT ",
               table->name);
    put_text(out, dialect, table->meaning);
    out_format(out, ";\nMSCK REPAIR TABLE trail.%s;\n", table->name);
}

static void trino_table(struct out *out, const struct dialect *dialect, const trail_table *table)
{
    out_format(out, "\nCREATE TABLE IF NOT EXISTS hive.trail.%s (\n", table->name);
    columns(out, dialect, table);
    out_format(out,
               ") WITH (format = 'PARQUET', partitioned_by = ARRAY['host', 'day'],\n"
               "        external_location = 's3://traces/%s');\n"
               "CALL hive.system.sync_partition_metadata('trail', '%s', 'ADD');\n",
               table->name, table->name);
}

/* MARK: Dialects */

#define CLICKHOUSE_TYPES                                                                           \
    {                                                                                              \
        "Int64", "Int32", "UInt8", "String", "String", "Date"                                      \
    }

static const struct dialect dialects[TRAIL_DIALECTS] = {
    [TRAIL_DIALECT_DUCKDB] =
        {"duckdb",
         "-- DuckDB: the tables over Parquet folders that trail export wrote below traces/.\n",
         NULL,
         {"BIGINT", "INTEGER", "BOOLEAN", "VARCHAR", "VARCHAR", "DATE"},
         duckdb_table},
    [TRAIL_DIALECT_CLICKHOUSE] = {"clickhouse",
                                  "-- ClickHouse on one server.\n"
                                  "CREATE DATABASE IF NOT EXISTS trail;\n",
                                  NULL, CLICKHOUSE_TYPES, clickhouse_table},
    [TRAIL_DIALECT_CLICKHOUSE_CLUSTER] =
        {"clickhouse-cluster",
         "-- ClickHouse: a table on each shard of the cluster 'trail', and one over all of them.\n"
         "CREATE DATABASE IF NOT EXISTS trail ON CLUSTER trail;\n",
         NULL, CLICKHOUSE_TYPES, clickhouse_cluster_table},
    [TRAIL_DIALECT_SPARK] =
        {"spark",
         "-- Spark: the tables over Parquet folders that trail export wrote below traces/.\n"
         "CREATE DATABASE IF NOT EXISTS trail;\n",
         "\\'",
         {"BIGINT", "INT", "BOOLEAN", "STRING", "STRING", "DATE"},
         spark_table},
    [TRAIL_DIALECT_TRINO] =
        {"trino",
         "-- Trino (hive connector): the tables over Parquet folders that trail export wrote.\n"
         "CREATE SCHEMA IF NOT EXISTS hive.trail;\n",
         "''",
         {"BIGINT", "INTEGER", "BOOLEAN", "VARCHAR", "VARCHAR", "DATE"},
         trino_table},
};

const char *trail_dialect_name(trail_dialect dialect)
{
    return (unsigned)dialect < TRAIL_DIALECTS ? dialects[dialect].name : "?";
}

int trail_tables_schema(trail_dialect dialect, const trail_sink *sink, trail_error *err)
{
    struct out out;
    if ((unsigned)dialect >= TRAIL_DIALECTS)
        return error_set(err, TRAIL_USAGE, "no such dialect");
    if (!out_init(&out, sink->write, sink->context))
        return error_no_memory(err);
    out_str(&out, dialects[dialect].head);
    for (int i = 0; i < TRAIL_TABLES; i++)
        dialects[dialect].table(&out, &dialects[dialect], trail_table_get((trail_table_id)i));
    return out_finish(&out, err);
}
