/* Reads protocol buffers, field by field: see proto_read.h. */
#include "import/proto_read.h"

#define FIELD_MAX ((UINT64_C(1) << 29) - 1)

bool proto_next_number(struct proto *list, uint64_t *number)
{
    const uint8_t *at = list->at;
    *number = 0;
    for (unsigned shift = 0; shift < 64 && at < list->end; shift += 7) {
        uint64_t part = *at & 0x7f;
        if (shift == 63 && part > 1) /* exceeds 64 bits */
            break;
        *number |= part << shift;
        if (*at++ < 0x80) {
            list->at = at;
            return true;
        }
    }
    list->bad = list->at < list->end;
    return false;
}

/* Takes little-endian bytes of a fixed size. */
static bool take_fixed(struct proto *message, size_t size, uint64_t *number)
{
    *number = 0;
    if ((size_t)(message->end - message->at) < size)
        return false;
    for (size_t i = 0; i < size; i++)
        *number |= (uint64_t)message->at[i] << 8 * i;
    message->at += size;
    return true;
}

static bool take_bytes(struct proto *message, struct proto *bytes)
{
    uint64_t size;
    if (!proto_next_number(message, &size) || size > (uint64_t)(message->end - message->at))
        return false;
    *bytes = (struct proto){message->at, message->at + size, false};
    message->at += size;
    return true;
}

bool proto_next(struct proto *message, struct proto_field *field)
{
    uint64_t tag;
    bool good = true;
    if (message->at == message->end || message->bad)
        return false;
    good = proto_next_number(message, &tag) && tag >> 3 > 0 && tag >> 3 <= FIELD_MAX;
    *field = (struct proto_field){.id = (uint32_t)(tag >> 3), .type = (enum proto_type)(tag & 7)};
    switch (field->type) {
    case PROTO_NUMBER:
        good = good && proto_next_number(message, &field->number);
        break;
    case PROTO_FIXED64:
        good = good && take_fixed(message, 8, &field->number);
        break;
    case PROTO_BYTES:
        good = good && take_bytes(message, &field->bytes);
        break;
    case PROTO_FIXED32:
        good = good && take_fixed(message, 4, &field->number);
        break;
    default:
        good = false;
        break;
    }
    message->bad = !good;
    return good;
}
