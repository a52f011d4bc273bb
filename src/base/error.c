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
    switch (code) {
    case TRAIL_OK:
        return "ok";
    case TRAIL_NOT_A_TRACE:
        return "not a trace";
    case TRAIL_UNSUPPORTED:
        return "unsupported version";
    case TRAIL_TRUNCATED:
        return "truncated";
    case TRAIL_CORRUPT:
        return "corrupt";
    case TRAIL_INCONSISTENT:
        return "inconsistent";
    case TRAIL_TIME_ORDER:
        return "time stamps out of order";
    case TRAIL_IO:
        return "input/output error";
    case TRAIL_NO_MEMORY:
        return "out of memory";
    case TRAIL_USAGE:
        return "usage";
    case TRAIL_LIMIT:
        return "over a limit";
    }
    return "?";
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
