#include "export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/quote.h"

static void put_bytes(struct protobuf *to, const void *data, size_t size)
{
    if (to->failed || !GROW(to->data, to->capacity, to->size + size)) {
        to->failed = true;
        return;
    }
    if (size > 0)
        memcpy(to->data + to->size, data, size);
    to->size += size;
}

void protobuf_varint(struct protobuf *to, uint64_t value)
{
    if (to->failed || !GROW(to->data, to->capacity, to->size + PROTOBUF_VARINT_MAX)) {
        to->failed = true;
        return;
    }
    to->size = (size_t)(protobuf_put_varint(to->data + to->size, value) - to->data);
}

void protobuf_number(struct protobuf *to, unsigned field, uint64_t value)
{
    if (value == 0)
        return;
    protobuf_varint(to, field << 3 | PROTOBUF_VARINT);
    protobuf_varint(to, value);
}

static bool is_utf8(trail_string text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        uint32_t rune;
        unsigned size = *at < 0x80 ? 1 : utf8_decode(at, end, &rune);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

/* The text made UTF-8. */
static void put_fixed_text(struct protobuf *to, trail_string text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    while (at < end) {
        uint8_t fixed[4];
        uint32_t rune = 0xfffd;
        unsigned size = utf8_decode(at, end, &rune);
        put_bytes(to, fixed, utf8_encode(fixed, size ? rune : 0xfffd));
        at += size ? size : 1;
    }
}

void protobuf_text(struct protobuf *to, unsigned field, trail_string text)
{
    struct protobuf part = {0};
    if (is_utf8(text)) {
        protobuf_varint(to, (uint64_t)field << 3 | PROTOBUF_BYTES);
        protobuf_varint(to, text.size);
        put_bytes(to, text.data, text.size);
        return;
    }
    put_fixed_text(&part, text);
    protobuf_part(to, field, &part);
    protobuf_free(&part);
}

void protobuf_word(struct protobuf *to, unsigned field, const char *text)
{
    protobuf_text(to, field, (trail_string){text, strlen(text)});
}

void protobuf_part(struct protobuf *to, unsigned field, struct protobuf *part)
{
    protobuf_varint(to, field << 3 | PROTOBUF_BYTES);
    protobuf_varint(to, part->size);
    put_bytes(to, part->data, part->size);
    to->failed |= part->failed;
    part->size = 0;
}

void protobuf_free(struct protobuf *to)
{
    free(to->data);
    *to = (struct protobuf){0};
}
