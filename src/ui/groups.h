/*
 * Prints groups of goroutines or regions: sums, distributions, histograms; and the options for
 * that.
 */
#pragma once

#include "ui/rows.h"

/* A column on the command line. */
struct groups_column {
    bool given;
    trail_column column;
};

#define GROUPS_COLUMNS "total exec sched-wait block syscall syscall-block"
#define TO_COLUMN(request, member)                                                                 \
    TO_PARSED(request, member, struct groups_column, groups_column_take), .values = GROUPS_COLUMNS
int groups_column_take(const struct command *command, void *column, const char *word);

/* For a command whose rows fill a `request` with a `view` in it. */
/* clang-format off */
#define GROUPS_ROWS(request, view)                                                                 \
    {0, "groups", NULL, "with --json: the groups, instead of one by one",                          \
     TO_FLAG(request, view.json)},                                                                 \
    {'s', "sort", "COLUMN",                                                                        \
     "longest first by total, exec, sched-wait, block, syscall or syscall-block",                 \
     TO_COLUMN(request, view.sort)},                                                               \
    {'n', "limit", "N", "at most N rows (default 30; 0: all)",                                     \
     TO_LIMIT(request, view.limit), .expects = "a number"},                                        \
    {'p', "percentiles", "COLUMN", "how the members of each group spread in this column",          \
     TO_COLUMN(request, view.percentiles)},                                                        \
    {0, "histogram", "COLUMN", "a histogram of this column over the members of each group",        \
     TO_COLUMN(request, view.histogram)}
/* clang-format on */

struct groups_view {
    struct analysis *analysis;
    enum term one;     /* the term for a member; the next term is its plural */
    const char *title; /* of the column of names: "start_function<" */
    struct groups_column sort, percentiles, histogram;
    size_t limit; /* SIZE_MAX: all; 0: not given, see groups_shown */
    bool json;
};

/* Returns how many of `count` rows are shown in tables. */
static inline size_t groups_shown(const struct groups_view *view, size_t count)
{
    size_t limit = view->limit ? view->limit : 30;
    return count < limit ? count : limit;
}

/* Called after the options. Returns EXIT_USAGE if both single members and groups were requested. */
int groups_check(const struct groups_view *view, bool one_by_one);

/* Returns the view of goroutines by start function with default options. */
struct groups_view groups_of_goroutines(struct analysis *analysis);

/* Prints "3 goroutines, 1 alive at the end, in 2 groups, in 1.2 s"; `groups` 0: without groups. */
void groups_show_head(const struct groups_view *view, size_t groups);

/* Prints all goroutines selected by the view and the analysis. Returns EXIT_GOOD, or EXIT_INOUT if
 * out of memory. */
int groups_show_goroutines(const struct groups_view *view);

/* Writes an array of groups. */
void groups_json(const struct analysis *analysis, struct json *json, const char *key,
                 const trail_group *groups, size_t count);

/* Prints groups. Returns EXIT_GOOD, or EXIT_INOUT if out of memory. */
int groups_show(const struct groups_view *view, const trail_group *groups, size_t count);

/* Adds the columns of a trail_times. */
void groups_put_times(struct row *row, const trail_times *times);

/*
 * Prints a list of pointers to rows as JSON, with their total number; limited only if --limit was
 * given.
 */
void groups_json_list(const struct groups_view *view, const char *key, put_row *put,
                      const void *rows, size_t count);
