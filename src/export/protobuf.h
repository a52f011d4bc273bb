/*
 * Protocol buffers, as far as profiles and exports need them.
 *
 *     field     = tag value            tag = number << 3 | type, as a varint
 *     type 0    : a varint
 *     type 1    : 8 bytes, the least significant first
 *     type 2    : its size as a varint, then that many bytes: text, messages, packed numbers
 *
 * A message is built in memory, field by field (struct protobuf; failure is sticky: who builds looks
 * at `failed` at the end), or, where millions of small ones are written, put into a buffer that has
 * room (protobuf_put_...).
 */
#ifndef TRAIL_EXPORT_PROTOBUF_H
#define TRAIL_EXPORT_PROTOBUF_H

#include <trail/read.h>

enum { PROTOBUF_VARINT = 0, PROTOBUF_FIXED64 = 1, PROTOBUF_BYTES = 2 };

#define PROTOBUF_VARINT_MAX 10 /* bytes of the longest */

/* Writes `value` at `to`, which has room for it; returns its end. */
static inline uint8_t *protobuf_put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

/* The same for the tag and value of a field. */
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

/* Zero-initialised is empty and ready. */
struct protobuf {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
};

void protobuf_varint(struct protobuf *to, uint64_t value);

/* A field; 0 is the value of one that is not there, and is left out. */
void protobuf_number(struct protobuf *to, unsigned field, uint64_t value);

/* Any bytes as UTF-8: what is not becomes U+FFFD. */
void protobuf_text(struct protobuf *to, unsigned field, trail_string text);

/* The same for a text without NUL bytes. */
void protobuf_word(struct protobuf *to, unsigned field, const char *text);

/* Numbers or a message, built in `part`, which is empty afterwards. */
void protobuf_part(struct protobuf *to, unsigned field, struct protobuf *part);
void protobuf_free(struct protobuf *to);

#endif
