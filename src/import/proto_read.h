/* Reads Google's protocol buffers, field by field. Sizes are checked; callers ignore unknown
 * fields. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message, or a packed list of numbers, not read yet. */
struct proto {
    const uint8_t *at, *end;
    bool bad; /* malformed, from `at` on */
};

enum proto_type { PROTO_NUMBER, PROTO_FIXED64, PROTO_BYTES, PROTO_FIXED32 = 5 };

struct proto_field {
    uint32_t id;
    enum proto_type type;
    uint64_t number;    /* for all types except PROTO_BYTES */
    struct proto bytes; /* for PROTO_BYTES: a message, a text or a packed list */
};

/* Takes the next field. Returns false at the end, or if the rest is malformed. */
bool proto_next(struct proto *message, struct proto_field *field);

/* Takes the next number of a packed list. Returns false at the end, or if the rest is malformed. */
bool proto_next_number(struct proto *list, uint64_t *number);
