/*
 * What `trail diff` compares: every measurement is a row with a path such as "sched_wait" or
 * "block.select", of the whole trace or of a named part, and one measure for each of the two
 * traces. Tables, JSON and conditions all use these rows.
 *
 * The rows own their texts, so the analysis of one trace can be closed before the other is opened.
 */
#pragma once

#include "ui/analysis.h"

enum diff_scope { DIFF_WHOLE, DIFF_GOROUTINES, DIFF_TASKS, DIFF_REGIONS, DIFF_LOCKS, DIFF_SCOPES };
enum diff_unit { DIFF_NS, DIFF_COUNT, DIFF_BYTES, DIFF_SHARE };

struct diff_measure {
    bool there, spread; /* there: present in that trace; spread: count and the members below are
                         * set */
    double value, count, p50, p99, max;
};

struct diff_row {
    enum diff_scope scope;
    enum diff_unit unit;
    bool sums;         /* grows with the length of the window: value and count can be normalised */
    char *path, *name; /* name: "" for the whole trace */
    struct diff_measure of[2];
};

/* Zero-initialised: empty. */
struct diff_rows {
    struct diff_row *rows;
    size_t count, capacity;
    bool no_memory;
};

/* The analyses that the rows need. */
#define DIFF_ANALYSES                                                                              \
    (TRAIL_ANALYZE_GROUPS | TRAIL_ANALYZE_DISTRIBUTIONS | TRAIL_ANALYZE_REGION_GROUPS |            \
     TRAIL_ANALYZE_ACTIVITY | TRAIL_ANALYZE_GC | TRAIL_ANALYZE_MMU | TRAIL_ANALYZE_LOCKS)

/* Adds a row for each figure of the analysis, for trace 0 or 1. */
void diff_rows_collect(struct diff_rows *rows, const struct analysis *analysis, int side);

/* Called after both: joins the rows of the two traces. Returns false if out of memory. */
bool diff_rows_join(struct diff_rows *rows);

/* Multiplies the rows that grow with the length of the window. */
void diff_rows_scale(struct diff_rows *rows, const double factors[2]);

enum { DIFF_FIGURE_SIZE = 160 };

/*
 * Writes the words of other commands, of the report and of the page for the figure, and returns
 * them: "running", "waiting: mutex".
 */
const char *diff_figure(const struct diff_row *row, const struct vocabulary *words,
                        char text[DIFF_FIGURE_SIZE]);

/* Whether two paths are equal, ignoring case, with - or a space equal to _. */
bool diff_same_path(const char *a, const char *b);

bool diff_row_changed(const struct diff_row *row);

void diff_rows_free(struct diff_rows *rows);
