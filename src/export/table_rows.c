/*
 * Rows of the tables as CSV (RFC 4180, except that lines end with \n), as RowBinary and as Parquet:
 * all wanted tables in one pass, each to its own sink.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trail/tables.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/error.h"
#include "base/grow.h"
#include "base/out.h"
#include "base/varint.h"
#include "export/parquet.h"

/* Words of up to this many bytes are copied with this many bytes, which takes two instructions. */
#define SHORT_WORD 32

/* Bytes of any other value without its text, of the byte or comma before it, and of a line end. */
#define CELL_MOST (U64_DIGITS + 4)

struct cell {
    const trail_table_column *column;
    size_t number;             /* of the column */
    const trail_string *words; /* of enumerations and booleans, as in the output */
};

/*
 * The columns common to all tables have the same values in every row, so their part of the row is
 * written once, with what ends the row.
 */
struct table_writer {
    struct out out;
    bool open;
    struct cell cells[32]; /* the wanted columns; from `own` on they are common to all tables */
    size_t own, count;
    size_t row_most; /* bytes of a row without texts */
    char *common;    /* NULL: not yet written */
    size_t common_size, common_capacity;
    /* Parquet: the members above are not used. */
    struct parquet *parquet;
    struct parquet_rows *collected;
};

struct rows_writer {
    trail_rows_format format;
    enum csv_style style;
    struct arena arena; /* words */
    struct table_writer tables[TRAIL_TABLES];
};

static bool is_null(const trail_values *values, size_t row)
{
    return values->valid && (values->valid[row / 64] >> (row % 64) & 1) == 0;
}

static inline char *put_word(char *at, trail_string word)
{
    memcpy(at, word.data, word.size <= SHORT_WORD ? SHORT_WORD : word.size);
    return at + word.size;
}

/* MARK: CSV */

static char *csv_number(char *at, int64_t value)
{
    *at = '-';
    return value < 0 ? u64_put(at + 1, -(uint64_t)value) : u64_put(at, (uint64_t)value);
}

