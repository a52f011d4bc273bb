/*
 * Tables of text: cells are collected, then printed in columns as wide as necessary. And bars.
 *
 *     struct table table;
 *     table_begin(&table, "count> exec> name<");
 *     table_number(&table, 3); table_duration(&table, ns); table_text(&table, name);
 *     table_print(&table);
 */
#pragma once

#include <trail/analyze.h>

#include "words/vocabulary.h"

#define TABLE_COLUMNS 16

struct table {
    char titles[TABLE_COLUMNS][TERM_SIZE];
    bool right[TABLE_COLUMNS];
    int columns;
    char **cells;
    size_t count, capacity;
    bool failed;
    bool is_whole; /* printed without limit: nothing is cut */
};

/* Titles separated by spaces, each ending with < (left) or > (right); _ is printed as a space. */
void table_begin(struct table *table, const char *titles);

/* Adds titles on the right, in which terms of the vocabulary are replaced: {task}. An empty table
 * is zero-initialised. */
void table_add_titles(struct table *table, const struct vocabulary *vocabulary, const char *titles);

/* Adds the next cell, row by row. Text is escaped as in base/plain.h. */
void table_text(struct table *table, trail_string text);
void table_word(struct table *table, const char *text);
void table_number(struct table *table, uint64_t value); /* 12,345 */
void table_duration(struct table *table, int64_t ns);   /* "-" for 0 */
void table_percent(struct table *table, double part);   /* 0.123: 12.3 % */

/* Cells of a distribution: count, sum and quantiles, or minimum, mean and quantiles; times of 0 as
 * "-". */
void table_spread(struct table *table, const trail_histogram *times);
void table_range(struct table *table, const trail_histogram *times);

/* Prints the table and frees it. */
void table_print(struct table *table);
void table_drop(struct table *table);

/* Prints a line for each power of two of a histogram: from, count, a bar. */
void table_histogram(const trail_histogram *histogram);
