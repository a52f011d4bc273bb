/* Fills a trail_error; names of error codes. */
#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

trail_error no_error(void)
{
    return (trail_error){
        .offset = TRAIL_NOWHERE,
        .generation = TRAIL_NOWHERE,
        .batch = TRAIL_NOWHERE,
        .thread = TRAIL_NOWHERE,
        .proc = TRAIL_NOWHERE,
        .goroutine = TRAIL_NOWHERE,
        .time_ns = TRAIL_NOWHERE,
    };
}

void error_clear(trail_error *err)
{
    *err = no_error();
}

int error_set(trail_error *err, trail_code code, const char *format, ...)
{
    if (!err)
        return -1;
    error_clear(err);
    err->code = code;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return -1;
}

int error_no_memory(trail_error *err)
{
    return error_set(err, TRAIL_NO_MEMORY, "out of memory");
}

const char *trail_code_name(trail_code code)
{
    static const char *const names[] = {
        [TRAIL_OK] = "ok",
        [TRAIL_NOT_A_TRACE] = "not a trace",
        [TRAIL_UNSUPPORTED] = "unsupported version",
        [TRAIL_TRUNCATED] = "truncated",
        [TRAIL_CORRUPT] = "corrupt",
        [TRAIL_INCONSISTENT] = "inconsistent",
        [TRAIL_TIME_ORDER] = "time stamps out of order",
        [TRAIL_IO] = "input/output error",
        [TRAIL_NO_MEMORY] = "out of memory",
        [TRAIL_USAGE] = "usage",
        [TRAIL_LIMIT] = "over a limit",
    };
    return (unsigned)code < sizeof names / sizeof *names ? names[code] : "?";
}

const char *trail_error_where(const trail_error *err, char *buf, size_t size)
{
    const struct {
        const char *format;
        int64_t value;
    } parts[] = {
        {"offset %#" PRIx64, err->offset}, {"generation %" PRId64, err->generation},
        {"batch %" PRId64, err->batch},    {"M %" PRId64, err->thread},
        {"P %" PRId64, err->proc},         {"G %" PRId64, err->goroutine},
    };
    size_t n = 0;
    if (size > 0)
        buf[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts && n < size; i++) {
        if (parts[i].value == TRAIL_NOWHERE)
            continue;
        const char *comma = n > 0 ? ", " : "";
        n += (size_t)snprintf(buf + n, size - n, "%s", comma);
        if (n < size)
            n += (size_t)snprintf(buf + n, size - n, parts[i].format, parts[i].value);
    }
    if (err->time_ns != TRAIL_NOWHERE && n < size)
        (void)snprintf(buf + n, size - n, "%stime %.9gs", n > 0 ? ", " : "",
                       (double)err->time_ns / 1e9);
    return buf;
}
