/*
 * Conditions of `trail diff --fail-if`:
 *
 *     METRIC ["NAME"] OP VALUE
 *
 * METRIC is the path of a row (commands/diff_rows.h), with .count, .p50, .p99 or .max behind it for what
 * is told of the row's spread. OP is <, <=, > or >=. A VALUE with a sign is a change from the first
 * trace to the second: +20% of what it was, +5ms; one without is what the second has: 5ms, 64M, 10,
 * and for shares 50%.
 */
#ifndef TRAIL_COMMANDS_DIFF_CHECK_H
#define TRAIL_COMMANDS_DIFF_CHECK_H

#include "commands/diff_rows.h"
#include "ui/cli.h"

enum diff_field { DIFF_VALUE, DIFF_COUNT_OF, DIFF_P50, DIFF_P99, DIFF_MAX, DIFF_FIELDS };
enum diff_literal { DIFF_PLAIN, DIFF_TIME, DIFF_SIZE, DIFF_PERCENT };

/* The text is the caller's. Offsets into it are where a caret points. */
struct diff_condition {
    const char *text;
    char *metric, *name; /* name: "" of the whole */
    size_t metric_at, name_at, value_at;
    bool less, or_equal, change;
    enum diff_literal literal;
    double limit; /* ns, bytes, a number, or a share of 1 */
    /* Once it was looked up. */
    enum diff_unit unit;
    double a, b;
    bool met;
};

/* Takes a text apart. EXIT_GOOD, or EXIT_USAGE after telling what is wrong, and where. */
int diff_condition_parse(struct diff_condition *condition, const struct command *command,
                         const char *text);

/* Decides whether it is met. EXIT_GOOD, or EXIT_USAGE if there is no such metric or unit. */
int diff_condition_decide(struct diff_condition *condition, const struct command *command,
                          const struct diff_rows *rows);

void diff_condition_free(struct diff_condition *condition);

double diff_field_of(const struct diff_measure *measure, enum diff_field field);

/* The change as a share of what it was; infinite from nothing, 0 from nothing to nothing. */
double diff_ratio(double a, double b);

#endif
