/*
 * Definition: the places of the columns in their tables (TABLE_COLUMN), and how texts of enumerated
 * columns are numbered.
 */
#ifndef TRAIL_TABLES_DEFINITION_H
#define TRAIL_TABLES_DEFINITION_H

#include <trail/tables.h>

#define TABLES_MAX_COLUMNS 32

/* clang-format off */
#define TABLE(table, name, meaning) enum table##_columns {
#define COLUMN(table, column, name, cell, nullable, words, meaning) table##_##column,
#define COMMON(table) table##_IN_FILE, table##_ON_HOST, table##_ON_DAY, table##_COLUMNS };
/* clang-format on */
#include "tables/tables.def"
#undef TABLE
#undef COLUMN
#undef COMMON

/* States of goroutines and Ps have their words in one list. */
uint8_t word_of_go_state(unsigned state);
uint8_t word_of_proc_state(unsigned state);

/* The word of a type of event; only for types that exist. */
uint8_t word_of_type(unsigned wire);

#endif
