#include "ui/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "base/whole.h"
#include "ui/cli.h"
#include "ui/show.h"

void table_begin_with(struct table *table, const struct vocabulary *vocabulary, const char *titles)
{
    char room[TABLE_COLUMNS * TERM_SIZE];
    table_begin(table, words_titles(vocabulary, titles, room, sizeof room));
}

void table_begin(struct table *table, const char *titles)
{
    *table = (struct table){0};
    while (*titles && table->columns < TABLE_COLUMNS) {
        size_t length = strcspn(titles, "<>");
        char *title = table->titles[table->columns];
        (void)snprintf(title, sizeof table->titles[0], "%.*s", (int)length, titles);
        for (; *title; title++)
            if (*title == '_')
                *title = ' ';
        table->right[table->columns++] = titles[length] == '>';
        titles += length + (titles[length] != '\0');
        titles += strspn(titles, " ");
    }
}

static void put_cell(struct table *table, const char *data, size_t size)
{
    if (table->count == table->capacity) {
        size_t wanted = table->capacity ? table->capacity * 2 : 256;
        char **grown = reallocarray(table->cells, wanted, sizeof *grown);
        if (!grown) {
            table->failed = true;
            return;
        }
        table->cells = grown;
        table->capacity = wanted;
    }
    char *cell = plain_new(data, size);
    if (!cell) {
        table->failed = true;
        return;
    }
    table->cells[table->count++] = cell;
}

void table_text(struct table *table, trail_string text)
{
    put_cell(table, text.data, text.size);
}

void table_word(struct table *table, const char *text)
{
    put_cell(table, text, strlen(text));
}

const char *table_thousands(char *buf, uint64_t value)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRIu64, value), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

void table_number(struct table *table, uint64_t value)
{
    char buf[32];
    table_word(table, table_thousands(buf, value));
}

void table_duration(struct table *table, int64_t ns)
{
    char buf[SHOW_SIZE];
    table_word(table, ns == 0 ? "-" : show_duration(buf, ns));
}

void table_percent(struct table *table, double part)
{
    char buf[SHOW_SIZE];
    table_word(table, show_percent(buf, part * 100));
}

static void table_quantiles(struct table *table, const trail_histogram *times)
{
    table_duration(table, trail_histogram_quantile(times, 0.5));
    table_duration(table, trail_histogram_quantile(times, 0.95));
    table_duration(table, trail_histogram_quantile(times, 0.99));
    table_duration(table, times->max_ns);
}

void table_spread(struct table *table, const trail_histogram *times)
{
    table_number(table, times->count);
    table_duration(table, times->sum_ns);
    table_quantiles(table, times);
}

void table_range(struct table *table, const trail_histogram *times)
{
    table_duration(table, times->min_ns);
    table_duration(table, times->count ? times->sum_ns / (int64_t)times->count : 0);
    table_quantiles(table, times);
}

static void print_cell(const struct table *table, int column, const char *text, int width)
{
    int pad = width - utf8_columns(text);
    bool last = column + 1 == table->columns;
    const char *gap = column > 0 ? "  " : "";
    if (table->right[column])
        printf("%s%*s%s", gap, pad > 0 ? pad : 0, "", text);
    else
        printf("%s%s%*s", gap, text, last || pad < 0 ? 0 : pad, "");
    if (last)
        putchar('\n');
}

void table_print(struct table *table)
{
    int widths[TABLE_COLUMNS] = {0}, columns = table->columns;
    for (int i = 0; i < columns; i++)
        widths[i] = utf8_columns(table->titles[i]);
    for (size_t i = 0; i < table->count; i++) {
        int width = utf8_columns(table->cells[i]), *column = &widths[i % (size_t)columns];
        *column = width > *column ? width : *column;
    }
    for (int i = 0; i < columns; i++)
        print_cell(table, i, table->titles[i], widths[i]);
    for (size_t i = 0; i < table->count; i++) {
        int column = (int)(i % (size_t)columns);
        if (!table->failed)
            print_cell(table, column, table->cells[i], widths[column]);
    }
    if (table->failed)
        print_message("no memory for the table");
    table_drop(table);
}

void table_drop(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}

/* MARK: Histograms */

static void print_bar(int64_t from, uint64_t count, uint64_t most)
{
    char text[SHOW_SIZE], number[32];
    int bar = (int)whole_within((double)count * 50 / (double)most + 0.5, 0, 50);
    printf("  %12s  %10s  ", show_duration(text, from), table_thousands(number, count));
    for (int i = 0; i < bar; i++)
        putchar('#');
    if (bar == 0 && count > 0)
        putchar('.');
    putchar('\n');
}

struct powers table_powers(const trail_histogram *histogram)
{
    struct powers powers = {.first = 63, .last = -1};
    uint64_t count;
    for (size_t at = 0, bucket; trail_histogram_next(histogram, &at, &bucket, &count);) {
        int64_t from, to;
        trail_histogram_bucket(bucket, &from, &to);
        int power = from > 0 ? 63 - __builtin_clzll((unsigned long long)from) : 0;
        powers.counts[power] += count;
        if (powers.counts[power] > powers.most)
            powers.most = powers.counts[power];
        powers.first = power < powers.first ? power : powers.first;
        powers.last = power;
    }
    return powers;
}

int64_t powers_begin(int power)
{
    return power > 0 && power < 63 ? INT64_C(1) << power : 0;
}

void table_histogram(const trail_histogram *histogram)
{
    struct powers powers = table_powers(histogram);
    for (int power = powers.first; power <= powers.last; power++)
        print_bar(powers_begin(power), powers.counts[power], powers.most);
}
