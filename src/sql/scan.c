/* See scan.h. */
#include "sql/scan.h"

#include <string.h>

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
