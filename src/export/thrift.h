/*
 * Thrift's compact protocol, as Parquet uses it for what describes its pages: structures of fields,
 * appended to a buffer.
 *
 *     structure = field... 0
 *     field     = (number - number of the field before) << 4 | type, its value
 *     numbers   : zigzag varints           texts: their size, bytes
 *     lists     : size << 4 | type of the elements, the elements
 *
 * Field numbers that are written rise by at most 15 within a structure. Of others, 4 bits are 0,
 * and the number follows as a varint.
 */
#pragma once

#include "export/protobuf.h"

enum thrift_type {
    THRIFT_TRUE = 1, /* of fields the type is the value; elements have a byte */
    THRIFT_FALSE = 2,
    THRIFT_BYTE = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12
};

/* Zero-initialised except for `to`: at the beginning of a structure. */
struct thrift {
    struct protobuf *to; /* the buffer, whose failure is sticky */
    unsigned depth;
    unsigned last[8]; /* the field before, by depth */
};

/* The number of a zigzag varint. */
static inline uint64_t thrift_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

void thrift_i32(struct thrift *thrift, unsigned field, int32_t value);
void thrift_i64(struct thrift *thrift, unsigned field, int64_t value);
void thrift_binary(struct thrift *thrift, unsigned field, const void *data, size_t size);
void thrift_word(struct thrift *thrift, unsigned field, const char *text);

/* Begins a field that is a structure; `count` follow as elements of a list. */
void thrift_begin(struct thrift *thrift, unsigned field);
void thrift_list(struct thrift *thrift, unsigned field, enum thrift_type type, size_t count);

/* Begins a structure that is an element. Numbers and texts that are elements: field 0. */
void thrift_element(struct thrift *thrift);

/* Ends a structure. */
void thrift_end(struct thrift *thrift);
