/* Prints results as a table, JSON or CSV. */
#include "sql/show.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csv.h"
#include "base/text.h"
#include "base/utf8.h"
#include "ui/cli.h"
#include "ui/show.h"

#define CELL_SIZE 64

/* A value of a result. `text` points into the chunk, or to `digits`. */
struct cell {
    bool null;
    bool number; /* JSON writes it without quotes */
    bool truth;
    trail_string text;
    char digits[CELL_SIZE];
};

/* Column widths of a table are computed from its first rows; later rows use the same widths. */
#define TABLE_MEASURED 1000

struct show {
    struct duckdb *duckdb;
    enum sql_format format;
    duckdb_result result;
    size_t columns;
    const int *types; /* of the original query: as_text turns some columns into text or JSON */
    struct json json;
    struct out csv;
    int *widths;
    char **kept; /* cells of the rows used to compute the widths */
    size_t kept_count, rows;
    bool measured, failed;
    bool plan; /* output of EXPLAIN */
};

/* MARK: Values */

/* Types that are formatted here; DuckDB casts all others to text. */
static bool is_plain(int type)
{
    return (type >= DUCKDB_BOOLEAN && type <= DUCKDB_DOUBLE) || type == DUCKDB_HUGEINT ||
           type == DUCKDB_VARCHAR;
}

static bool is_number(int type)
{
    return (type > DUCKDB_BOOLEAN && type <= DUCKDB_DOUBLE) || type == DUCKDB_HUGEINT ||
           type == DUCKDB_DECIMAL;
}

/* Types with several values, which are arrays and objects in JSON. */
static bool is_nested(int type)
{
    return type == DUCKDB_LIST || type == DUCKDB_ARRAY || type == DUCKDB_STRUCT ||
           type == DUCKDB_MAP || type == DUCKDB_UNION;
}

static void put_digits(struct cell *cell, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put_digits(struct cell *cell, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int size = vsnprintf(cell->digits, sizeof cell->digits, format, list);
    va_end(list);
    cell->text = (trail_string){cell->digits, size > 0 ? (size_t)size : 0};
}

static void put_huge(struct cell *cell, duckdb_hugeint value)
{
    char buf[CELL_SIZE], *at = buf + sizeof buf;
    bool negative = value.upper < 0;
    __uint128_t rest = (__uint128_t)(uint64_t)value.upper << 64 | value.lower;
    if (negative)
        rest = -rest;
    do {
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest > 0);
    put_digits(cell, "%s%.*s", negative ? "-" : "", (int)(buf + sizeof buf - at), at);
}

/* Writes the fewest digits that read back as the same number. */
static void put_real(struct cell *cell, double value)
{
    for (int digits = 1; digits <= 17; digits++) {
        put_digits(cell, "%.*g", digits, value);
        if (strtod(cell->digits, NULL) == value)
            break;
    }
    cell->number = isfinite(value);
}

static void put_bits(struct cell *cell, int type, const void *data, uint64_t row)
{
    switch (type) {
    case DUCKDB_BOOLEAN:
        cell->truth = true;
        put_digits(cell, "%s", ((const uint8_t *)data)[row] ? "true" : "false");
        break;
    case DUCKDB_TINYINT:
        put_digits(cell, "%d", ((const int8_t *)data)[row]);
        break;
    case DUCKDB_SMALLINT:
        put_digits(cell, "%d", ((const int16_t *)data)[row]);
        break;
    case DUCKDB_INTEGER:
        put_digits(cell, "%" PRId32, ((const int32_t *)data)[row]);
        break;
    case DUCKDB_BIGINT:
        put_digits(cell, "%" PRId64, ((const int64_t *)data)[row]);
        break;
    case DUCKDB_UTINYINT:
        put_digits(cell, "%u", ((const uint8_t *)data)[row]);
        break;
    case DUCKDB_USMALLINT:
        put_digits(cell, "%u", ((const uint16_t *)data)[row]);
        break;
    case DUCKDB_UINTEGER:
        put_digits(cell, "%" PRIu32, ((const uint32_t *)data)[row]);
        break;
    case DUCKDB_UBIGINT:
        put_digits(cell, "%" PRIu64, ((const uint64_t *)data)[row]);
        break;
    case DUCKDB_FLOAT:
        put_real(cell, (double)((const float *)data)[row]);
        break;
    case DUCKDB_DOUBLE:
        put_real(cell, ((const double *)data)[row]);
        break;
    default:
        put_huge(cell, ((const duckdb_hugeint *)data)[row]);
        break;
    }
}

static void get_cell(const struct show *show, void *vector, size_t column, uint64_t row,
                     struct cell *cell)
{
    int type = show->types[column];
    const void *data = show->duckdb->vector_get_data(vector);
    const uint64_t *valid = show->duckdb->vector_get_validity(vector);
    *cell = (struct cell){.number = is_number(type)};
    cell->null = valid && (valid[row / 64] >> (row % 64) & 1) == 0;
    if (cell->null)
        return;
    if (is_plain(type) && type != DUCKDB_VARCHAR) {
        put_bits(cell, type, data, row);
        return;
    }
    const duckdb_text *text = &((const duckdb_text *)data)[row];
    cell->text.size = text->size;
    cell->text.data = text->size <= DUCKDB_INLINE_TEXT ? text->start : text->data;
}

/* MARK: JSON and CSV */

/* Integers beyond 2^53, which not every JSON reader keeps exact, are written as strings. */
static bool is_unquoted(int type, const struct cell *cell)
{
    bool real = type == DUCKDB_FLOAT || type == DUCKDB_DOUBLE || type == DUCKDB_DECIMAL;
    if (!cell->number || real || cell->text.size < 16)
        return cell->number;
    return cell->text.size < CELL_SIZE && fabsl(strtold(cell->text.data, NULL)) <= 0x1p53L;
}

/* Returns the size of a number at `at` that JSON cannot express; 0: there is none. */
static size_t no_json_number(const char *at, const char *end)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(end - at) >= size && memcmp(at, words[i], size) == 0)
            return size;
    }
    return 0;
}

