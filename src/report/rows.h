/*
 * Cells that several tables of a report share.
 */
#pragma once

#include "report/html.h"
#include "report/report.h"

/* Titles of the columns of a distribution. */
#define ROWS_SPREAD "times> sum> median> p95> p99> longest> "
void rows_spread(struct html_table *table, const trail_histogram *spread);

/* Writes a cell with the command that shows it. */
void rows_longest(const struct report *report, struct html_table *table,
                  const trail_longest *longest);

/* Ends a table; if it does not show all of its `count` rows, adds a line that says so. */
void rows_end(const struct report *report, struct html_table *table, size_t count);
