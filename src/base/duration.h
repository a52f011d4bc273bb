/*
 * Durations as text, in the units s, ms, us and ns, and back.
 */
#ifndef TRAIL_BASE_DURATION_H
#define TRAIL_BASE_DURATION_H

#include <stddef.h>
#include <stdint.h>

#define DURATION_SIZE 64 /* enough for each of these */

/* What is printed, and why not in another form. */
enum duration_form {
    DURATION_COLUMN, /* "1.020 s", "340 ns": three decimals, so that points stand below each other */
    DURATION_WORDS,  /* "1.02 s", "17.6 ms", "340 ns": three digits, for sentences */
    DURATION_SUMMARY, /* the same, and two decimals of 0 to 9 ns: the lines at the end of a recording */
    DURATION_EVENT, /* "1.02s", "17.6ms": cut off and without zeros at the end, where there is a line an event */
    DURATION_LOG, /* "1.02s", "9.3us": rounded to three digits, below 10 us two, so that a trace has few
                         different ones; duration_parse reads it */
    DURATION_FORMS
};

/* Writes it at `to` (DURATION_SIZE); returns its end, where no NUL is. */
char *duration_put(char *to, int64_t ns, enum duration_form form);

/* Into `buf` of DURATION_SIZE, which is returned. */
const char *duration_text(char *buf, int64_t ns, enum duration_form form);

/* "512 us", "20 ms": a place on an axis, which need not be whole; three digits at most but of seconds. */
const char *duration_on_axis(char *buf, double ns);

/* Nanoseconds of a unit: ns, us, ms, s, m or h; 0: it is none of them. */
int64_t duration_unit(const char *name, size_t size);

/* Nanoseconds of "110ms", "1.5s", all of [at, end); -1 if it is no such text. */
int64_t duration_parse(const char *at, const char *end);

#endif
