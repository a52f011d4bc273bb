/* The record of a string, with ID and text encoded alike in v1 and v2: | id | size | bytes | */
#pragma once

#include <trail/read.h>

#include "base/varint.h"

/* Takes the record after its type from [*at, end). Returns false if it is incomplete. */
static inline bool string_take(const uint8_t **at, const uint8_t *end, trail_string *text)
{
    uint64_t id, size;
    const uint8_t *next = uvarint_get(*at, end, &id);
    next = next ? uvarint_get(next, end, &size) : NULL;
    if (!next || size > (uint64_t)(end - next))
        return false;
    *text = (trail_string){(const char *)next, (size_t)size};
    *at = next + size;
    return true;
}
