/*
 * A trace as relational tables: events, states of goroutines, stacks, tasks and so on, with named,
 * typed and described columns. SQL, CSV, RowBinary, Parquet and the schemas for other systems all
 * derive from this one definition.
 *
 *     const trail_table *events = trail_table_get(TRAIL_TABLE_EVENTS);
 *     size_t column = 0;
 *     while (strcmp(events->columns[column].name, "time_ns") != 0)
 *         column++;
 *     trail_tables_options options = {.wanted[TRAIL_TABLE_EVENTS] = UINT32_C(1) << column};
 *     trail_tables *tables = trail_tables_open(reader, &options, &err);
 *     trail_rows rows;
 *     while (tables && trail_tables_next(tables, &rows, &err) > 0)
 *         for (size_t i = 0; i < rows.count; i++)
 *             printf("%lld\n", (long long)rows.columns[column].i64[i]);
 *     trail_tables_close(tables);
 *
 * One pass over the events fills any number of tables; only the requested columns are computed.
 *
 * An object may be used by one thread at a time.
 */
#ifndef TRAIL_TABLES_H
#define TRAIL_TABLES_H

#include <trail/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* MARK: The definition */

typedef enum trail_cell {
    TRAIL_CELL_I64,
    TRAIL_CELL_I32,
    TRAIL_CELL_BOOL,
    TRAIL_CELL_ENUM, /* index into the column's words */
    TRAIL_CELL_TEXT, /* UTF-8; invalid bytes of the trace became U+FFFD */
    TRAIL_CELL_DATE  /* days since 1970-01-01 */
} trail_cell;

typedef struct trail_table_column {
    const char *name;
    trail_cell cell;
    bool nullable;
    const char *const *words; /* TRAIL_CELL_ENUM: ends with NULL, at most 255 */
    const char *meaning;
} trail_table_column;

typedef enum trail_table_id {
    TRAIL_TABLE_EVENTS,
    TRAIL_TABLE_STATES,
    TRAIL_TABLE_GOROUTINES,
    TRAIL_TABLE_STACKS,
    TRAIL_TABLE_FRAMES,
    TRAIL_TABLE_STRINGS,
    TRAIL_TABLE_TASKS,
    TRAIL_TABLE_REGIONS,
    TRAIL_TABLE_LOGS,
    TRAIL_TABLE_SAMPLES,
    TRAIL_TABLE_FINDINGS,
    TRAIL_TABLE_TRACES,
    TRAIL_TABLES
} trail_table_id;

typedef struct trail_table {
    const char *name;
    const char *meaning;
    const trail_table_column *columns;
    size_t column_count; /* at most 32 */
    const char *key;     /* the columns that distinguish the rows of a trace: "stack, frame" */
} trail_table;

/*
 * Returns the definition of a table, never NULL. The last TRAIL_TABLE_COMMON columns of every table
 * are trace, file, host and day, with the values given in the options.
 */
TRAIL_API const trail_table *trail_table_get(trail_table_id table);
#define TRAIL_TABLE_COMMON 4

/* Returns false if no table has that name. */
TRAIL_API bool trail_table_find(const char *name, trail_table_id *table);

/* MARK: Rows */

#define TRAIL_ALL_COLUMNS UINT32_MAX
#define TRAIL_TABLE_ROWS  2048 /* maximum per batch */

typedef struct trail_tables_options {
    uint32_t wanted[TRAIL_TABLES];   /* bit 1 << i for column i; 0: no rows of that table */
    const char *trace, *file, *host; /* values of these columns; NULL: "" */
    int32_t day;
    /*
     * Time window in ns since the first event, edges included. Events, logs and samples lie in it.
     * States are cut at its edges, so that durations count only the time inside; has_begin and
     * has_end are false there. Goroutines, tasks and regions alive in it have the times spent in
     * it, and their uncut start. Findings are those of the window. Stacks, frames and strings cover
     * everything read up to its end, with the same numbers as without a window.
     */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    void (*progress)(void *context); /* called regularly, if not NULL */
    void *progress_context;
    /*
     * CSV: put an apostrophe before text that a spreadsheet would evaluate: text that begins, after
     * spaces, with = + - @, a tab or a line end, and is not a number.
     */
    bool csv_safe;
    uint64_t reserved[4]; /* 0: room for members of later versions */
} trail_tables_options;

/* The values of one column. NULLs are stored as zero, or as an empty text. */
typedef struct trail_values {
    union {
        const int64_t *i64;
        const int32_t *i32;       /* also dates */
        const uint8_t *u8;        /* enumerations and booleans */
        const trail_string *text; /* valid as long as the tables, unless `passes` */
        const void *any;          /* NULL: not requested */
    };
    const uint64_t *valid; /* one bit per row, from the lowest bit of [0]; NULL: no NULLs */
    bool passes;           /* texts are valid only until the next call */
} trail_values;

typedef struct trail_rows {
    trail_table_id table;
    size_t count;
    const trail_values *columns;
} trail_rows;

typedef struct trail_tables trail_tables;

/*
 * `reader` remains the caller's and must outlive the tables, whose findings are counted by its
 * thread while that has nothing to read. NULL with *err set on error.
 */
TRAIL_API trail_tables *trail_tables_open(trail_reader *reader, const trail_tables_options *options,
                                          trail_error *err);

/*
 * Hands out the next rows of any one table; rows of the same table come in order. Returns 1, 0 at
 * the end, or -1 with *err set; after an error in the trace all rows before it have been handed
 * out. Rows are valid until the next call.
 */
TRAIL_API int trail_tables_next(trail_tables *tables, trail_rows *rows, trail_error *err);

/* Accepts NULL. */
TRAIL_API void trail_tables_close(trail_tables *tables);

/* MARK: Writing */

typedef enum trail_rows_format {
    TRAIL_ROWS_CSV,       /* with a header line; NULL is empty, an empty text is "" */
    TRAIL_ROWS_ROWBINARY, /* ClickHouse's, for tables of its schema below */
    TRAIL_ROWS_PARQUET    /* Apache Parquet, compressed with zstd; up to 122,880 rows of each wanted
                           * table are kept in memory */
} trail_rows_format;

/*
 * Writes all rows of the wanted tables, each table to its own sink, in one pass over the events.
 * *rows (may be NULL) is the number of rows of each. Returns 0, or -1 with *err set: the error of
 * the trace (all rows before it were written), or TRAIL_IO if a sink failed.
 */
TRAIL_API int trail_tables_write(trail_reader *reader, const trail_tables_options *options,
                                 trail_rows_format format, const trail_sink sinks[TRAIL_TABLES],
                                 uint64_t rows[TRAIL_TABLES], trail_error *err);

typedef enum trail_dialect {
    TRAIL_DIALECT_DUCKDB,             /* views over folders of Parquet files */
    TRAIL_DIALECT_CLICKHOUSE,         /* ReplacingMergeTree on one server */
    TRAIL_DIALECT_CLICKHOUSE_CLUSTER, /* the same on each shard, Distributed over them */
    TRAIL_DIALECT_SPARK,              /* tables over folders of Parquet files */
    TRAIL_DIALECT_TRINO,              /* as for Spark */
    TRAIL_DIALECTS
} trail_dialect;

/* Returns "duckdb", "clickhouse", "clickhouse-cluster", "spark" or "trino". */
TRAIL_API const char *trail_dialect_name(trail_dialect dialect);

/* Writes the statements that create the tables in that system. Returns 0, or -1 with *err set. */
TRAIL_API int trail_tables_schema(trail_dialect dialect, const trail_sink *sink, trail_error *err);

#ifdef __cplusplus
}
#endif
#endif
