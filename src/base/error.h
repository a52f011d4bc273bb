/*
 * Making errors: trail_error (include/trail/error.h) is filled once, where the cause is known best,
 * and only passed on from there.
 */
#ifndef TRAIL_BASE_ERROR_H
#define TRAIL_BASE_ERROR_H

#include <trail/error.h>

/* An error with no position at all and code TRAIL_OK, to be filled. */
trail_error no_error(void);
void error_clear(trail_error *err);

/*
 * Sets code and message and forgets every position; the caller then sets those that it knows. `err`
 * may be NULL. Returns -1, so that a function can end with `return error_set(...)`.
 */
int error_set(trail_error *err, trail_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
