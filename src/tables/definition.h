/*
 * Definition: column indices (TABLE_COLUMN), and the indices of words in enumerated columns.
 */
#pragma once

#include <trail/tables.h>

#define TABLES_MAX_COLUMNS 32 /* trail_tables_options.wanted has a bit for each */

/* clang-format off */
#define TABLE(table, name, key, meaning) enum table##_columns {
#define COLUMN(table, column, name, cell, nullable, words, meaning) table##_##column,
#define COMMON(table) table##_OF_TRACE, table##_IN_FILE, table##_ON_HOST, table##_ON_DAY, table##_COLUMNS }; \
    _Static_assert(table##_COLUMNS <= TABLES_MAX_COLUMNS, "a bit of trail_tables_options.wanted");
/* clang-format on */
#include "tables/tables.def"

/* Goroutine and P states share one list of words. Unknown states map to word 0. */
uint8_t word_of_go_state(unsigned state);
uint8_t word_of_proc_state(unsigned state);

/* Returns the word of an event type (trail_event.wire); only for types that exist. */
uint8_t word_of_type(unsigned wire);
