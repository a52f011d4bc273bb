/*
 * Unsigned LEB128 ("uvarint"): seven bits per byte, least significant first, the top bit set if
 * more bytes follow; at most 10 bytes for 64 bits. Zero-padded encodings are legal and occur (§0).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define UVARINT_MAX_SIZE 10

/*
 * Loads eight bytes, the first in the lowest bits: bit 8i + 7 is set if byte i is not the last of
 * its number.
 */
static inline uint64_t uvarint_load8(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The general case of uvarint_get. */
const uint8_t *uvarint_get_slow(const uint8_t *at, const uint8_t *end, uint64_t *value);

/*
 * Decodes one number from [at, end). Returns its end, or NULL if the bytes run out first or it
 * exceeds 64 bits. One or two bytes, the usual case, take about 1 ns.
 */
static inline const uint8_t *uvarint_get(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    if (__builtin_expect(end - at >= 2, 1)) {
        if (at[0] < 0x80) {
            *value = at[0];
            return at + 1;
        }
        if (at[1] < 0x80) {
            *value = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
            return at + 2;
        }
    }
    return uvarint_get_slow(at, end, value);
}

/* Writes `value` to `to` (at least UVARINT_MAX_SIZE bytes) and returns the number of bytes. */
static inline size_t uvarint_put(uint8_t *to, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        to[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to[n++] = (uint8_t)value;
    return n;
}

/* Returns the number of bytes that uvarint_put writes for `value`. */
static inline size_t uvarint_size(uint64_t value)
{
    return (size_t)(70 - __builtin_clzll(value | 1)) / 7;
}
