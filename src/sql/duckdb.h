/*
 * DuckDB, loaded at run time and optional. Declares the functions used from its C API, because the
 * npm package has no header. All handles are opaque pointers.
 *
 *     struct duckdb duckdb;
 *     if (duckdb_begin(&duckdb, &options) != EXIT_GOOD) ... an error message has been printed
 *     duckdb.query(duckdb.connection, "...", &result) ...
 *     duckdb_end(&duckdb);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/options.h"

/* DuckDB's type numbers, as far as used. */
enum {
    DUCKDB_BOOLEAN = 1,
    DUCKDB_TINYINT = 2,
    DUCKDB_SMALLINT = 3,
    DUCKDB_INTEGER = 4,
    DUCKDB_BIGINT = 5,
    DUCKDB_UTINYINT = 6,
    DUCKDB_USMALLINT = 7,
    DUCKDB_UINTEGER = 8,
    DUCKDB_UBIGINT = 9,
    DUCKDB_FLOAT = 10,
    DUCKDB_DOUBLE = 11,
    DUCKDB_DATE = 13,
    DUCKDB_HUGEINT = 16,
    DUCKDB_VARCHAR = 17,
    DUCKDB_DECIMAL = 19,
    DUCKDB_LIST = 24,
    DUCKDB_STRUCT = 25,
    DUCKDB_MAP = 26,
    DUCKDB_UNION = 28,
    DUCKDB_ARRAY = 33
};

enum { DUCKDB_STATEMENT_SELECT = 1, DUCKDB_STATEMENT_EXPLAIN = 4 };

/* Passed by value, so its size must be exact; the first members are deprecated in DuckDB's API. */
typedef struct duckdb_result {
    uint64_t history[3];
    void *columns;
    char *message;
    void *internal;
} duckdb_result;

/* A string in a vector: up to 12 bytes inline, or the first four bytes and a pointer. */
#define DUCKDB_INLINE_TEXT 12
typedef struct duckdb_text {
    uint32_t size;
    char start[4];
    union {
        char rest[8];
        const char *data;
    };
} duckdb_text;
_Static_assert(sizeof(duckdb_text) == 16, "the size in DuckDB's vectors");

typedef struct duckdb_hugeint {
    uint64_t lower;
    int64_t upper;
} duckdb_hugeint;

typedef void (*duckdb_free_fn)(void *data);
typedef void (*duckdb_info_fn)(void *info);
typedef void (*duckdb_fill_fn)(void *info, void *chunk);

