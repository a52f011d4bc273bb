/*
 * Conditions of `trail diff --fail-if`:
 *
 *     METRIC ["NAME"] OP VALUE
 *
 * METRIC is the path of a row (commands/diff_rows.h), optionally with .count, .p50, .p99 or .max
 * for a figure of the row's distribution. OP is <, <=, > or >=. A VALUE with a sign is a change
 * from the first trace to the second: +20%, +5ms; one without a sign is the second trace's value:
 * 5ms, 64M, 10, and for shares 50%.
 */
#pragma once

#include "commands/diff_rows.h"
#include "ui/cli.h"

enum diff_field { DIFF_VALUE, DIFF_COUNT_OF, DIFF_P50, DIFF_P99, DIFF_MAX, DIFF_FIELDS };
enum diff_literal { DIFF_PLAIN, DIFF_TIME, DIFF_SIZE, DIFF_PERCENT };

/* The text is the caller's. Offsets into it are where messages put the caret. */
struct diff_condition {
    const char *text;
    char *metric, *name; /* name: "" for the whole trace */
    size_t metric_at, name_at, value_at;
    bool less, or_equal, change;
    enum diff_literal literal;
    double limit; /* in ns, bytes, a number, or a share of 1 */
    /* Set when the metric is looked up. */
    enum diff_unit unit;
    double a, b;
    bool met;
};

/* Parses a condition. Returns EXIT_GOOD, or EXIT_USAGE after a message with the position of the
 * error. */
int diff_condition_parse(struct diff_condition *condition, const struct command *command,
                         const char *text);

/* Evaluates the condition. Returns EXIT_GOOD, or EXIT_USAGE if there is no such metric or unit. */
int diff_condition_decide(struct diff_condition *condition, const struct command *command,
                          const struct diff_rows *rows);

void diff_condition_free(struct diff_condition *condition);

double diff_field_of(const struct diff_measure *measure, enum diff_field field);

/* Returns the change as a fraction of `a`; infinite from 0 to more, 0 from 0 to 0. */
double diff_ratio(double a, double b);
