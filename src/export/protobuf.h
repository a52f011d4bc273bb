/*
 * A minimal encoder for protocol buffers, for profiles and exports.
 *
 *     field     = tag value            tag = number << 3 | type, as a varint
 *     type 0    : a varint
 *     type 1    : 8 bytes, little-endian
 *     type 2    : its size as a varint, then that many bytes: text, messages, packed numbers
 *
 * A message is built in memory, field by field (struct protobuf; `failed` is sticky and checked
 * once at the end). Where millions of small messages are written, protobuf_put_... write into a
 * buffer that has room.
 */
#pragma once

#include <trail/read.h>

#include "base/varint.h"

enum { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2 };

/* Writes `value` at `to`, which must have room; returns the end. */
static inline uint8_t *protobuf_put_varint(uint8_t *to, uint64_t value)
{
    return to + uvarint_put(to, value);
}

/* The same for a field's tag and value. */
static inline uint8_t *protobuf_put_number(uint8_t *to, unsigned field, uint64_t value)
{
    to = protobuf_put_varint(to, (uint64_t)field << 3 | PROTOBUF_VARINT);
    return protobuf_put_varint(to, value);
}

static inline uint8_t *protobuf_put_fixed64(uint8_t *to, unsigned field, uint64_t value)
{
    to = protobuf_put_varint(to, (uint64_t)field << 3 | PROTOBUF_FIXED64);
    for (unsigned i = 0; i < 8; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

/* A message under construction. Zero-initialised: empty and ready. */
struct protobuf {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
};

/* Appends a varint without a tag. */
void protobuf_varint(struct protobuf *to, uint64_t value);

/* Adds a field. 0 is the default value, and is omitted. */
void protobuf_number(struct protobuf *to, unsigned field, uint64_t value);

/* The same, but does not omit 0: for a field of a oneof. */
void protobuf_present_number(struct protobuf *to, unsigned field, uint64_t value);
void protobuf_fixed64(struct protobuf *to, unsigned field, uint64_t value);

/* Adds a field of bytes unchanged. */
void protobuf_data(struct protobuf *to, unsigned field, const void *data, size_t size);

/* Appends bytes without a tag and a size. */
void protobuf_raw(struct protobuf *to, const void *data, size_t size);

/* Adds any bytes as UTF-8: invalid ones become U+FFFD. */
void protobuf_text(struct protobuf *to, unsigned field, trail_string text);

/* The same for a NUL-terminated text. */
void protobuf_word(struct protobuf *to, unsigned field, const char *text);

/* Adds the message, or packed numbers, built in `part`, which is then emptied. */
void protobuf_part(struct protobuf *to, unsigned field, struct protobuf *part);
void protobuf_free(struct protobuf *to);