/* FUNCTION(result, name, arguments). Functions that return int return 0 on success. */
/* clang-format off */
#define DUCKDB_FUNCTIONS(FUNCTION)                                                                 \
    FUNCTION(const char *, library_version, (void))                                                \
    FUNCTION(int, create_config, (void **config))                                                  \
    FUNCTION(int, set_config, (void *config, const char *name, const char *value))                 \
    FUNCTION(void, destroy_config, (void **config))                                                \
    FUNCTION(int, open_ext, (const char *path, void **database, void *config, char **message))     \
    FUNCTION(void, close, (void **database))                                                       \
    FUNCTION(int, connect, (void *database, void **connection))                                    \
    FUNCTION(void, disconnect, (void **connection))                                                \
    FUNCTION(void, free, (void *memory))                                                           \
    FUNCTION(int, query, (void *connection, const char *sql, duckdb_result *result))               \
    FUNCTION(void, destroy_result, (duckdb_result *result))                                        \
    FUNCTION(const char *, result_error, (duckdb_result *result))                                  \
    FUNCTION(uint64_t, column_count, (duckdb_result *result))                                      \
    FUNCTION(const char *, column_name, (duckdb_result *result, uint64_t column))                  \
    FUNCTION(int, column_type, (duckdb_result *result, uint64_t column))                           \
    FUNCTION(void *, fetch_chunk, (duckdb_result result))                                          \
    FUNCTION(uint64_t, extract_statements,                                                         \
             (void *connection, const char *sql, void **statements))                               \
    FUNCTION(const char *, extract_statements_error, (void *statements))                           \
    FUNCTION(void, destroy_extracted, (void **statements))                                         \
    FUNCTION(int, prepare_extracted_statement,                                                     \
             (void *connection, void *statements, uint64_t index, void **statement))               \
    FUNCTION(const char *, prepare_error, (void *statement))                                       \
    FUNCTION(void, destroy_prepare, (void **statement))                                            \
    FUNCTION(int, prepared_statement_type, (void *statement))                                      \
    FUNCTION(uint64_t, prepared_statement_column_count, (void *statement))                         \
    FUNCTION(const char *, prepared_statement_column_name, (void *statement, uint64_t column))     \
    FUNCTION(int, prepared_statement_column_type, (void *statement, uint64_t column))              \
    FUNCTION(int, execute_prepared, (void *statement, duckdb_result *result))                      \
    FUNCTION(int, execute_prepared_streaming, (void *statement, duckdb_result *result))            \
    FUNCTION(uint64_t, data_chunk_get_size, (void *chunk))                                         \
    FUNCTION(void, data_chunk_set_size, (void *chunk, uint64_t size))                              \
    FUNCTION(void *, data_chunk_get_vector, (void *chunk, uint64_t column))                        \
    FUNCTION(void, destroy_data_chunk, (void **chunk))                                             \
    FUNCTION(void *, vector_get_data, (void *vector))                                              \
    FUNCTION(uint64_t *, vector_get_validity, (void *vector))                                      \
    FUNCTION(void, vector_ensure_validity_writable, (void *vector))                                \
    FUNCTION(void, vector_assign_string_element_len,                                               \
             (void *vector, uint64_t row, const char *data, uint64_t size))                        \
    FUNCTION(uint64_t, vector_size, (void))                                                        \
    FUNCTION(void *, create_logical_type, (int type))                                              \
    FUNCTION(void *, create_enum_type, (const char **words, uint64_t count))                       \
    FUNCTION(void, destroy_logical_type, (void **type))                                            \
    FUNCTION(void *, create_table_function, (void))                                                \
    FUNCTION(void, destroy_table_function, (void **function))                                      \
    FUNCTION(void, table_function_set_name, (void *function, const char *name))                    \
    FUNCTION(void, table_function_set_extra_info,                                                  \
             (void *function, void *extra, duckdb_free_fn drop))                                   \
    FUNCTION(void, table_function_set_bind, (void *function, duckdb_info_fn bind))                 \
    FUNCTION(void, table_function_set_init, (void *function, duckdb_info_fn init))                 \
    FUNCTION(void, table_function_set_local_init, (void *function, duckdb_info_fn init))           \
    FUNCTION(void, table_function_set_function, (void *function, duckdb_fill_fn fill))             \
    FUNCTION(void, table_function_supports_projection_pushdown, (void *function, bool pushdown))   \
    FUNCTION(int, register_table_function, (void *connection, void *function))                     \
    FUNCTION(void *, bind_get_extra_info, (void *info))                                            \
    FUNCTION(void, bind_add_result_column, (void *info, const char *name, void *type))             \
    FUNCTION(void *, init_get_extra_info, (void *info))                                            \
    FUNCTION(uint64_t, init_get_column_count, (void *info))                                        \
    FUNCTION(uint64_t, init_get_column_index, (void *info, uint64_t i))                            \
    FUNCTION(void, init_set_init_data, (void *info, void *data, duckdb_free_fn drop))              \
    FUNCTION(void, init_set_max_threads, (void *info, uint64_t threads))                           \
    FUNCTION(void, init_set_error, (void *info, const char *message))                              \
    FUNCTION(void *, function_get_init_data, (void *info))                                         \
    FUNCTION(void *, function_get_local_init_data, (void *info))                                   \
    FUNCTION(void, function_set_error, (void *info, const char *message))
/* clang-format on */

struct duckdb {
#define DUCKDB_POINTER(result, name, arguments) result(*name) arguments;
    DUCKDB_FUNCTIONS(DUCKDB_POINTER)
#undef DUCKDB_POINTER
    void *library, *database, *connection;
};

struct duckdb_options {
    const char *memory; /* limit, with its unit; NULL: DuckDB's default */
    const char *spill;  /* folder for temporary files; NULL: none are written */
    unsigned threads;   /* 0: one per CPU */
    bool files;         /* queries may read and write files */
    bool unordered;     /* rows need not keep their order, so that all threads may write them */
};

/* The command that installs the library for a user. */
#define DUCKDB_INSTALL                                                                             \
    "npm install --prefix ~/.local/share/trail --no-audit --no-fund " DUCKDB_PACKAGE
#define DUCKDB_PACKAGE "@duckdb/node-bindings-linux-x64"

/*
 * Loads the library and its functions without printing anything. Returns the name of a missing
 * function, or NULL. If there is no library, returns NULL with duckdb->library NULL.
 */
const char *duckdb_load(struct duckdb *duckdb);

/*
 * Loads the library and opens an empty database in memory. Returns EXIT_GOOD, or prints an error
 * and returns an exit code.
 */
int duckdb_begin(struct duckdb *duckdb, const struct duckdb_options *options);

/* Closes the database. Accepts a struct for which duckdb_begin has failed. */
void duckdb_end(struct duckdb *duckdb);

/* Prints a message from DuckDB, without its own advice. Returns whether its limit of memory was
 * reached. */
bool duckdb_print_error(const char *message);

/* Runs statements without a result. Returns an exit code, after a message on an error. */
int duckdb_run(struct duckdb *duckdb, const char *sql);

/* Writes a text as a literal of SQL. */
void sql_put_text(FILE *to, const char *text);

/* Returns a statement with a text in quotes in it, which the caller frees; NULL: out of memory. */
char *sql_statement_with(const char *before, const char *text, const char *after);