/* Writes the output of to_json, with NaN and infinities as strings. */
static void json_nested(struct show *show, trail_string text)
{
    const char *at = text.data, *end = at + text.size;
    char *fixed = malloc(2 * text.size + 1), *to = fixed;
    bool quoted = false;
    show->failed |= !fixed;
    while (fixed && at < end) {
        size_t word = quoted ? 0 : no_json_number(at, end);
        size_t step = word > 0 ? word : *at == '\\' && at + 1 < end ? 2 : 1;
        quoted ^= *at == '"';
        if (word > 0)
            *to++ = '"';
        memcpy(to, at, step);
        to += step;
        at += step;
        if (word > 0)
            *to++ = '"';
    }
    json_bare(&show->json, NULL, (trail_string){fixed, (size_t)(to - fixed)});
    free(fixed);
}

static void json_cell(struct show *show, size_t column, const struct cell *cell)
{
    const char *name = show->duckdb->column_name(&show->result, column);
    json_key(&show->json, text_from(name));
    if (cell->null)
        json_null(&show->json, NULL);
    else if (cell->truth)
        json_bool(&show->json, NULL, cell->text.data[0] == 't');
    else if (is_nested(show->types[column]))
        json_nested(show, cell->text);
    else if (is_unquoted(show->types[column], cell))
        json_bare(&show->json, NULL, cell->text);
    else
        json_text(&show->json, NULL, cell->text);
}

static bool is_csv(const struct show *show)
{
    return show->format == SQL_CSV || show->format == SQL_CSV_SAFE;
}

static bool write_stdout(void *context, const void *data, size_t size)
{
    (void)context;
    return fwrite(data, 1, size, stdout) == size;
}

static void csv_text(struct show *show, trail_string text)
{
    out_csv(&show->csv, text.data, text.size, show->format == SQL_CSV_SAFE ? CSV_SAFE : CSV_EXACT);
}

