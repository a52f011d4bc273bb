/*
 * Rows of the tables as CSV (RFC 4180, except that lines end with \n), as RowBinary and as Parquet:
 * all wanted tables in one pass, each to its own sink.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trail/tables.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/out.h"
#include "export/parquet.h"

/* Each wanted table is open in one of the two forms. */
struct rows_writer {
    trail_rows_format format;
    enum csv_style style;
    struct out outs[TRAIL_TABLES]; /* of CSV and RowBinary */
    bool open[TRAIL_TABLES];
    struct parquet *parquet[TRAIL_TABLES];
    struct parquet_rows *collected[TRAIL_TABLES];
};

static bool is_null(const trail_values *values, size_t row)
{
    return values->valid && (values->valid[row / 64] >> (row % 64) & 1) == 0;
}

static trail_string word(const trail_table_column *column, uint8_t value)
{
    return (trail_string){column->words[value], strlen(column->words[value])};
}

/* MARK: CSV */

static void csv_date(struct out *out, int32_t days)
{
    time_t seconds = (time_t)days * 86400;
    struct tm day;
    if (gmtime_r(&seconds, &day))
        out_format(out, "%04d-%02d-%02d", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
}

static void csv_value(struct out *out, const trail_table_column *column, const trail_values *values,
                      size_t row, enum csv_style style)
{
    if (is_null(values, row))
        return;
    switch (column->cell) {
    case TRAIL_CELL_I64:
        out_i64(out, values->i64[row]);
        break;
    case TRAIL_CELL_I32:
        out_i64(out, values->i32[row]);
        break;
    case TRAIL_CELL_BOOL:
        out_str(out, values->u8[row] ? "true" : "false");
        break;
    case TRAIL_CELL_ENUM:
        out_str(out, column->words[values->u8[row]]);
        break;
    case TRAIL_CELL_TEXT:
        out_csv(out, values->text[row].data, values->text[row].size, style);
        break;
    case TRAIL_CELL_DATE:
        csv_date(out, values->i32[row]);
        break;
    }
}

static void csv_rows(struct out *out, const trail_table *table, const trail_rows *rows,
                     enum csv_style style)
{
    for (size_t row = 0; row < rows->count; row++) {
        bool comma = false;
        for (size_t i = 0; i < table->column_count; i++) {
            if (!rows->columns[i].any)
                continue;
            if (comma)
                out_char(out, ',');
            comma = true;
            csv_value(out, &table->columns[i], &rows->columns[i], row, style);
        }
        out_char(out, '\n');
    }
}

static void csv_titles(struct out *out, const trail_table *table, uint32_t wanted)
{
    bool comma = false;
    for (size_t i = 0; i < table->column_count; i++) {
        if ((wanted >> i & 1) == 0)
            continue;
        if (comma)
            out_char(out, ',');
        comma = true;
        out_str(out, table->columns[i].name);
    }
    out_char(out, '\n');
}

/*
 * MARK: RowBinary: little-endian numbers, texts preceded by their size, a byte per nullable value
 */

/*
 * Compilers make one store of the loop, also where `size` is smaller: what follows is overwritten.
 */
static void binary_number(struct out *out, uint64_t value, unsigned size)
{
    out_room(out, sizeof value);
    char *at = out->at;
    for (unsigned i = 0; i < sizeof value; i++)
        at[i] = (char)(value >> (8 * i) & 0xff);
    out->at = at + size;
}

static void binary_text(struct out *out, trail_string text)
{
    uint64_t size = text.size;
    for (; size >= 0x80; size >>= 7)
        out_char(out, (char)((size & 0x7f) | 0x80));
    out_char(out, (char)size);
    out_bytes(out, text.data, text.size);
}

static void binary_value(struct out *out, const trail_table_column *column,
                         const trail_values *values, size_t row)
{
    bool null = is_null(values, row);
    if (column->nullable)
        out_char(out, (char)null);
    if (null)
        return;
    switch (column->cell) {
    case TRAIL_CELL_I64:
        binary_number(out, (uint64_t)values->i64[row], 8);
        break;
    case TRAIL_CELL_I32:
        binary_number(out, (uint32_t)values->i32[row], 4);
        break;
    case TRAIL_CELL_BOOL:
        out_char(out, (char)values->u8[row]);
        break;
    case TRAIL_CELL_ENUM:
        binary_text(out, word(column, values->u8[row]));
        break;
    case TRAIL_CELL_TEXT:
        binary_text(out, values->text[row]);
        break;
    case TRAIL_CELL_DATE:
        binary_number(out, (uint32_t)values->i32[row], 2);
        break;
    }
}

static void binary_rows(struct out *out, const trail_table *table, const trail_rows *rows)
{
    for (size_t row = 0; row < rows->count; row++)
        for (size_t i = 0; i < table->column_count; i++)
            if (rows->columns[i].any)
                binary_value(out, &table->columns[i], &rows->columns[i], row);
}

/* MARK: Writing */

static bool open_parquet(struct rows_writer *writer, int i, uint32_t wanted, const trail_sink *sink)
{
    writer->parquet[i] = parquet_open(trail_table_get((trail_table_id)i), wanted, sink);
    if (writer->parquet[i])
        writer->collected[i] = parquet_rows_new(writer->parquet[i]);
    return writer->collected[i] != NULL;
}

static bool open_out(struct rows_writer *writer, int i, uint32_t wanted, const trail_sink *sink)
{
    writer->open[i] = out_init(&writer->outs[i], sink->write, sink->context);
    if (writer->open[i] && writer->format == TRAIL_ROWS_CSV)
        csv_titles(&writer->outs[i], trail_table_get((trail_table_id)i), wanted);
    return writer->open[i];
}

static bool writer_open(struct rows_writer *writer, const trail_tables_options *options,
                        const trail_sink *sinks)
{
    bool good = true;
    for (int i = 0; i < TRAIL_TABLES && good; i++)
        if (options->wanted[i] != 0)
            good = writer->format == TRAIL_ROWS_PARQUET
                       ? open_parquet(writer, i, options->wanted[i], &sinks[i])
                       : open_out(writer, i, options->wanted[i], &sinks[i]);
    return good;
}

static int close_parquet(struct rows_writer *writer, int i, bool keep, trail_error *err)
{
    bool good = true;
    int result = 0;
    if (writer->collected[i])
        good = parquet_rows_end(writer->collected[i], keep);
    if (writer->parquet[i])
        result = parquet_close(writer->parquet[i], keep, err);
    return good || result < 0 ? result : error_no_memory(err);
}

static int close_out(struct rows_writer *writer, int i, bool keep, trail_error *err)
{
    if (writer->open[i] && keep)
        return out_finish(&writer->outs[i], err);
    if (writer->open[i])
        out_drop(&writer->outs[i]);
    return 0;
}

/* Ends all outputs and reports the first error. */
static int writer_close(struct rows_writer *writer, bool keep, trail_error *err)
{
    int result = 0;
    for (int i = 0; i < TRAIL_TABLES; i++) {
        trail_error one;
        bool failed =
            close_parquet(writer, i, keep, &one) < 0 || close_out(writer, i, keep, &one) < 0;
        if (failed && result == 0) {
            result = -1;
            *err = one;
        }
    }
    return result;
}

/* Returns false if it fails, which writer_close reports. */
static bool write_some(struct rows_writer *writer, const trail_rows *rows)
{
    struct out *out = &writer->outs[rows->table];
    const trail_table *table = trail_table_get(rows->table);
    switch (writer->format) {
    case TRAIL_ROWS_CSV:
        csv_rows(out, table, rows, writer->style);
        break;
    case TRAIL_ROWS_ROWBINARY:
        binary_rows(out, table, rows);
        break;
    case TRAIL_ROWS_PARQUET:
        return parquet_rows_add(writer->collected[rows->table], rows);
    }
    return !out->failed;
}

static int write_rows(struct rows_writer *writer, trail_tables *tables, uint64_t *counts,
                      trail_error *err)
{
    trail_rows rows;
    int more;
    while ((more = trail_tables_next(tables, &rows, err)) > 0) {
        if (!write_some(writer, &rows))
            return 0;
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