static void csv_date(struct out *out, int32_t days)
{
    time_t seconds = (time_t)days * 86400;
    struct tm day;
    if (gmtime_r(&seconds, &day))
        out_format(out, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

static void csv_cell(struct out *out, const struct cell *cell, const trail_values *values,
                     size_t row, enum csv_style style)
{
    switch (cell->column->cell) {
    case TRAIL_CELL_I64:
        out->at = csv_number(out->at, values->i64[row]);
        break;
    case TRAIL_CELL_I32:
        out->at = csv_number(out->at, values->i32[row]);
        break;
    case TRAIL_CELL_BOOL:
    case TRAIL_CELL_ENUM:
        out->at = put_word(out->at, cell->words[values->u8[row]]);
        break;
    case TRAIL_CELL_TEXT:
        out_csv(out, values->text[row].data, values->text[row].size, style);
        break;
    case TRAIL_CELL_DATE:
        csv_date(out, values->i32[row]);
        break;
    }
}

/* Writes cells of a row; those that are not texts have room. */
static void csv_cells(struct out *out, const struct table_writer *table, size_t from, size_t to,
                      const trail_rows *rows, size_t row, enum csv_style style)
{
    for (size_t i = from; i < to; i++) {
        const struct cell *cell = &table->cells[i];
        const trail_values *values = &rows->columns[cell->number];
        if (i > 0)
            *out->at++ = ',';
        if (is_null(values, row))
            continue;
        csv_cell(out, cell, values, row, style);
        if (cell->column->cell == TRAIL_CELL_TEXT)
            out_room(out, table->row_most);
    }
}

static void csv_titles(const struct table_writer *table, struct out *out)
{
    for (size_t i = 0; i < table->count; i++) {
        if (i > 0)
            out_char(out, ',');
        out_str(out, table->cells[i].column->name);
    }
    out_char(out, '\n');
}

/*
 * MARK: RowBinary: little-endian numbers, texts preceded by their size, a byte per nullable value
 */

/*
 * Compilers make one store of the loop, also where `size` is smaller: what follows is overwritten.
 */
static inline char *binary_number(char *at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < sizeof value; i++)
        at[i] = (char)(value >> (8 * i) & 0xff);
    return at + size;
}

static void binary_text(struct out *out, trail_string text)
{
    out->at += uvarint_put((uint8_t *)out->at, text.size);
    out_bytes(out, text.data, text.size);
}

/* A NULL is stored as zero, or as an empty text, so it is written and then overwritten. */
static void binary_cells(struct out *out, const struct table_writer *table, size_t from, size_t to,
                         const trail_rows *rows, size_t row)
{
    char *at = out->at;
    for (size_t i = from; i < to; i++) {
        const struct cell *cell = &table->cells[i];
        const trail_values *values = &rows->columns[cell->number];
        bool null = is_null(values, row);
        *at = (char)null;
        at += cell->column->nullable;
        char *value = at;
        switch (cell->column->cell) {
        case TRAIL_CELL_I64:
            at = binary_number(at, (uint64_t)values->i64[row], 8);
            break;
        case TRAIL_CELL_I32:
            at = binary_number(at, (uint32_t)values->i32[row], 4);
            break;
        case TRAIL_CELL_BOOL:
        case TRAIL_CELL_ENUM:
            at = put_word(at, cell->words[values->u8[row]]);
            break;
        case TRAIL_CELL_TEXT:
            if (null)
                break;
            out->at = at;
            binary_text(out, values->text[row]);
            out_room(out, table->row_most);
            value = at = out->at;
            break;
        case TRAIL_CELL_DATE:
            at = binary_number(at, (uint32_t)values->i32[row], 2);
            break;
        }
        at = null ? value : at;
    }
    out->at = at;
}

/* MARK: Rows */

static void put_cells(const struct rows_writer *writer, struct out *out,
                      const struct table_writer *table, size_t from, size_t to,
                      const trail_rows *rows, size_t row)
{
    out_room(out, table->row_most);
    if (writer->format == TRAIL_ROWS_CSV)
        csv_cells(out, table, from, to, rows, row, writer->style);
    else
        binary_cells(out, table, from, to, rows, row);
}

static bool append_common(void *context, const void *data, size_t size)
{
    struct table_writer *table = context;
    if (!GROW(table->common, table->common_capacity, table->common_size + size))
        return false;
    memcpy(table->common + table->common_size, data, size);
    table->common_size += size;
    return true;
}

/* Writes the part of a row that all rows have. Returns false if out of memory. */
static bool make_common(const struct rows_writer *writer, struct table_writer *table,
                        const trail_rows *rows)
{
    struct out out;
    trail_error err;
    if (!out_init(&out, append_common, table))
        return false;
    put_cells(writer, &out, table, table->own, table->count, rows, 0);
    if (writer->format == TRAIL_ROWS_CSV)
        out_char(&out, '\n');
    return out_finish(&out, &err) == 0;
}

static bool put_rows(const struct rows_writer *writer, struct table_writer *table,
                     const trail_rows *rows)
{
    if (!table->common && !make_common(writer, table, rows))
        return false;
    for (size_t row = 0; row < rows->count; row++) {
        put_cells(writer, &table->out, table, 0, table->own, rows, row);
        out_bytes(&table->out, table->common, table->common_size);
    }
    return true;
}

/* MARK: Writing */

/* Returns a word as in the output, followed by what put_word copies; no data: out of memory. */
static trail_string output_word(struct rows_writer *writer, const trail_table_column *column,
                                const char *word, size_t number)
{
    size_t size = strlen(word), room = size > SHORT_WORD ? size : SHORT_WORD;
    char *data = arena_alloc(&writer->arena, UVARINT_MAX_SIZE + room), *at = data;
    if (!data)
        return (trail_string){0};
    if (writer->format == TRAIL_ROWS_ROWBINARY && column->cell == TRAIL_CELL_BOOL) {
        *at = (char)number;
        return (trail_string){data, 1};
    }
    if (writer->format == TRAIL_ROWS_ROWBINARY)
        at += uvarint_put((uint8_t *)at, size);
    memcpy(at, word, size + 1);
    return (trail_string){data, (size_t)(at - data) + size};
}

static bool open_cell(struct rows_writer *writer, struct table_writer *table, size_t number,
                      const trail_table_column *column)
{
    static const char *const booleans[] = {"false", "true", NULL};
    const char *const *words = column->cell == TRAIL_CELL_BOOL ? booleans : column->words;
    size_t longest = 0, count = 0;
    while (words && words[count])
        count++;
    trail_string *output = arena_alloc(&writer->arena, count * sizeof *output);
    for (size_t i = 0; output && i < count; i++) {
        output[i] = output_word(writer, column, words[i], i);
        if (!output[i].data)
            return false;
        longest = output[i].size > longest ? output[i].size : longest;
    }
    table->cells[table->count++] = (struct cell){column, number, output};
    table->row_most += CELL_MOST + (longest > SHORT_WORD ? longest : SHORT_WORD);
    return output != NULL;
}

static bool open_parquet(struct table_writer *table, trail_table_id id, uint32_t wanted,
                         const trail_sink *sink)
{
    table->parquet = parquet_open(trail_table_get(id), wanted, sink);
    if (table->parquet)
        table->collected = parquet_rows_new(table->parquet);
    return table->collected != NULL;
}

static bool open_table(struct rows_writer *writer, trail_table_id id, uint32_t wanted,
                       const trail_sink *sink)
{
    const trail_table *definition = trail_table_get(id);
    struct table_writer *table = &writer->tables[id];
    if (writer->format == TRAIL_ROWS_PARQUET)
        return open_parquet(table, id, wanted, sink);
    size_t common = definition->column_count - TRAIL_TABLE_COMMON;
    for (size_t i = 0; i < definition->column_count; i++) {
        if ((wanted >> i & 1) != 0 && !open_cell(writer, table, i, &definition->columns[i]))
            return false;
        if (i < common)
            table->own = table->count;
    }
    table->open = out_init(&table->out, sink->write, sink->context);
    if (table->open && writer->format == TRAIL_ROWS_CSV)
        csv_titles(table, &table->out);
    return table->open;
}

static bool writer_open(struct rows_writer *writer, const trail_tables_options *options,
                        const trail_sink *sinks)
{
    for (int i = 0; i < TRAIL_TABLES; i++)
        if (options->wanted[i] != 0 &&
            !open_table(writer, (trail_table_id)i, options->wanted[i], &sinks[i]))
            return false;
    return true;
}

static int close_parquet(struct table_writer *table, bool keep, trail_error *err)
{
    bool good = !table->collected || parquet_rows_end(table->collected, keep);
    int result = parquet_close(table->parquet, keep, err);
    return good || result < 0 ? result : error_no_memory(err);
}

static int close_table(struct table_writer *table, bool keep, trail_error *err)
{
    int result = 0;
    free(table->common);
    if (table->parquet)
        return close_parquet(table, keep, err);
    if (table->open && keep)
        result = out_finish(&table->out, err);
    else if (table->open)
        out_drop(&table->out);
    return result;
}

/* Ends all outputs and reports the first error. */
static int writer_close(struct rows_writer *writer, bool keep, trail_error *err)
{
    int result = 0;
    for (int i = 0; i < TRAIL_TABLES; i++) {
        trail_error one;
        if (close_table(&writer->tables[i], keep, &one) < 0 && result == 0) {
            result = -1;
            *err = one;
        }
    }
    arena_free(&writer->arena);
    return result;
}

/* Returns false if the output has failed, which writer_close reports, or if out of memory. */
static bool write_some(struct rows_writer *writer, const trail_rows *rows)
{
    struct table_writer *table = &writer->tables[rows->table];
    if (table->parquet)
        return parquet_rows_add(table->collected, rows);
    return put_rows(writer, table, rows) && !table->out.failed;
}

static int write_rows(struct rows_writer *writer, trail_tables *tables, uint64_t *counts,
                      trail_error *err)
{
    trail_rows rows;
    int more;
    while ((more = trail_tables_next(tables, &rows, err)) > 0) {
        if (!write_some(writer, &rows))
            return error_no_memory(err); /* or what writer_close reports */
        if (counts)
            counts[rows.table] += rows.count;
    }
    return more;
}

int trail_tables_write(trail_reader *reader, const trail_tables_options *options,
                       trail_rows_format format, const trail_sink sinks[TRAIL_TABLES],
                       uint64_t rows[TRAIL_TABLES], trail_error *err)
{
    trail_error lost;
    if (rows)
        memset(rows, 0, TRAIL_TABLES * sizeof *rows);
    struct rows_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return error_no_memory(err);
    writer->format = format;
    writer->style = options->csv_safe ? CSV_SAFE : CSV_EXACT;
    trail_tables *tables = trail_tables_open(reader, options, err);
    bool good = tables && writer_open(writer, options, sinks);
    if (tables && !good)
        (void)error_no_memory(err);
    int result = good ? write_rows(writer, tables, rows, err) : -1;
    if (writer_close(writer, good, &lost) < 0) {
        *err = lost;
        result = -1;
    }
    trail_tables_close(tables);
    free(writer);
    return result;
}