static void csv_cell(struct show *show, const struct cell *cell)
{
    if (cell->number)
        out_bytes(&show->csv, cell->text.data, cell->text.size);
    else if (!cell->null)
        csv_text(show, cell->text);
}

static void csv_titles(struct show *show)
{
    for (size_t i = 0; i < show->columns; i++) {
        const char *name = show->duckdb->column_name(&show->result, i);
        if (i > 0)
            out_char(&show->csv, ',');
        csv_text(show, text_from(name));
    }
    out_char(&show->csv, '\n');
}

/* MARK: Tables */

/* Text for a table; the caller frees it. A plan keeps its line breaks. NULL if out of memory. */
static char *shown_text(const struct show *show, trail_string text)
{
    char *all = NULL;
    size_t size = 0;
    FILE *to = show->plan ? open_memstream(&all, &size) : NULL;
    if (!to)
        return show->plan ? NULL : plain_new(text.data, text.size);
    while (text.size > 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t line = end ? (size_t)(end - text.data) : text.size;
        show_plain_on(to, (trail_string){text.data, line});
        if (end)
            fputc('\n', to);
        text.data += line + (end != NULL);
        text.size -= line + (end != NULL);
    }
    return fclose(to) == 0 ? all : NULL;
}

static void print_cell(const struct show *show, size_t column, const char *text)
{
    int pad = show->widths[column] - utf8_columns(text);
    bool last = column + 1 == show->columns, right = is_number(show->types[column]);
    printf("%s%*s", column > 0 ? "  " : "", right && pad > 0 ? pad : 0, "");
    fputs(text, stdout);
    printf("%*s%s", !right && !last && pad > 0 ? pad : 0, "", last ? "\n" : "");
}

static void measure(struct show *show, size_t column, const char *text)
{
    int width = utf8_columns(text);
    if (width > show->widths[column])
        show->widths[column] = width;
}

static void print_titles(struct show *show)
{
    char **titles = calloc(show->columns + 1, sizeof *titles);
    show->failed |= !titles;
    for (size_t i = 0; titles && i < show->columns; i++) {
        const char *name = show->duckdb->column_name(&show->result, i);
        titles[i] = plain_new(name, strlen(name));
        measure(show, i, titles[i] ? titles[i] : "");
    }
    for (size_t i = 0; titles && i < show->columns; i++) {
        print_cell(show, i, titles[i] ? titles[i] : "");
        free(titles[i]);
    }
    free(titles);
}

/* Prints the rows so far, once the widths are known. */
static void print_kept(struct show *show)
{
    if (show->measured)
        return;
    show->measured = true;
    print_titles(show);
    for (size_t i = 0; show->columns > 0 && i < show->kept_count; i++)
        print_cell(show, i % show->columns, show->kept[i]);
}

static void table_cell(struct show *show, size_t column, const struct cell *cell)
{
    char *text = shown_text(show, cell->null ? text_from("NULL") : cell->text);
    show->failed |= !text;
    if (show->rows >= TABLE_MEASURED) {
        print_kept(show);
        print_cell(show, column, text ? text : "");
        free(text);
        return;
    }
    measure(show, column, text ? text : "");
    if (text)
        show->kept[show->kept_count++] = text;
}

/* MARK: Results */

/* DuckDB's advice names settings that queries cannot change. */
static void print_query_error(const char *message)
{
    if (duckdb_print_error(message))
        fputs("trail: allow it more with --memory-limit=4G, or to use disk space with "
              "--spill=DIR;\ntrail: --from=TIME and --to=TIME select less data\n",
              stderr);
}

static void show_row(struct show *show, void *chunk, uint64_t row)
{
    struct cell cell;
    if (show->format == SQL_JSON)
        json_open(&show->json, NULL, '{');
    for (size_t i = 0; i < show->columns; i++) {
        void *vector = show->duckdb->data_chunk_get_vector(chunk, i);
        get_cell(show, vector, i, row, &cell);
        if (show->format == SQL_JSON)
            json_cell(show, i, &cell);
        else if (show->format == SQL_TABLE)
            table_cell(show, i, &cell);
        else if (i > 0)
            out_char(&show->csv, ',');
        if (is_csv(show))
            csv_cell(show, &cell);
    }
    if (show->format == SQL_JSON)
        json_close(&show->json, '}');
    else if (is_csv(show))
        out_char(&show->csv, '\n');
    show->rows++;
}

