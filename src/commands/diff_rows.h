/*
 * What `trail diff` compares: everything measured is a row with a path such as "sched_wait" or
 * "block.select", of the whole trace or of what has a name, and one measure for each of the two
 * traces. Tables, JSON and conditions are all made of these rows.
 *
 * The rows own their texts, so that the analysis of one trace is gone before the next begins.
 */
#ifndef TRAIL_COMMANDS_DIFF_ROWS_H
#define TRAIL_COMMANDS_DIFF_ROWS_H

#include "ui/analysis.h"

enum diff_scope { DIFF_WHOLE, DIFF_GOROUTINES, DIFF_TASKS, DIFF_REGIONS, DIFF_LOCKS, DIFF_SCOPES };
enum diff_unit { DIFF_NS, DIFF_COUNT, DIFF_BYTES, DIFF_SHARE };

struct diff_measure {
    bool there, spread; /* in that trace; with count and what is below it */
    double value, count, p50, p99, max;
};

struct diff_row {
    enum diff_scope scope;
    enum diff_unit unit;
    bool sums; /* grows with the time that is looked at: value and count can be normalised */
    char *path, *name; /* name: "" of the whole */
    struct diff_measure of[2];
};

/* Zero-initialised is empty. */
struct diff_rows {
    struct diff_row *rows;
    size_t count, capacity;
    bool no_memory;
};

/* The analyses that rows are made of. */
#define DIFF_ANALYSES                                                                              \
    (TRAIL_ANALYZE_GROUPS | TRAIL_ANALYZE_DISTRIBUTIONS | TRAIL_ANALYZE_REGION_GROUPS |            \
     TRAIL_ANALYZE_ACTIVITY | TRAIL_ANALYZE_GC | TRAIL_ANALYZE_MMU | TRAIL_ANALYZE_LOCKS)

/* Adds a row for everything in the answers, as trace 0 or 1. */
void diff_rows_collect(struct diff_rows *rows, const struct analysis *analysis, int side);

/* After both: makes one row of what is in both. False without memory. */
bool diff_rows_join(struct diff_rows *rows);

/* Multiplies what grows with the time. */
void diff_rows_scale(struct diff_rows *rows, const double factors[2]);

/* Whether two paths are the same, up to case and - or a space for _. */
bool diff_same_path(const char *a, const char *b);

bool diff_row_changed(const struct diff_row *row);

void diff_rows_free(struct diff_rows *rows);

#endif
