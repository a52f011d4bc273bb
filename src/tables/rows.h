/*
 * Rows: the columns of one table as they are filled, a vector each, of which up to TRAIL_TABLE_ROWS
 * at a time are handed out. A column that nobody asked for has no vector, and what is put into it
 * goes nowhere.
 */
#ifndef TRAIL_TABLES_ROWS_H
#define TRAIL_TABLES_ROWS_H

#include <trail/tables.h>

#include "base/arena.h"
#include "tables/definition.h"

struct column {
    char *data;      /* NULL: not asked for */
    uint64_t *valid; /* a bit a row; of those that have no NULL yet too */
    bool has_null;
};

/* Owned by its tables. Zero-initialised has no column. */
struct rows {
    const trail_table *table;
    struct column columns[TABLES_MAX_COLUMNS];
    size_t count, taken, capacity; /* rows; those from `taken` on are to be handed out */
    struct arena passing;          /* texts that last as long as their rows */
    trail_values out[TABLES_MAX_COLUMNS];
    const trail_values *common; /* of the columns that all tables end with */
};

/* False when memory is out. */
bool rows_init(struct rows *rows, const trail_table *table, uint32_t wanted,
               const trail_values *common);
void rows_free(struct rows *rows);

/* Room for so many more. False when memory is out. */
bool rows_room(struct rows *rows, size_t more);

/* The next of them, at most TRAIL_TABLE_ROWS, if there are as many as `least`. */
bool rows_take(struct rows *rows, size_t least, trail_rows *taken);

/* After rows_take: those that were taken are gone. */
void rows_give_back(struct rows *rows, size_t count);

static inline bool rows_want(const struct rows *rows, unsigned column)
{
    return rows->columns[column].data != NULL;
}

static inline void put_null(struct rows *rows, unsigned column, size_t row)
{
    struct column *c = &rows->columns[column];
    c->valid[row / 64] &= ~(UINT64_C(1) << (row % 64));
    c->has_null = true;
}

static inline void put_i64(struct rows *rows, unsigned column, size_t row, int64_t value)
{
    if (rows_want(rows, column))
        ((int64_t *)(void *)rows->columns[column].data)[row] = value;
}

static inline void put_i64_if(struct rows *rows, unsigned column, size_t row, bool known,
                              int64_t value)
{
    if (!rows_want(rows, column))
        return;
    ((int64_t *)(void *)rows->columns[column].data)[row] = known ? value : 0;
    if (!known)
        put_null(rows, column, row);
}

/* The number of a goroutine, P or thread; less than 0 is none. */
static inline void put_id(struct rows *rows, unsigned column, size_t row, int64_t id)
{
    put_i64_if(rows, column, row, id >= 0, id);
}

static inline void put_i32(struct rows *rows, unsigned column, size_t row, int32_t value)
{
    if (rows_want(rows, column))
        ((int32_t *)(void *)rows->columns[column].data)[row] = value;
}

/* 0 is none. */
static inline void put_stack(struct rows *rows, unsigned column, size_t row, int32_t stack)
{
    if (!rows_want(rows, column))
        return;
    ((int32_t *)(void *)rows->columns[column].data)[row] = stack;
    if (stack == 0)
        put_null(rows, column, row);
}

/* A word or a truth. */
static inline void put_u8(struct rows *rows, unsigned column, size_t row, uint8_t value)
{
    if (rows_want(rows, column))
        ((uint8_t *)rows->columns[column].data)[row] = value;
}

static inline void put_word_if(struct rows *rows, unsigned column, size_t row, bool known,
                               uint8_t value)
{
    if (!rows_want(rows, column))
        return;
    ((uint8_t *)rows->columns[column].data)[row] = known ? value : 0;
    if (!known)
        put_null(rows, column, row);
}

static inline void put_text(struct rows *rows, unsigned column, size_t row, trail_string text)
{
    if (rows_want(rows, column))
        ((trail_string *)(void *)rows->columns[column].data)[row] = text;
}

/* An empty text is none. */
static inline void put_text_if(struct rows *rows, unsigned column, size_t row, trail_string text)
{
    if (!rows_want(rows, column))
        return;
    ((trail_string *)(void *)rows->columns[column].data)[row] = text;
    if (text.size == 0)
        put_null(rows, column, row);
}

#endif
