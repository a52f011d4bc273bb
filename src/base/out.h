/*
 * Out: a buffered writer for printers. Text is put straight into one large buffer; a full buffer
 * goes to the sink. The inline functions cost a bounds check and the copy.
 *
 * Failure is sticky: after the sink failed everything is dropped, so a printer needs not check each
 * put. It looks at `failed` once in a while to stop early, and learns the verdict from out_finish.
 *
 *     struct out out;
 *     if (!out_init(&out, sink->write, sink->context))
 *         return error_set(err, TRAIL_NO_MEMORY, ...);
 *     ... out_str(&out, "G="); out_u64(&out, g); out_char(&out, '\n'); ...
 *     return out_finish(&out, err);
 *
 * One with a buffer of the caller's is set up by hand, and only flushed: at, end, buffer, write, context.
 */
#ifndef TRAIL_BASE_OUT_H
#define TRAIL_BASE_OUT_H

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

/* False when memory is out. */
bool out_init(struct out *out, out_write_fn write, void *context);

/* Hands what is in the buffer to the sink. */
void out_flush(struct out *out);

/* Flushes and frees. Returns 0, or -1 with TRAIL_IO in *err if the sink ever failed. */
int out_finish(struct out *out, trail_error *err);

/* Frees without flushing; for after another error. */
void out_drop(struct out *out);

/* The general cases of the functions below. */
void out_bytes_slow(struct out *out, const void *data, size_t size);
void out_u64_slow(struct out *out, uint64_t value);
char *u64_put_slow(char *to, uint64_t value);

/* Makes room for `size` bytes, at most those of the buffer; they may then be put at out->at directly.
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

/* Writes `value` in decimal at `to` (room for U64_DIGITS bytes, all of which may be touched);
 * returns its end. For who made room for more than one thing. */
static inline char *u64_put(char *to, uint64_t value)
{
    if (value < 10) {
        *to = (char)('0' + value);
        return to + 1;
    }
    return u64_put_slow(to, value);
}

/* Writes value / unit at `to` as at least three digits, cut off and without zeros at the end: 1.25, 17.6, 340.
 * Room and end as of u64_put, and 3 bytes more. */
char *scaled_put(char *to, uint64_t value, uint64_t unit);

/* Decimal. */
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

/* Hexadecimal in lower case, at least `digits` of them (at most 16), without a prefix. */
void out_hex(struct out *out, uint64_t value, unsigned digits);

/* Decimal with leading zeros, at least `digits` of them (at most 20). */
void out_u64_padded(struct out *out, uint64_t value, unsigned digits);

/* For the rare; the result is at most 1 KiB. */
void out_format(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