static int show_rows(struct show *show)
{
    struct duckdb *duckdb = show->duckdb;
    void *chunk;
    if (show->format == SQL_JSON)
        json_open(&show->json, NULL, '[');
    else if (is_csv(show))
        csv_titles(show);
    while (!show->failed && !ferror(stdout) && (chunk = duckdb->fetch_chunk(show->result))) {
        uint64_t count = duckdb->data_chunk_get_size(chunk);
        for (uint64_t row = 0; row < count; row++)
            show_row(show, chunk, row);
        duckdb->destroy_data_chunk(&chunk);
        if (count == 0)
            break;
    }
    if (show->format == SQL_JSON) {
        json_close(&show->json, ']');
        putchar('\n');
    } else if (show->format == SQL_TABLE) {
        print_kept(show);
    } else {
        out_flush(&show->csv);
    }
    const char *message = duckdb->result_error(&show->result);
    if (message && *message) {
        print_query_error(message);
        return EXIT_INOUT;
    }
    return show->failed ? EXIT_INOUT : EXIT_GOOD;
}

static int show_result(struct show *show)
{
    int code = EXIT_INOUT;
    show->widths = calloc(show->columns + 1, sizeof *show->widths);
    show->kept = calloc(show->columns * TABLE_MEASURED + 1, sizeof *show->kept);
    bool ready = !is_csv(show) || out_init(&show->csv, write_stdout, NULL);
    if (show->widths && show->kept && ready)
        code = show_rows(show);
    out_drop(&show->csv);
    for (size_t i = 0; show->kept && i < show->kept_count; i++)
        free(show->kept[i]);
    free(show->kept);
    free(show->widths);
    return code;
}

/* MARK: Statements */

/* Returns how to select a column that is not plain: lists and structs become JSON in JSON
 * output. */
static const char *cast_of(int type, enum sql_format format)
{
    if (is_plain(type))
        return "%sc%zu AS \"";
    return is_nested(type) && format == SQL_JSON ? "%sCAST(to_json(c%zu) AS VARCHAR) AS \""
                                                 : "%sCAST(c%zu AS VARCHAR) AS \"";
}

/*
 * Returns the same query with all other types cast to text or JSON: dates, lists, enumerations.
 * Keeps the order of rows. Returns NULL if no cast is needed or if out of memory; the caller frees
 * the result.
 */
static char *as_text(const struct show *show, void *statement, const char *sql, size_t columns)
{
    struct duckdb *duckdb = show->duckdb;
    char *text = NULL;
    size_t size = 0;
    bool needed = false;
    for (size_t i = 0; i < columns; i++)
        needed |= !is_plain(show->types[i]);
    FILE *to = needed ? open_memstream(&text, &size) : NULL;
    if (!to)
        return NULL;
    fputs("SELECT ", to);
    for (size_t i = 0; i < columns; i++) {
        const char *name = duckdb->prepared_statement_column_name(statement, i);
        fprintf(to, cast_of(show->types[i], show->format), i > 0 ? ", " : "", i);
        for (const char *at = name ? name : ""; *at; at++)
            fprintf(to, *at == '"' ? "\"\"" : "%c", *at);
        fputc('"', to);
        duckdb->free((void *)(uintptr_t)name);
    }
    fprintf(to, " FROM (%s\n) AS t(", sql);
    for (size_t i = 0; i < columns; i++)
        fprintf(to, "%sc%zu", i > 0 ? ", " : "", i);
    fputc(')', to);
    return fclose(to) == 0 ? text : NULL;
}

static int fail_result(struct duckdb *duckdb, duckdb_result *result)
{
    print_query_error(duckdb->result_error(result));
    duckdb->destroy_result(result);
    return EXIT_USAGE;
}

