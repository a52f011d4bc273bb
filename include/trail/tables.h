/*
 * A trace as relational tables: events, states of goroutines, stacks, tasks and so on, with columns
 * that have a name, a type and a meaning. One definition, from which everything follows that has to
 * do with tables: SQL, CSV, RowBinary, Parquet, and the schemas of other systems.
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
 * One pass over the events fills any number of tables; only the columns asked for are made.
 *
 * Threads: an object may be used by one thread at a time.
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
    TRAIL_CELL_ENUM, /* one of the column's words */
    TRAIL_CELL_TEXT, /* UTF-8: bytes of the trace that are not became U+FFFD */
    TRAIL_CELL_DATE  /* days since 1970-01-01 */
} trail_cell;

typedef struct trail_table_column {
    const char *name;
    trail_cell cell;
    bool nullable;
    const char *const *words; /* TRAIL_CELL_ENUM: ended by NULL, at most 255 */
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
    TRAIL_TABLES
} trail_table_id;

typedef struct trail_table {
    const char *name;
    const char *meaning;
    const trail_table_column *columns;
    size_t column_count; /* at most 32 */
} trail_table;

/*
 * Never NULL. The last three columns of each are the same: file, host, day. Their values are those
 * of the options.
 */
TRAIL_API const trail_table *trail_table_get(trail_table_id table);
#define TRAIL_TABLE_COMMON 3 /* so many */

/* False: no table has that name. */
TRAIL_API bool trail_table_find(const char *name, trail_table_id *table);

/* MARK: Rows */

#define TRAIL_ALL_COLUMNS UINT32_MAX
#define TRAIL_TABLE_ROWS  2048 /* of a batch, at most */

typedef struct trail_tables_options {
    uint32_t wanted[TRAIL_TABLES]; /* a bit a column, 1 << its place; 0: no rows of that table */
    const char *file, *host;       /* what those columns hold; NULL: "" */
    int32_t day;
    /*
     * Only what is in this window, from the first event on. Events, logs and samples have their time
     * in it, edges included. States are cut at its edges, so that their durations are those inside;
     * has_begin and has_end are false there. Goroutines, tasks and regions that were alive in it have
     * their times in it, and the moments at which they began. Stacks, frames and strings are those of
     * all that was read until its end, with the same numbers as without a window.
     */
    bool has_from, has_to;
    int64_t from_ns, to_ns;
    void (*progress)(void *context); /* called now and then, if not NULL */
    void *progress_context;
    /*
     * CSV: an apostrophe in front of text that a spreadsheet would compute, because it begins, after
     * spaces, with = + - @, a tab or a line end and is no number.
     */
    bool csv_safe;
} trail_tables_options;

/* The values of one column. Values of a NULL are zero, those of a text empty. */
typedef struct trail_values {
    union {
        const int64_t *i64;
        const int32_t *i32;       /* also dates */
        const uint8_t *u8;        /* words and truths */
        const trail_string *text; /* valid as long as the tables, unless it `passes` */
        const void *any;          /* NULL: not asked for */
    };
    const uint64_t *valid; /* a bit a row, from the lowest of [0] on; NULL: there are no NULLs */
    bool passes;           /* texts are valid until the next call only */
} trail_values;

typedef struct trail_rows {
    trail_table_id table;
    size_t count;
    const trail_values *columns;
} trail_rows;

typedef struct trail_tables trail_tables;

/* `reader` stays the caller's and must outlive the tables. NULL: *err says why. */
TRAIL_API trail_tables *trail_tables_open(trail_reader *reader, const trail_tables_options *options,
                                          trail_error *err);

/*
 * The next rows of any of the tables, in their order within a table. Returns 1, 0 at the end, -1 on
 * an error: if that is one of the trace, the rows of what was good before were handed out. Rows are
 * valid until the next call.
 */
TRAIL_API int trail_tables_next(trail_tables *tables, trail_rows *rows, trail_error *err);
TRAIL_API void trail_tables_close(trail_tables *tables);

/* MARK: Writing */

typedef enum trail_rows_format {
    TRAIL_ROWS_CSV,      /* a line of titles first; NULL is empty, an empty text is "" */
    TRAIL_ROWS_ROWBINARY /* ClickHouse's, for tables as in its schema below */
} trail_rows_format;

/*
 * Writes all rows of the tables that are wanted, each to its sink, in one pass over the events. *rows
 * (or NULL) is how many of each. Returns 0, or -1 with *err set: that of the trace (what was good
 * before is written), or TRAIL_IO if a sink failed.
 */
TRAIL_API int trail_tables_write(trail_reader *reader, const trail_tables_options *options,
                                 trail_rows_format format, const trail_sink sinks[TRAIL_TABLES],
                                 uint64_t rows[TRAIL_TABLES], trail_error *err);

typedef enum trail_dialect {
    TRAIL_DIALECT_DUCKDB,     /* views over Parquet folders */
    TRAIL_DIALECT_CLICKHOUSE, /* MergeTree on each shard, Distributed over them */
    TRAIL_DIALECT_SPARK,      /* tables over Parquet folders */
    TRAIL_DIALECT_TRINO,      /* the same */
    TRAIL_DIALECTS
} trail_dialect;

/* "duckdb", "clickhouse", "spark", "trino". */
TRAIL_API const char *trail_dialect_name(trail_dialect dialect);

/* Writes the statements that make the tables known to that system. 0, or -1 with *err set. */
TRAIL_API int trail_tables_schema(trail_dialect dialect, const trail_sink *sink, trail_error *err);

#ifdef __cplusplus
}
#endif
#endif
