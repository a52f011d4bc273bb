#include "commands/diff_check.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ui/values.h"

/* MARK: Fields */

/* Returns ".p99" and so on, "" for the value itself. */
static const char *field_suffix(enum diff_field field)
{
    static const char *const suffixes[DIFF_FIELDS] = {"", ".count", ".p50", ".p99", ".max"};
    return suffixes[field];
}

double diff_field_of(const struct diff_measure *measure, enum diff_field field)
{
    switch (field) {
    case DIFF_COUNT_OF:
        return measure->count;
    case DIFF_P50:
        return measure->p50;
    case DIFF_P99:
        return measure->p99;
    case DIFF_MAX:
        return measure->max;
    default:
        return measure->value;
    }
}

double diff_ratio(double a, double b)
{
    if (a == b)
        return 0;
    return a == 0 ? (double)INFINITY : (b - a) / a;
}

/* MARK: Telling what is wrong */

/* Prints the message, then the text with a caret below the error. */
static int wrong(const struct diff_condition *c, const struct command *command, size_t at,
                 const char *what, const char *word, const char *more)
{
    print_message("%s: --fail-if: %s%s%s%s%s", command->name, what, word ? " '" : "",
                  word ? word : "", word ? "'" : "", more);
    print_marked_text("    ", c->text, at, 1);
    return usage_hint(command);
}

/* MARK: Parsing */

static bool is_operator(char c)
{
    return c == '<' || c == '>';
}

/* Parses the number after the sign, with its unit. */
static bool parse_value(struct diff_condition *c, const char *text, bool negative)
{
    int64_t ns;
    uint64_t bytes;
    char *end;
    double sign = negative ? -1 : 1;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false;
    double number = strtod(text, &end);
    if (*end == '\0' || strcmp(end, "%") == 0) {
        c->literal = *end ? DIFF_PERCENT : DIFF_PLAIN;
        c->limit = sign * (*end ? number / 100 : number);
        return isfinite(number);
    }
    if (parse_time(text, &ns)) {
        c->literal = DIFF_TIME;
        c->limit = sign * (double)ns;
        return true;
    }
    c->literal = DIFF_SIZE;
    bool good = parse_size(text, &bytes);
    c->limit = good ? sign * (double)bytes : 0;
    return good;
}

static int parse_limit(struct diff_condition *c, const struct command *command, size_t at)
{
    c->less = c->text[at] == '<';
    c->or_equal = c->text[at + 1] == '=';
    c->value_at = skip_space(c->text, at + 1 + c->or_equal);
    const char *value = c->text + c->value_at;
    c->change = *value == '+' || *value == '-';
    char *copy = strdup(value + c->change);
    size_t length = copy ? strlen(copy) : 0;
    while (length > 0 && isspace((unsigned char)copy[length - 1]))
        copy[--length] = '\0';
    bool good = copy && parse_value(c, copy, *value == '-');
    free(copy);
    if (good)
        return EXIT_GOOD;
    return wrong(c, command, c->value_at, "no value", NULL,
                 ": values are like +20%, +5ms, -10 (a change), 5ms, 64M, 10");
}

int diff_condition_parse(struct diff_condition *c, const struct command *command, const char *text)
{
    *c = (struct diff_condition){.text = text};
    c->metric_at = skip_space(text, 0);
    size_t end = c->metric_at + strcspn(text + c->metric_at, " \t\n<>=\"");
    c->metric = strndup(text + c->metric_at, end - c->metric_at);
    if (end == c->metric_at)
        return wrong(c, command, end, "a condition begins with a metric", NULL,
                     ", such as sched_wait.p99");
    size_t at = c->name_at = skip_space(text, end);
    if (text[at] && !is_operator(text[at]) && text[at] != '=') {
        at = parse_name(text, at, "", &c->name);
        if (at == 0)
            return wrong(c, command, c->name_at, "the closing quote of the name is missing", NULL,
                         "");
        at = skip_space(text, at);
    } else {
        c->name = strdup("");
    }
    if (!c->metric || !c->name)
        return wrong(c, command, 0, "no memory", NULL, "");
    if (!is_operator(text[at]))
        return wrong(c, command, at, "<, <=, > or >= is missing", NULL, "");
    return parse_limit(c, command, at);
}