/* Runs what must precede the last statement: PIVOT first collects its columns. */
static int run_statement(struct duckdb *duckdb, void *statement)
{
    duckdb_result result;
    if (duckdb->execute_prepared(statement, &result) != 0)
        return fail_result(duckdb, &result);
    duckdb->destroy_result(&result);
    return EXIT_GOOD;
}

static int fail_statement(struct duckdb *duckdb, void **statement)
{
    print_query_error(duckdb->prepare_error(*statement));
    duckdb->destroy_prepare(statement);
    return EXIT_USAGE;
}

/* Prepares the last of the statements into which DuckDB splits one, and runs the others. */
static int prepare_last(struct duckdb *duckdb, const char *sql, void **last)
{
    void *all = NULL;
    uint64_t count = duckdb->extract_statements(duckdb->connection, sql, &all);
    int code = EXIT_GOOD;
    *last = NULL;
    if (count == 0) {
        print_query_error(duckdb->extract_statements_error(all));
        code = EXIT_USAGE;
    }
    for (uint64_t i = 0; i < count && code == EXIT_GOOD; i++) {
        if (duckdb->prepare_extracted_statement(duckdb->connection, all, i, last) != 0)
            code = fail_statement(duckdb, last);
        else if (i + 1 < count)
            code = run_statement(duckdb, *last);
        if (i + 1 < count)
            duckdb->destroy_prepare(last);
    }
    duckdb->destroy_extracted(&all);
    return code;
}

/* Prints the result of a statement that was run. */
static int show_all(struct show *show)
{
    show->columns = (size_t)show->duckdb->column_count(&show->result);
    int code = show_result(show);
    show->duckdb->destroy_result(&show->result);
    return code;
}

/* Runs a query and prints its rows as they arrive. */
static int show_query(struct show *show, void **statement, const char *sql)
{
    struct duckdb *duckdb = show->duckdb;
    size_t columns = (size_t)duckdb->prepared_statement_column_count(*statement);
    int *types = calloc(columns + 1, sizeof *types), code = types ? EXIT_GOOD : EXIT_INOUT;
    show->types = types;
    for (size_t i = 0; types && i < columns; i++)
        types[i] = duckdb->prepared_statement_column_type(*statement, i);
    char *wrapped = types ? as_text(show, *statement, sql, columns) : NULL;
    if (wrapped) {
        duckdb->destroy_prepare(statement);
        code = prepare_last(duckdb, wrapped, statement);
    }
    if (code == EXIT_GOOD)
        code = duckdb->execute_prepared_streaming(*statement, &show->result) != 0
                   ? fail_result(duckdb, &show->result)
                   : show_all(show);
    free(wrapped);
    free(types);
    return code;
}

/* Runs any other statement. Only EXPLAIN prints a result: a name and a plan. */
static int show_other(struct show *show, void *statement)
{
    static const int types[] = {DUCKDB_VARCHAR, DUCKDB_VARCHAR};
    struct duckdb *duckdb = show->duckdb;
    show->types = types;
    if (duckdb->execute_prepared(statement, &show->result) != 0)
        return fail_result(duckdb, &show->result);
    if (show->plan)
        return show_all(show);
    duckdb->destroy_result(&show->result);
    return EXIT_GOOD;
}

int sql_show(struct duckdb *duckdb, const char *sql, enum sql_format format, bool shown)
{
    void *statement;
    int code = prepare_last(duckdb, sql, &statement);
    int type = code == EXIT_GOOD ? duckdb->prepared_statement_type(statement) : 0;
    struct show show = {.duckdb = duckdb,
                        .json = json_on_stdout(),
                        .format = format,
                        .plan = type == DUCKDB_STATEMENT_EXPLAIN};
    if (code == EXIT_GOOD && !shown)
        code = run_statement(duckdb, statement);
    else if (code == EXIT_GOOD && type == DUCKDB_STATEMENT_SELECT)
        code = show_query(&show, &statement, sql);
    else if (code == EXIT_GOOD)
        code = show_other(&show, statement);
    duckdb->destroy_prepare(&statement);
    return code;
}
