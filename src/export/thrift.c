/* Writes Thrift's compact protocol: see thrift.h. */
#include "export/thrift.h"

#include <string.h>

static void put_byte(struct thrift *thrift, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    protobuf_raw(thrift->to, &value, 1);
}

/* Field 0: an element, which has no header. */
static void put_field(struct thrift *thrift, unsigned field, enum thrift_type type)
{
    if (field == 0)
        return;
    put_byte(thrift, (field - thrift->last[thrift->depth]) << 4 | type);
    thrift->last[thrift->depth] = field;
}

void thrift_i32(struct thrift *thrift, unsigned field, int32_t value)
{
    put_field(thrift, field, THRIFT_I32);
    protobuf_varint(thrift->to, thrift_zigzag(value));
}

void thrift_i64(struct thrift *thrift, unsigned field, int64_t value)
{
    put_field(thrift, field, THRIFT_I64);
    protobuf_varint(thrift->to, thrift_zigzag(value));
}

void thrift_binary(struct thrift *thrift, unsigned field, const void *data, size_t size)
{
    put_field(thrift, field, THRIFT_BINARY);
    protobuf_varint(thrift->to, size);
    protobuf_raw(thrift->to, data, size);
}

void thrift_word(struct thrift *thrift, unsigned field, const char *text)
{
    thrift_binary(thrift, field, text, strlen(text));
}

void thrift_element(struct thrift *thrift)
{
    thrift->last[++thrift->depth] = 0;
}

void thrift_begin(struct thrift *thrift, unsigned field)
{
    put_field(thrift, field, THRIFT_STRUCT);
    thrift_element(thrift);
}

void thrift_list(struct thrift *thrift, unsigned field, enum thrift_type type, size_t count)
{
    put_field(thrift, field, THRIFT_LIST);
    put_byte(thrift, (count < 15 ? (unsigned)count : 15) << 4 | type);
    if (count >= 15)
        protobuf_varint(thrift->to, count);
}

void thrift_end(struct thrift *thrift)
{
    put_byte(thrift, 0);
    if (thrift->depth > 0)
        thrift->depth--;
}
