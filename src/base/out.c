/* The buffered writer: the cases that its inline functions leave. */
#include "base/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

bool out_init(struct out *out, out_write_fn write, void *context)
{
    *out = (struct out){.write = write, .context = context};
    out->buffer = malloc(OUT_BUFFER_SIZE);
    if (!out->buffer)
        return false;
    out->at = out->buffer;
    out->end = out->buffer + OUT_BUFFER_SIZE;
    return true;
}

static void out_write(struct out *out, const void *data, size_t size)
{
    if (out->failed || size == 0)
        return;
    errno = 0;
    if (!out->write(out->context, data, size)) {
        out->failed = true;
        out->reason = errno;
    }
}

void out_flush(struct out *out)
{
    out_write(out, out->buffer, (size_t)(out->at - out->buffer));
    out->at = out->buffer;
}

int out_finish(struct out *out, trail_error *err)
{
    out_flush(out);
    out_drop(out);
    if (!out->failed)
        return 0;
    return error_set(err, TRAIL_IO, "cannot write: %s",
                     out->reason ? strerror(out->reason) : "the output was refused");
}

void out_drop(struct out *out)
{
    free(out->buffer);
    out->buffer = out->at = out->end = NULL;
}

void out_bytes_slow(struct out *out, const void *data, size_t size)
{
    out_flush(out);
    if (size >= (size_t)(out->end - out->buffer))
        out_write(out, data, size);
    else
        out_bytes(out, data, size);
}

/* MARK: Numbers */

static const char pairs[] = "0001020304050607080910111213141516171819"
                            "2021222324252627282930313233343536373839"
                            "4041424344454647484950515253545556575859"
                            "6061626364656667686970717273747576777879"
                            "8081828384858687888990919293949596979899";

/* Writes the digits of `value` so that they end at `end`; returns their beginning. */
static char *digits_before(char *end, uint64_t value)
{
    while (value >= 100) {
        end -= 2;
        memcpy(end, pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        end -= 2;
        memcpy(end, pairs + 2 * value, 2);
    } else {
        *--end = (char)('0' + value);
    }
    return end;
}

/* The number of digits of a value that is not 0. */
static unsigned digits_of(uint64_t value)
{
    /* clang-format off */
    static const uint64_t powers[] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000,
        100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
        10000000000000000, 100000000000000000, 1000000000000000000, 10000000000000000000u};
    /* clang-format on */
    unsigned bits = 64 - (unsigned)__builtin_clzll(value);
    unsigned least = bits * 1233 >> 12; /* bits times the logarithm of 2 */
    return least + (value >= powers[least]);
}

char *u64_put_slow(char *to, uint64_t value)
{
    char *end = to + digits_of(value);
    (void)digits_before(end, value);
    return end;
}

char *scaled_put(char *to, uint64_t value, uint64_t unit)
{
    uint64_t whole = value / unit;
    uint64_t rest = (uint64_t)((double)(value % unit) / (double)unit * 100);
    unsigned decimals = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
    to = u64_put(to, whole);
    if (decimals == 0 || rest < (decimals == 1 ? 10u : 1u))
        return to;
    *to++ = '.';
    *to++ = (char)('0' + rest / 10);
    if (decimals == 2 && rest % 10)
        *to++ = (char)('0' + rest % 10);
    return to;
}

void out_u64_slow(struct out *out, uint64_t value)
{
    char text[U64_DIGITS], *end = text + sizeof text;
    char *begin = digits_before(end, value);
    out_bytes(out, begin, (size_t)(end - begin));
}

void out_u64_padded(struct out *out, uint64_t value, unsigned digits)
{
    char text[U64_DIGITS], *end = text + sizeof text;
    memset(text, '0', sizeof text);
    char *begin = digits_before(end, value);
    if (digits > sizeof text)
        digits = sizeof text;
    if (begin > end - digits)
        begin = end - digits;
    out_bytes(out, begin, (size_t)(end - begin));
}

void out_hex(struct out *out, uint64_t value, unsigned digits)
{
    char text[16], *begin = text + sizeof text;
    do {
        *--begin = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (begin > text && (value || begin > text + sizeof text - digits));
    out_bytes(out, begin, (size_t)(text + sizeof text - begin));
}

void out_format(struct out *out, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0)
        out_bytes(out, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}
