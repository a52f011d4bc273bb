/* Prints tables in columns that fit the terminal. */
#include "ui/table.h"

#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/powers.h"
#include "base/utf8.h"
#include "base/whole.h"
#include "ui/cli.h"
#include "ui/fit.h"
#include "ui/show.h"

static void add_titles(struct table *table, const char *titles)
{
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

void table_begin(struct table *table, const char *titles)
{
    *table = (struct table){0};
    add_titles(table, titles);
}

void table_add_titles(struct table *table, const struct vocabulary *vocabulary, const char *titles)
{
    char room[TABLE_COLUMNS * TERM_SIZE];
    add_titles(table, words_titles(vocabulary, titles, room, sizeof room));
}

static void put_cell(struct table *table, const char *data, size_t size)
{
    char *cell =
        GROW(table->cells, table->capacity, table->count + 1) ? plain_new(data, size) : NULL;
    if (cell)
        table->cells[table->count++] = cell;
    else
        table->failed = true;
}

void table_text(struct table *table, trail_string text)
{
    put_cell(table, text.data, text.size);
}

void table_word(struct table *table, const char *text)
{
    put_cell(table, text, strlen(text));
}

void table_number(struct table *table, uint64_t value)
{
    char buf[32];
    table_word(table, show_thousands(buf, value));
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

/* MARK: Width */

/* Text columns are cut to this before other columns are left out, and to less only afterwards. */
#define TEXT_WIDTH 32
#define TEXT_SMALL 17 /* before columns that are not listed are left out */
#define TEXT_LEAST 8
#define GAP        2
#define LEFT_OUT   (-1)
#define ELLIPSIS   "\u2026"

/* Titles of the columns to leave out first in a narrow terminal; then numbers from the right, and
 * last texts, by which rows differ. */
static const char *const least_important[] = {"p95",        "min",   "mean",       "p50",
                                              "incomplete", "logs",  "max",        "in kernel",
                                              "syscall",    "ready", "P released", "slot released"};

static int width_of(const int *widths, int columns)
{
    int sum = -GAP;
    for (int i = 0; i < columns; i++)
        sum += widths[i] == LEFT_OUT ? 0 : widths[i] + GAP;
    return sum;
}

/* Cuts text columns, the widest first, until the table fits or all are `least` wide. */
static void narrow(const struct table *table, int *widths, int limit, int least)
{
    for (int over; (over = width_of(widths, table->columns) - limit) > 0;) {
        int widest = LEFT_OUT;
        for (int i = 0; i < table->columns; i++) {
            if (!table->right[i] && widths[i] > least &&
                (widest == LEFT_OUT || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == LEFT_OUT)
            return;
        widths[widest] -= over < widths[widest] - least ? over : widths[widest] - least;
    }
}

/* Whether the title is the word, or begins with it: "p50 A". */
static bool begins_with(const char *title, const char *word)
{
    size_t size = strlen(word);
    return strncmp(title, word, size) == 0 && (title[size] == '\0' || title[size] == ' ');
}

/* Whether the column has commands, which are useless when cut. */
static bool has_commands(const struct table *table, int column)
{
    for (size_t i = (size_t)column; i < table->count; i += (size_t)table->columns) {
        if (begins_with(table->cells[i], "trail"))
            return true;
    }
    return false;
}

static bool is_empty(const struct table *table, int column)
{
    for (size_t i = (size_t)column; i < table->count; i += (size_t)table->columns) {
        if (strcmp(table->cells[i], "-") != 0 && strcmp(table->cells[i], "0") != 0)
            return false;
    }
    return true;
}

/* Returns the next column to leave out: one without values, a listed one, or the rightmost;
 * LEFT_OUT: none. The first and the last stay. */
static int empty_column(const struct table *table, const int *widths)
{
    for (int j = table->columns - 2; j > 0; j--) {
        if (widths[j] != LEFT_OUT && is_empty(table, j))
            return j;
    }
    return LEFT_OUT;
}

static int listed_column(const struct table *table, const int *widths)
{
    for (size_t i = 0; i < sizeof least_important / sizeof *least_important; i++) {
        for (int j = table->columns - 2; j > 0; j--) {
            if (widths[j] != LEFT_OUT && begins_with(table->titles[j], least_important[i]))
                return j;
        }
    }
    return LEFT_OUT;
}

static int rightmost_column(const struct table *table, const int *widths)
{
    int text = LEFT_OUT;
    for (int j = table->columns - 2; j > 0; j--) {
        if (widths[j] != LEFT_OUT && table->right[j])
            return j;
        if (widths[j] != LEFT_OUT && text == LEFT_OUT)
            text = j;
    }
    return text;
}

typedef int choose_column(const struct table *table, const int *widths);

static void leave_out(const struct table *table, int *widths, int limit, choose_column *choose)
{
    int column;
    while (width_of(widths, table->columns) > limit && (column = choose(table, widths)) != LEFT_OUT)
        widths[column] = LEFT_OUT;
}

static void fit(const struct table *table, int *widths, int limit)
{
    for (int i = 0; i < table->columns && width_of(widths, table->columns) > limit; i++) {
        if (has_commands(table, i))
            widths[i] = LEFT_OUT;
    }
    leave_out(table, widths, limit, empty_column);
    narrow(table, widths, limit, TEXT_WIDTH);
    leave_out(table, widths, limit, listed_column);
    narrow(table, widths, limit, TEXT_SMALL);
    leave_out(table, widths, limit, rightmost_column);
    narrow(table, widths, limit, TEXT_LEAST);
}

/* Where nothing is cut, texts longer than this do not widen the other rows. */
#define TEXT_LONG 100

/* Returns what a column needs for a text. */
static int room_for(const struct table *table, int column, const char *text)
{
    int width = utf8_columns(text);
    return table->is_whole && !table->right[column] && width > TEXT_LONG ? 0 : width;
}

/* Prints a text; if it is longer than `width` columns, without its middle. Returns the columns
 * printed, which are fewer than `width` if a wide character did not fit. */
static int print_cut(const char *text, int width)
{
    int columns = utf8_columns(text);
    if (columns <= width) {
        fputs(text, stdout);
        return columns;
    }
    const char *end = text + strlen(text) - utf8_fits_end(text, width - width / 2 - 1);
    size_t begin = utf8_fits(text, width / 2);
    printf("%.*s" ELLIPSIS "%s", (int)begin, text, end);
    return columns - utf8_columns(text + begin) + 1 + utf8_columns(end);
}

/* Where " 14.7 s" begins in an item such as "condition variable 14.7 s"; its size: nowhere. */
static size_t figure_of(const char *item, size_t size)
{
    size_t at = size;
    for (int spaces = 0; at > 0 && spaces < 2;)
        spaces += item[--at] == ' ';
    return at > 0 && isdigit((unsigned char)item[at + 1]) ? at : size;
}

/* The same for "mutex 14.7 s, sleep 350 ms": without its last items, and of a single one only the
 * name is cut, because a number must neither lose digits nor follow the words of another. */
static int print_list(const char *text, int width)
{
    const char *comma = strstr(text, ", "), *next = comma;
    size_t room = utf8_fits(text, width - 3);
    while (next && (next = strstr(next + 2, ", ")) && (size_t)(next - text) <= room)
        comma = next;
    size_t size = comma ? (size_t)(comma - text) : strlen(text), figure = figure_of(text, size);
    char name[256], rest[256];
    trail_string begin = utf8_first((trail_string){text, figure}, sizeof name - 1);
    (void)snprintf(name, sizeof name, "%.*s", (int)begin.size, begin.data);
    (void)snprintf(rest, sizeof rest, "%.*s%s%s", (int)(size - figure), text + figure,
                   size <= room ? ", " : "", comma ? ELLIPSIS : "");
    int columns = utf8_columns(rest);
    if (columns >= width)
        return print_cut(ELLIPSIS, width);
    int printed = print_cut(name, width - columns);
    fputs(rest, stdout);
    return printed + columns;
}

/* Whether a text of the column is a list of waits with their times. */
static bool is_list(const struct table *table, int column, const char *text)
{
    size_t size = strlen(text);
    return begins_with(table->titles[column], "for") && figure_of(text, size) < size;
}

static void print_cell(const struct table *table, int column, const char *text, int width)
{
    int pad = width - utf8_columns(text);
    bool last = column + 1 == table->columns;
    if (width != LEFT_OUT) {
        if (column > 0)
            printf("%*s", GAP, "");
        if (table->right[column] && pad > 0)
            printf("%*s", pad, "");
        bool list = !table->is_whole && utf8_columns(text) > width && is_list(table, column, text);
        int most = table->is_whole ? INT_MAX : width;
        int rest = width - (list ? print_list : print_cut)(text, most);
        if (!table->right[column] && !last && rest > 0)
            printf("%*s", rest, "");
    }
    if (last)
        putchar('\n');
}

/* Prints the commands of the first row on lines of their own if the table had no room for them. */
static void print_commands(const struct table *table, const int *widths)
{
    for (int i = 0; i < table->columns; i++) {
        if (widths[i] == LEFT_OUT && has_commands(table, i) &&
            begins_with(table->cells[i], "trail"))
            printf("%s, of the first row: %s\n", table->titles[i], table->cells[i]);
    }
}

/* Prints which columns are missing, and where they are shown. */
static void print_left_out(const struct table *table, const int *widths, int limit)
{
    const char *between = "(a wider terminal, or | cat, also shows: ";
    int used = 0;
    for (int i = 0; i < table->columns; i++) {
        if (widths[i] != LEFT_OUT)
            continue;
        used += printf("%s", between);
        if (used + utf8_columns(table->titles[i]) + 2 > limit)
            used = printf("\n    ") - 1;
        used += printf("%s", table->titles[i]);
        between = ", ";
    }
    if (*between == ',')
        puts(")");
}

void table_print(struct table *table)
{
    int widths[TABLE_COLUMNS] = {0}, columns = table->columns, widest = fit_columns();
    table->is_whole = widest == INT_MAX;
    for (int i = 0; i < columns; i++)
        widths[i] = utf8_columns(table->titles[i]);
    for (size_t i = 0; i < table->count; i++) {
        int column = (int)(i % (size_t)columns), width = room_for(table, column, table->cells[i]);
        widths[column] = width > widths[column] ? width : widths[column];
    }
    fit(table, widths, widest);
    for (int i = 0; i < columns; i++)
        print_cell(table, i, table->titles[i], widths[i]);
    for (size_t i = 0; i < table->count; i++) {
        int column = (int)(i % (size_t)columns);
        if (!table->failed)
            print_cell(table, column, table->cells[i], widths[column]);
    }
    print_commands(table, widths);
    print_left_out(table, widths, widest);
    if (table->failed)
        show_lacks();
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
    printf("  %s  %10s  ", show_right(text, 12, show_duration(text, from)),
           show_thousands(number, count));
    for (int i = 0; i < bar; i++)
        putchar('#');
    if (bar == 0 && count > 0)
        putchar('.');
    putchar('\n');
}

void table_histogram(const trail_histogram *histogram)
{
    struct powers powers = powers_of(histogram);
    for (int power = powers.first; power <= powers.last; power++)
        print_bar(powers_begin(power), powers.counts[power], powers.most);
}
