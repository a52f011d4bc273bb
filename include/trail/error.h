/*
 * Errors as values: a code, one message, and the position in the trace.
 *
 * Every function of libtrail that can fail takes a `trail_error *` (NULL if the caller does not
 * need it) or returns one. Nothing is printed, nothing aborts. A trail_error owns no memory and may
 * be copied freely.
 */
#ifndef TRAIL_ERROR_H
#define TRAIL_ERROR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TRAIL_API __attribute__((visibility("default")))
#else
#define TRAIL_API
#endif

typedef enum trail_code {
    TRAIL_OK = 0,
    TRAIL_NOT_A_TRACE,  /* the 16-byte header is not that of a Go execution trace */
    TRAIL_UNSUPPORTED,  /* a trace of a version that no known Go release writes */
    TRAIL_TRUNCATED,    /* the input ends inside a record, batch or generation */
    TRAIL_CORRUPT,      /* a byte, length, type or ID that the format does not allow */
    TRAIL_INCONSISTENT, /* well-formed, but the events contradict each other */
    TRAIL_TIME_ORDER,   /* time stamps run backwards between CPUs */
    TRAIL_IO,           /* reading or writing failed; the message has the system's reason */
    TRAIL_NO_MEMORY,
    TRAIL_USAGE, /* an argument of the call is wrong */
    TRAIL_LIMIT, /* the input exceeds a limit: see trail_source_limit_inflated */
} trail_code;

/* A position that is unknown or does not apply is TRAIL_NOWHERE. */
#define TRAIL_NOWHERE (-1)

#define TRAIL_MESSAGE_MAX 512

typedef struct trail_error {
    trail_code code;
    char message[TRAIL_MESSAGE_MAX]; /* one line of UTF-8, NUL-terminated, no final newline */
    int64_t offset;                  /* byte offset in the (uncompressed) trace */
    int64_t generation;              /* v2: generation number as in the file */
    int64_t batch;                   /* v1: index of the batch in the file, from 0 */
    int64_t thread, proc, goroutine;
    int64_t time_ns; /* trace time of the event at fault */
} trail_error;

/* Returns the fixed name of a code: "truncated", "not a trace", ... Never NULL. */
TRAIL_API const char *trail_code_name(trail_code code);

/*
 * Formats the position of an error for display: "offset 0x1f40, generation 3, M 12, G 7, time
 * 1.25s". Writes at most `size` bytes including the NUL; "" for an error without a position.
 * Returns `buf`.
 */
TRAIL_API const char *trail_error_where(const trail_error *err, char *buf, size_t size);

#ifdef __cplusplus
}
#endif
#endif
