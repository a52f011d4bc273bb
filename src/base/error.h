/*
 * Creating errors: a trail_error (include/trail/error.h) is filled once, where the cause is known
 * best, and is passed on unchanged.
 */
#pragma once

#include <trail/error.h>

/* Returns an error with code TRAIL_OK and no position. */
trail_error no_error(void);
void error_clear(trail_error *err);

/*
 * Sets code and message and clears every position; the caller sets those that it knows. `err` may
 * be NULL. Returns -1, so that a function can end with `return error_set(...)`.
 */
int error_set(trail_error *err, trail_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for the lack of memory, whose message is the same everywhere. */
int error_no_memory(trail_error *err);
