#include "tables/rows.h"

#include <stdlib.h>
#include <string.h>

static size_t cell_size(trail_cell cell)
{
    switch (cell) {
    case TRAIL_CELL_I64:
        return sizeof(int64_t);
    case TRAIL_CELL_I32:
    case TRAIL_CELL_DATE:
        return sizeof(int32_t);
    case TRAIL_CELL_TEXT:
        return sizeof(trail_string);
    default:
        return 1;
    }
}

static bool is_common(const struct rows *rows, size_t column)
{
    return column + TRAIL_TABLE_COMMON >= rows->table->column_count;
}

/* Makes room for `capacity` rows in a column; new rows are marked valid. */
static bool column_grow(struct column *column, size_t size, size_t old, size_t capacity)
{
    char *data = reallocarray(column->data, capacity, size);
    if (!data)
        return false;
    column->data = data;
    uint64_t *valid = reallocarray(column->valid, capacity / 64, sizeof *valid);
    if (!valid)
        return false;
    memset(valid + old / 64, 0xff, (capacity - old) / 64 * sizeof *valid);
    column->valid = valid;
    return true;
}

bool rows_init(struct rows *rows, const trail_table *table, uint32_t wanted,
               const trail_values *common)
{
    rows->table = table;
    rows->common = common;
    for (size_t i = 0; i < table->column_count; i++)
        if (!is_common(rows, i) && (wanted >> i & 1) != 0 &&
            !column_grow(&rows->columns[i], cell_size(table->columns[i].cell), 0, TRAIL_TABLE_ROWS))
            return false;
    rows->capacity = TRAIL_TABLE_ROWS;
    for (size_t i = 0; i < TRAIL_TABLE_COMMON; i++) {
        size_t at = table->column_count - TRAIL_TABLE_COMMON + i;
        if ((wanted >> at & 1) != 0)
            rows->out[at] = common[i];
    }
    return true;
}

void rows_free(struct rows *rows)
{
    for (size_t i = 0; i < TABLES_MAX_COLUMNS; i++) {
        free(rows->columns[i].data);
        free(rows->columns[i].valid);
    }
    arena_free(&rows->passing);
}

bool rows_room(struct rows *rows, size_t more)
{
    if (rows->count + more <= rows->capacity)
        return true;
    size_t capacity = rows->capacity;
    while (capacity < rows->count + more)
        if (__builtin_mul_overflow(capacity, (size_t)2, &capacity))
            return false;
    for (size_t i = 0; i < rows->table->column_count; i++)
        if (rows->columns[i].data &&
            !column_grow(&rows->columns[i], cell_size(rows->table->columns[i].cell), rows->capacity,
                         capacity))
            return false;
    rows->capacity = capacity;
    return true;
}

bool rows_take(struct rows *rows, size_t least, trail_rows *taken)
{
    size_t count = rows->count - rows->taken;
    if (count < least || count == 0)
        return false;
    for (size_t i = 0; i < rows->table->column_count; i++) {
        const struct column *column = &rows->columns[i];
        if (!column->data)
            continue;
        rows->out[i].any = column->data + rows->taken * cell_size(rows->table->columns[i].cell);
        rows->out[i].valid = column->has_null ? column->valid + rows->taken / 64 : NULL;
    }
    *taken = (trail_rows){
        .count = count < TRAIL_TABLE_ROWS ? count : TRAIL_TABLE_ROWS,
        .columns = rows->out,
    };
    return true;
}

/* Moves the remaining rows to the front. Whole batches were taken, so the bits need no shift. */
static void compact(struct rows *rows)
{
    size_t left = rows->count - rows->taken, words = (left + 63) / 64;
    for (size_t i = 0; i < rows->table->column_count; i++) {
        struct column *column = &rows->columns[i];
        size_t size = cell_size(rows->table->columns[i].cell);
        if (!column->data)
            continue;
        if (left > 0) {
            memmove(column->data, column->data + rows->taken * size, left * size);
            memmove(column->valid, column->valid + rows->taken / 64, words * sizeof(uint64_t));
        }
        if (column->has_null)
            memset(column->valid + words, 0xff, (rows->capacity / 64 - words) * sizeof(uint64_t));
        column->has_null = column->has_null && left > 0;
    }
    rows->count = left;
    rows->taken = 0;
    if (left == 0)
        arena_reset(&rows->passing);
}

void rows_give_back(struct rows *rows, size_t count)
{
    rows->taken += count;
    if (rows->count - rows->taken < TRAIL_TABLE_ROWS && rows->taken % TRAIL_TABLE_ROWS == 0)
        compact(rows);
    else if (rows->taken == rows->count)
        compact(rows);
}