void diff_condition_free(struct diff_condition *c)
{
    free(c->metric);
    free(c->name);
}

/* MARK: Looking up */

/* Whether the metric is one of the row's fields. */
static bool is_field(const char *metric, const struct diff_row *row, enum diff_field field)
{
    char path[512];
    const char *suffix = field_suffix(field);
    if (field != DIFF_VALUE && !row->of[0].spread && !row->of[1].spread)
        return false;
    int size = snprintf(path, sizeof path, "%s%s", row->path, suffix);
    return size > 0 && (size_t)size < sizeof path && diff_same_path(path, metric);
}

/* Returns the edit distance from the metric: of the path and, with less weight, of the name. */
static unsigned distance(const struct diff_condition *c, const struct diff_row *row,
                         const char *path)
{
    unsigned of_path = edit_distance(c->metric, path), of_name = edit_distance(c->name, row->name);
    return of_path * 2 + of_name;
}

static int unknown_metric(const struct diff_condition *c, const struct command *command,
                          const struct diff_rows *rows)
{
    char best[600] = "", more[700];
    unsigned least = UINT32_MAX;
    bool path_known = false;
    for (size_t i = 0; i < rows->count; i++)
        for (enum diff_field field = DIFF_VALUE; field < DIFF_FIELDS; field++) {
            const struct diff_row *row = &rows->rows[i];
            char path[256];
            if (field != DIFF_VALUE && !row->of[0].spread && !row->of[1].spread)
                continue;
            (void)snprintf(path, sizeof path, "%s%s", row->path, field_suffix(field));
            path_known |= diff_same_path(path, c->metric);
            unsigned far = distance(c, row, path);
            if (far >= least)
                continue;
            least = far;
            (void)snprintf(best, sizeof best, *row->name ? "%s \"%.300s\"" : "%s%.300s", path,
                           row->name);
        }
    (void)snprintf(more, sizeof more, "%s; did you mean '%s'?",
                   *c->name ? " of that name in either trace" : " in either trace", best);
    size_t at = path_known && *c->name ? c->name_at : c->metric_at;
    return wrong(c, command, at, "no metric", c->metric, more);
}

/* Returns why the value cannot be compared with the field; NULL: it can. */
static const char *unit_mistake(const struct diff_condition *c)
{
    if (c->literal == DIFF_PERCENT)
        return c->change || c->unit == DIFF_SHARE ? NULL
                                                  : "a percentage has a sign, +20% or -20%: it is "
                                                    "a change";
    if (c->limit == 0)
        return NULL;
    if (c->unit == DIFF_NS)
        return c->literal == DIFF_TIME ? NULL : "this is a time: 5ms, +300us, or +20%";
    if (c->unit == DIFF_BYTES)
        return c->literal == DIFF_TIME ? "these are bytes: 64M, +1M, or +20%" : NULL;
    if (c->unit == DIFF_SHARE)
        return "this is a share: 50%, or as a change -10%";
    return c->literal == DIFF_PLAIN ? NULL : "this is a number: 100, +10, or +20%";
}

static bool is_met(const struct diff_condition *c)
{
    double value = c->b;
    if (c->change)
        value = c->literal == DIFF_PERCENT ? diff_ratio(c->a, c->b) : c->b - c->a;
    if (c->or_equal && value == c->limit)
        return true;
    return c->less ? value < c->limit : value > c->limit;
}

int diff_condition_decide(struct diff_condition *c, const struct command *command,
                          const struct diff_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        for (enum diff_field field = DIFF_VALUE; field < DIFF_FIELDS; field++) {
            const struct diff_row *row = &rows->rows[i];
            if (strcmp(row->name, c->name) != 0 || !is_field(c->metric, row, field))
                continue;
            c->unit = field == DIFF_COUNT_OF ? DIFF_COUNT : row->unit;
            c->a = diff_field_of(&row->of[0], field);
            c->b = diff_field_of(&row->of[1], field);
            c->met = is_met(c);
            const char *mistake = unit_mistake(c);
            return mistake ? wrong(c, command, c->value_at, mistake, NULL, "") : EXIT_GOOD;
        }
    return unknown_metric(c, command, rows);
}
