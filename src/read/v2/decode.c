/* v2: decodes an event of any form. */
#include "read/v2/decode.h"

#include <stdio.h>

const uint8_t v2_numbers_of[256] = {
#define STRUCTURAL(args)                                0
#define CLOCK(args)                                     0
#define TIMED(args)                                     args
#define ALLOC_FREE(args)                                args
#define V2_EVENT(number, name, since, class, args, ...) [number] = class(args),
#include "wire/v2.def"
};

const uint8_t *v2_decode_any(const uint8_t *at, const uint8_t *end, struct v2_wire_event *event)
{
    unsigned numbers = v2_numbers_of[*at];
    if (numbers == 0)
        return NULL;
    event->type = *at++;
    at = uvarint_get(at, end, &event->ticks);
    for (unsigned i = 0; at && i + 1 < numbers; i++)
        at = uvarint_get(at, end, &event->arg[i]);
    return at;
}

void v2_decode_problem(const uint8_t *at, const uint8_t *end, char *message, size_t size)
{
    uint64_t ticks;
    const struct v2_type_info *type = *at < V2_TYPES ? &v2_types[*at] : NULL;
    if (!type || !type->name)
        (void)snprintf(message, size, "found invalid event type: %u", *at);
    else if (v2_numbers_of[*at] == 0)
        (void)snprintf(message, size, "found event without a timestamp: type=%u (%s)", *at,
                       type->name);
    else if (!uvarint_get(at + 1, end, &ticks))
        (void)snprintf(message, size, "found invalid uvarint for timestamp in %s", type->name);
    else if (v2_decode_any(at, end, &(struct v2_wire_event){0}))
        (void)snprintf(message, size, "found numbers in %s that no program has", type->name);
    else
        (void)snprintf(message, size, "found invalid uvarint in %s", type->name);
}
