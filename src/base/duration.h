/*
 * Durations as text in the units s, ms, us and ns, and back. The texts are ASCII, for files; for
 * display in UTF-8, a micro sign replaces the u (duration_us_in).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DURATION_SIZE 64 /* enough for each function below, including a micro sign */
#define MICRO_SIGN    "\xc2\xb5"

/* The forms of a duration, each with its reason. */
enum duration_form {
    /* "1.020 s", "340 ns": three decimals, so that decimal points align in columns */
    DURATION_COLUMN,
    DURATION_WORDS, /* "1.02 s", "17.6 ms", "340 ns", "1,420 s": three digits, for sentences */
    /*
     * "1.02 s", "5.00 ns": as DURATION_WORDS, but ns with decimals too: the summary of a recording
     */
    DURATION_SUMMARY,
    /* "1.02s", "17.6ms": truncated, without trailing zeros, for output with a line per event */
    DURATION_EVENT,
    /*
     * "1.02s", "9.3us": rounded to three digits, below 10 us to two, so that a trace has few
     * different ones; duration_parse reads it
     */
    DURATION_LOG,
    DURATION_FORMS
};

/* Writes the duration at `to` (DURATION_SIZE bytes), without a NUL. Returns its end. */
char *duration_put(char *to, int64_t ns, enum duration_form form);

/* Writes the duration to `buf` (DURATION_SIZE bytes), NUL-terminated. Returns `buf`. */
const char *duration_text(char *buf, int64_t ns, enum duration_form form);

/*
 * Writes "512 us" or "20 ms" for a position on an axis, which need not be an integer; at most three
 * digits, except of seconds. Returns `buf`.
 */
const char *duration_on_axis(char *buf, double ns);

/*
 * Returns the first "us" in the text that is the unit of a number, as in "17 us" and "9.4us"; the
 * end of the text if there is none.
 */
const char *duration_us_in(const char *text);

/*
 * Returns the nanoseconds of a unit: ns, us (or with the sign, or Greek mu), ms, s, m or h; 0 for
 * any other name.
 */
int64_t duration_unit(const char *name, size_t size);

/* Returns the nanoseconds of "110ms" or "1.5s", which must fill [at, end); -1 otherwise. */
int64_t duration_parse(const char *at, const char *end);
