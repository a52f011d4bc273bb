/* See scan.h. */
#include "sql/scan.h"

#include <string.h>

/* MARK: Counting */

/* Counts up to the end of the next batch. */
static long count_on(struct sql_scan *scan)
{
    const trail_event *events;
    trail_reader_stats stats;
    long more = trail_reader_next_batch(scan->reading.reader, &events);
    trail_reader_get_stats(scan->reading.reader, &stats);
    scan->counted = stats.events;
    return more;
}

bool scan_open_count(struct sql_scan *scan, struct traces *traces, size_t trace)
{
    trail_error err;
    trail_reader_options options = traces->reader;
    options.verdict_only = true;
    if (traces->count > 1) /* each has a thread of DuckDB */
        options.threads = 1;
    scan->reading.source = input_open(&traces->inputs[trace], &err);
    if (!scan->reading.source)
        return false;
    scan->reading.reader = trail_reader_open(scan->reading.source, &options, &err);
    return scan->reading.reader && count_on(scan) >= 0;
}

int scan_count(struct sql_scan *scan, size_t *count, trail_error *err)
{
    long more = 1;
    while (more > 0 && scan->counted - scan->given < TRAIL_TABLE_ROWS)
        more = count_on(scan);
    uint64_t left = scan->counted - scan->given;
    *count = left < TRAIL_TABLE_ROWS ? (size_t)left : TRAIL_TABLE_ROWS;
    scan->given += *count;
    if (*count > 0)
        return 1;
    if (more < 0)
        *err = *trail_reader_error(scan->reading.reader);
    return (int)more;
}

/* MARK: Rows */

void *scan_type(const struct duckdb *duckdb, const trail_table_column *column)
{
    static const int types[] = {
        [TRAIL_CELL_I64] = DUCKDB_BIGINT,   [TRAIL_CELL_I32] = DUCKDB_INTEGER,
        [TRAIL_CELL_BOOL] = DUCKDB_BOOLEAN, [TRAIL_CELL_TEXT] = DUCKDB_VARCHAR,
        [TRAIL_CELL_DATE] = DUCKDB_DATE,
    };
    const char *words[256];
    uint64_t count = 0;
    if (column->cell != TRAIL_CELL_ENUM)
        return duckdb->create_logical_type(types[column->cell]);
    for (; column->words[count]; count++)
        words[count] = column->words[count];
    return duckdb->create_enum_type(words, count);
}

static void give_texts(const struct duckdb *duckdb, void *vector, const trail_values *values,
                       size_t count, bool copies)
{
    duckdb_text *to = duckdb->vector_get_data(vector);
    const trail_string *from = values->text;
    for (size_t i = 0; i < count; i++) {
        if (from[i].size <= DUCKDB_INLINE_TEXT) {
            to[i] = (duckdb_text){.size = (uint32_t)from[i].size};
            if (from[i].size > 0) /* the data of an empty text may be NULL */
                memcpy(to[i].start, from[i].data, from[i].size);
        } else if (copies || values->passes || from[i].size > UINT32_MAX) {
            duckdb->vector_assign_string_element_len(vector, i, from[i].data, from[i].size);
        } else {
            to[i].size = (uint32_t)from[i].size;
            memcpy(to[i].start, from[i].data, sizeof to[i].start);
            to[i].data = from[i].data;
        }
    }
}

size_t scan_cell_size(trail_cell cell)
{
    return cell == TRAIL_CELL_TEXT                             ? sizeof(trail_string)
           : cell == TRAIL_CELL_I64                            ? 8
           : cell == TRAIL_CELL_I32 || cell == TRAIL_CELL_DATE ? 4
                                                               : 1;
}

void scan_give(const struct duckdb *duckdb, void *vector, trail_cell cell,
               const trail_values *values, size_t count, bool copies)
{
    if (cell == TRAIL_CELL_TEXT)
        give_texts(duckdb, vector, values, count, copies);
    else
        memcpy(duckdb->vector_get_data(vector), values->any, count * scan_cell_size(cell));
    if (!values->valid)
        return;
    duckdb->vector_ensure_validity_writable(vector);
    memcpy(duckdb->vector_get_validity(vector), values->valid, (count + 63) / 64 * 8);
}
