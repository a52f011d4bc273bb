/*
 * Out: a buffered writer for printers. Text is written directly to one large buffer, which is
 * passed to the sink when it is full. The inline functions cost a bounds check and the copy.
 *
 * Failure is sticky: after the sink has failed, all output is dropped, so that a printer need not
 * check each call. It can check `failed` occasionally to stop early; out_finish reports the error.
 *
 *     struct out out;
 *     if (!out_init(&out, sink->write, sink->context))
 *         return error_set(err, TRAIL_NO_MEMORY, ...);
 *     ... out_str(&out, "G="); out_u64(&out, g); out_char(&out, '\n'); ...
 *     return out_finish(&out, err);
 *
 * An out with a buffer of the caller's is set up by hand (at, end, buffer, write, context) and only
 * flushed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <trail/error.h>

#define OUT_BUFFER_SIZE ((size_t)256 << 10)
#define U64_DIGITS      20

/* Takes all bytes, or returns false with errno set. */
typedef bool (*out_write_fn)(void *context, const void *data, size_t size);

struct out {
    char *at, *end; /* the free part of the buffer */
    char *buffer;
    out_write_fn write;
    void *context;
    bool failed;
    int reason; /* errno of the failure */
};

/* Returns false if out of memory. */
bool out_init(struct out *out, out_write_fn write, void *context);

/* Passes the buffer's contents to the sink. */
void out_flush(struct out *out);

/* Flushes and frees. Returns 0, or -1 with TRAIL_IO in *err if the sink failed. */
int out_finish(struct out *out, trail_error *err);

/* Frees without flushing, after another error. */
void out_drop(struct out *out);

/* The general cases of the inline functions below. */
void out_bytes_slow(struct out *out, const void *data, size_t size);
void out_u64_slow(struct out *out, uint64_t value);
char *u64_put_slow(char *to, uint64_t value);

/*
 * Ensures room for `size` bytes, at most OUT_BUFFER_SIZE, which may then be written at out->at
 * directly.
 */
static inline void out_room(struct out *out, size_t size)
{
    if (__builtin_expect((size_t)(out->end - out->at) < size, 0))
        out_flush(out);
}

static inline void out_bytes(struct out *out, const void *data, size_t size)
{
    if (__builtin_expect((size_t)(out->end - out->at) < size, 0)) {
        out_bytes_slow(out, data, size);
    } else if (size > 0) {
        memcpy(out->at, data, size);
        out->at += size;
    }
}

static inline void out_str(struct out *out, const char *text)
{
    out_bytes(out, text, strlen(text));
}

static inline void out_char(struct out *out, char c)
{
    out_room(out, 1);
    *out->at++ = c;
}

/*
 * Writes `value` in decimal at `to`, at most U64_DIGITS bytes, and returns its end. For callers
 * that make room for several values at once.
 */
static inline char *u64_put(char *to, uint64_t value)
{
    if (value < 10) {
        *to = (char)('0' + value);
        return to + 1;
    }
    return u64_put_slow(to, value);
}

/*
 * Writes value / unit at `to`, truncated to at least three digits without trailing zeros: 1.25,
 * 17.6, 340. Returns its end. Needs 3 bytes more than u64_put.
 */
char *scaled_put(char *to, uint64_t value, uint64_t unit);

/* Writes a decimal number. */
static inline void out_u64(struct out *out, uint64_t value)
{
    if (value < 10)
        out_char(out, (char)('0' + value));
    else
        out_u64_slow(out, value);
}

static inline void out_i64(struct out *out, int64_t value)
{
    if (value < 0) {
        out_char(out, '-');
        out_u64(out, -(uint64_t)value);
    } else {
        out_u64(out, (uint64_t)value);
    }
}

/* Writes a lower-case hexadecimal number, at least `digits` digits (at most 16), without a
 * prefix. */
void out_hex(struct out *out, uint64_t value, unsigned digits);

/* Writes a decimal number with leading zeros, at least `digits` digits (at most 20). */
void out_u64_padded(struct out *out, uint64_t value, unsigned digits);

/* For rare output; the result is truncated to 1 KiB. */
void out_format(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
