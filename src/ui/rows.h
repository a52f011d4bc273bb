/*
 * Rows, written once for tables and JSON. A function writes the columns of a row type; it is
 * called for each row, and the first row of a table gives its titles:
 *
 *     static void put_proc(struct row *row, const void *of)
 *     {
 *         const trail_proc *p = of;
 *         row_id(row, "P>", "id", p->id);
 *         row_duration(row, "running>", "running_ns", p->running_ns);
 *         row_share(row, "of all>", share_of(p->running_ns, p->all_ns));
 *     }
 *
 * A title of NULL: JSON only. A key of NULL: tables only.
 */
#pragma once

#include "ui/analysis.h"
#include "ui/table.h"

/* One of `table` and `json` is NULL. */
struct row {
    const struct analysis *analysis;
    struct table *table;
    struct json *json;
    bool first; /* the first of its table */
};

typedef void put_row(struct row *row, const void *of);

/*
 * Shows an array of rows of this size as a table, and as JSON. A size of 0: an array of pointers. A
 * table has at most `limit` rows, and reports how many more there are.
 */
void rows_show(const struct analysis *analysis, put_row *put, const void *rows, size_t size,
               size_t count, size_t limit);
void rows_json(const struct analysis *analysis, struct json *json, const char *key, put_row *put,
               const void *rows, size_t size, size_t count);

/* Writes one row as an object. */
void row_json(const struct analysis *analysis, struct json *json, const char *key, put_row *put,
              const void *of);

/* Only digits, for IDs. */
void row_id(struct row *row, const char *title, const char *key, int64_t id);
void row_plain(struct row *row, const char *title, const char *key, uint64_t id);
void row_number(struct row *row, const char *title, const char *key, uint64_t number);
void row_duration(struct row *row, const char *title, const char *key, int64_t ns);
void row_bytes(struct row *row, const char *title, const char *key, uint64_t bytes);
void row_word(struct row *row, const char *title, const char *key, const char *word);
void row_text(struct row *row, const char *title, const char *key, trail_string text);
/* Tables show "(unknown)" for 0. */
void row_name(struct row *row, const char *title, const char *key, trail_name name);
/* Tables show the time since the first event. */
void row_time(struct row *row, const char *title, const char *key, int64_t ns);
/* The same, but tables show `other` if the time is not known. */
void row_time_or(struct row *row, const char *title, const char *key, int64_t ns, bool known,
                 const char *other);
/* The cells of table_spread and table_range. */
void row_spread(struct row *row, const char *titles, const char *key, const trail_histogram *times);
void row_range(struct row *row, const char *key, const trail_histogram *times);
/* "-" in tables, null in JSON. */
void row_none(struct row *row, const char *title, const char *key);
/* JSON only: its length, its start, and its goroutine or task, under that key. */
void row_longest(struct row *row, const char *key, const trail_longest *longest, const char *of);
/* JSON only. */
void row_bool(struct row *row, const char *key, bool value);
/* Tables only: a share of 1 is 100 %. */
void row_share(struct row *row, const char *title, double share);
