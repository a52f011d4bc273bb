/*
 * Rows: the columns of one table while they are filled, one vector per column; up to
 * TRAIL_TABLE_ROWS rows at a time are handed out. A column that was not requested has no vector,
 * and values put into it are ignored.
 */
#pragma once

#include <trail/tables.h>

#include "base/arena.h"
#include "tables/definition.h"

struct column {
    char *data;      /* NULL: not requested */
    uint64_t *valid; /* one bit per row, kept also while the column has no NULL */
    bool has_null;
};

/* Owned by its trail_tables. Zero-initialised: no columns. */
struct rows {
    const trail_table *table;
    struct column columns[TABLES_MAX_COLUMNS];
    size_t count, taken, capacity; /* in rows; those from `taken` on remain to be handed out */
    struct arena passing;          /* texts that live as long as their rows */
    trail_values out[TABLES_MAX_COLUMNS];
    const trail_values *common; /* values of the columns common to all tables */
};

/* Returns false if out of memory. */
bool rows_init(struct rows *rows, const trail_table *table, uint32_t wanted,
               const trail_values *common);
void rows_free(struct rows *rows);

/* Makes room for `more` rows. Returns false if out of memory. */
bool rows_room(struct rows *rows, size_t more);

/* Hands out the next rows, at most TRAIL_TABLE_ROWS; false if there are fewer than `least`. */
bool rows_take(struct rows *rows, size_t least, trail_rows *taken);

/* Releases the `count` rows that rows_take handed out. */
void rows_give_back(struct rows *rows, size_t count);

static inline bool rows_want(const struct rows *rows, unsigned column)
{
    return rows->columns[column].data != NULL;
}

static inline void put_null(struct rows *rows, unsigned column, size_t row)
{
    struct column *c = &rows->columns[column];
    if (!rows_want(rows, column))
        return;
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
    put_i64(rows, column, row, known ? value : 0);
    if (!known)
        put_null(rows, column, row);
}

/* The number of a goroutine, P or thread; negative: NULL. */
static inline void put_id(struct rows *rows, unsigned column, size_t row, int64_t id)
{
    put_i64_if(rows, column, row, id >= 0, id);
}

static inline void put_i32(struct rows *rows, unsigned column, size_t row, int32_t value)
{
    if (rows_want(rows, column))
        ((int32_t *)(void *)rows->columns[column].data)[row] = value;
}

/* A stack number; 0: NULL. */
static inline void put_stack(struct rows *rows, unsigned column, size_t row, int32_t stack)
{
    put_i32(rows, column, row, stack);
    if (stack == 0)
        put_null(rows, column, row);
}

/* An enumeration or boolean. */
static inline void put_u8(struct rows *rows, unsigned column, size_t row, uint8_t value)
{
    if (rows_want(rows, column))
        ((uint8_t *)rows->columns[column].data)[row] = value;
}

static inline void put_word_if(struct rows *rows, unsigned column, size_t row, bool known,
                               uint8_t value)
{
    put_u8(rows, column, row, known ? value : 0);
    if (!known)
        put_null(rows, column, row);
}

static inline void put_text(struct rows *rows, unsigned column, size_t row, trail_string text)
{
    if (rows_want(rows, column))
        ((trail_string *)(void *)rows->columns[column].data)[row] = text;
}

/* An empty text is NULL. */
static inline void put_text_if(struct rows *rows, unsigned column, size_t row, trail_string text)
{
    put_text(rows, column, row, text);
    if (text.size == 0)
        put_null(rows, column, row);
}
