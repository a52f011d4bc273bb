/*
 * Byte strings for tests, made by hand, so that expected values follow from the description of the
 * format.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/varint.h"

struct bytes {
    uint8_t data[200000];
    size_t size;
};

static inline void bytes_put(struct bytes *b, const void *data, size_t size)
{
    memcpy(b->data + b->size, data, size);
    b->size += size;
}

static inline void bytes_byte(struct bytes *b, unsigned byte)
{
    b->data[b->size++] = (uint8_t)byte;
}

static inline void bytes_number(struct bytes *b, uint64_t value)
{
    b->size += uvarint_put(b->data + b->size, value);
}

/* Appends a size that is filled in later, as the runtime writes it: ten bytes for any value. */
static inline void bytes_padded(struct bytes *b, uint64_t value)
{
    for (unsigned i = 0; i < 9; i++, value >>= 7)
        bytes_byte(b, 0x80 | (value & 0x7f));
    bytes_byte(b, (unsigned)value);
}

static inline void bytes_header(struct bytes *b, int minor)
{
    char header[17] = {0};
    (void)snprintf(header, sizeof header, "go 1.%d trace", minor % 1000);
    b->size = 0;
    bytes_put(b, header, 16);
}

/* Header of a v2 batch. */
static inline void bytes_batch(struct bytes *b, uint64_t gen, uint64_t m, uint64_t time,
                               uint64_t size)
{
    bytes_byte(b, 1);
    bytes_number(b, gen);
    bytes_number(b, m);
    bytes_number(b, time);
    bytes_padded(b, size);
}
