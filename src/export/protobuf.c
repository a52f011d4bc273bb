/* Writes protocol buffers: see protobuf.h. */
#include "export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "base/utf8.h"

void protobuf_raw(struct protobuf *to, const void *data, size_t size)
{
    if (to->failed || !GROW(to->data, to->capacity, to->size + size)) {
        to->failed = true;
        return;
    }
    if (data)
        memcpy(to->data + to->size, data, size);
    to->size += size;
}

void protobuf_varint(struct protobuf *to, uint64_t value)
{
    if (to->failed || !GROW(to->data, to->capacity, to->size + UVARINT_MAX_SIZE)) {
        to->failed = true;
        return;
    }
    to->size = (size_t)(protobuf_put_varint(to->data + to->size, value) - to->data);
}

void protobuf_number(struct protobuf *to, unsigned field, uint64_t value)
{
    if (value != 0)
        protobuf_present_number(to, field, value);
}

void protobuf_present_number(struct protobuf *to, unsigned field, uint64_t value)
{
    protobuf_varint(to, field << 3 | PROTOBUF_VARINT);
    protobuf_varint(to, value);
}

void protobuf_fixed64(struct protobuf *to, unsigned field, uint64_t value)
{
    uint8_t bytes[UVARINT_MAX_SIZE + 8];
    protobuf_raw(to, bytes, (size_t)(protobuf_put_fixed64(bytes, field, value) - bytes));
}

void protobuf_data(struct protobuf *to, unsigned field, const void *data, size_t size)
{
    protobuf_varint(to, (uint64_t)field << 3 | PROTOBUF_BYTES);
    protobuf_varint(to, size);
    protobuf_raw(to, data, size);
}

void protobuf_text(struct protobuf *to, unsigned field, trail_string text)
{
    struct protobuf part = {0};
    if (utf8_valid(text)) {
        protobuf_data(to, field, text.data, text.size);
        return;
    }
    if (GROW(part.data, part.capacity, 3 * text.size))
        part.size = utf8_repair(part.data, text, UTF8_NUL_KEPT);
    else
        part.failed = true;
    protobuf_part(to, field, &part);
    protobuf_free(&part);
}

void protobuf_word(struct protobuf *to, unsigned field, const char *text)
{
    protobuf_text(to, field, text_from(text));
}

void protobuf_part(struct protobuf *to, unsigned field, struct protobuf *part)
{
    protobuf_data(to, field, part->data, part->size);
    to->failed |= part->failed;
    part->size = 0;
}

void protobuf_free(struct protobuf *to)
{
    free(to->data);
    *to = (struct protobuf){0};
}
