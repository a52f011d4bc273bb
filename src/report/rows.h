/*
 * Rows: cells that several tables of a report have.
 */
#ifndef TRAIL_REPORT_ROWS_H
#define TRAIL_REPORT_ROWS_H

#include "report/html.h"
#include "report/report.h"

/* How a histogram spreads, in the columns of these titles. */
#define ROWS_SPREAD "times> sum> p50> p95> p99> max> "
void rows_spread(struct html_table *table, const trail_histogram *spread);

/* The command that shows it. */
void rows_longest(const struct report *report, struct html_table *table,
                  const trail_longest *longest);

/* Behind a table of which there are `count` rows: that not all are shown. */
void rows_more(const struct report *report, size_t count);

#endif
