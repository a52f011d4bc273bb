/* Rows of tables and of JSON. */
#include "ui/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const void *row_at(const void *rows, size_t size, size_t i)
{
    const void *row = (const char *)rows + i * size;
    if (size == 0)
        memcpy(&row, (const char *)rows + i * sizeof row, sizeof row);
    return row;
}

void rows_show(const struct analysis *analysis, put_row *put, const void *rows, size_t size,
               size_t count, size_t limit)
{
    struct table table = {0};
    struct row row = {.analysis = analysis, .table = &table};
    for (size_t i = 0; i < count && i < limit; i++) {
        row.first = i == 0;
        put(&row, row_at(rows, size, i));
    }
    table_print(&table);
    if (limit < count)
        printf("... and %zu more; --limit=0 shows all\n", count - limit);
}

void row_json(const struct analysis *analysis, struct json *json, const char *key, put_row *put,
              const void *of)
{
    json_open(json, key, '{');
    put(&(struct row){.analysis = analysis, .json = json}, of);
    json_close(json, '}');
}

void rows_json(const struct analysis *analysis, struct json *json, const char *key, put_row *put,
               const void *rows, size_t size, size_t count)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        row_json(analysis, json, NULL, put, row_at(rows, size, i));
    json_close(json, ']');
}

/* MARK: Values */

/* Whether to put the next cells into row->table; adds the titles of the first row. */
static bool row_cells(struct row *row, const char *titles)
{
    if (!row->table || !titles)
        return false;
    if (row->first)
        table_add_titles(row->table, &row->analysis->vocabulary, titles);
    return true;
}

static bool is_member(const struct row *row, const char *key)
{
    return row->json && key;
}

void row_id(struct row *row, const char *title, const char *key, int64_t id)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRId64, id);
    if (row_cells(row, title))
        table_word(row->table, text);
    else if (is_member(row, key))
        json_signed(row->json, key, id);
}

void row_plain(struct row *row, const char *title, const char *key, uint64_t id)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, id);
    if (row_cells(row, title))
        table_word(row->table, text);
    else if (is_member(row, key))
        json_number(row->json, key, id);
}

void row_number(struct row *row, const char *title, const char *key, uint64_t number)
{
    if (row_cells(row, title))
        table_number(row->table, number);
    else if (is_member(row, key))
        json_number(row->json, key, number);
}

void row_duration(struct row *row, const char *title, const char *key, int64_t ns)
{
    if (row_cells(row, title))
        table_duration(row->table, ns);
    else if (is_member(row, key))
        json_signed(row->json, key, ns);
}

void row_bytes(struct row *row, const char *title, const char *key, uint64_t bytes)
{
    char text[SHOW_SIZE];
    if (row_cells(row, title))
        table_word(row->table, bytes ? show_bytes(text, bytes) : "-");
    else if (is_member(row, key))
        json_number(row->json, key, bytes);
}

void row_word(struct row *row, const char *title, const char *key, const char *word)
{
    if (row_cells(row, title))
        table_word(row->table, word);
    else if (is_member(row, key))
        json_string(row->json, key, word);
}

void row_text(struct row *row, const char *title, const char *key, trail_string text)
{
    if (row_cells(row, title))
        table_text(row->table, text);
    else if (is_member(row, key))
        json_text(row->json, key, text);
}

void row_name(struct row *row, const char *title, const char *key, trail_name name)
{
    if (row_cells(row, title))
        table_text(row->table, analysis_text(row->analysis, name));
    else if (is_member(row, key))
        json_text(row->json, key, trail_analysis_text(row->analysis->answers, name));
}

void row_time(struct row *row, const char *title, const char *key, int64_t ns)
{
    row_time_or(row, title, key, ns, true, NULL);
}

void row_time_or(struct row *row, const char *title, const char *key, int64_t ns, bool known,
                 const char *other)
{
    if (!row->table)
        row_duration(row, NULL, key, ns);
    else if (known)
        row_duration(row, title, NULL, ns - row->analysis->span.origin_ns);
    else
        row_word(row, title, NULL, other);
}

void row_spread(struct row *row, const char *titles, const char *key, const trail_histogram *times)
{
    if (row_cells(row, titles))
        table_spread(row->table, times);
    else if (is_member(row, key))
        analysis_json_histogram(row->json, key, times);
}

void row_range(struct row *row, const char *key, const trail_histogram *times)
{
    if (row_cells(row, "min> mean> p50> p95> p99> max>"))
        table_range(row->table, times);
    else if (is_member(row, key))
        analysis_json_histogram(row->json, key, times);
}

void row_share(struct row *row, const char *title, double share)
{
    if (row_cells(row, title))
        table_percent(row->table, share);
}

void row_none(struct row *row, const char *title, const char *key)
{
    if (row_cells(row, title))
        table_word(row->table, "-");
    else if (is_member(row, key))
        json_null(row->json, key);
}

void row_longest(struct row *row, const char *key, const trail_longest *longest, const char *of)
{
    if (!is_member(row, key))
        return;
    json_open(row->json, key, '{');
    json_signed(row->json, "ns", longest->ns);
    json_signed(row->json, "begin_ns", longest->begin_ns);
    json_signed(row->json, of, longest->goroutine);
    json_close(row->json, '}');
}

void row_bool(struct row *row, const char *key, bool value)
{
    if (is_member(row, key))
        json_bool(row->json, key, value);
}
