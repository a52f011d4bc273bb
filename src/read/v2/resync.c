/* v2 resync: see resync.h. */
#include "read/v2/resync.h"

#include "read/v2/batch.h"
#include "read/v2/decode.h"
#include "wire/wire.h"

/*
 * Times are from a clock that started long before the trace, so chance bytes in events, which are
 * mostly small numbers, do not look like them.
 */
#define NEAR_TICKS     (UINT64_C(1) << 44)
#define HIGHEST_TICKS  (UINT64_C(1) << 60)
#define HIGHEST_THREAD (UINT64_C(1) << 40)

static bool plausible(const struct v2_resync *rules, const struct v2_batch_header *header)
{
    const uint64_t half =
        rules->time_ticks == 0 ? HIGHEST_TICKS / 2 : rules->time_ticks + NEAR_TICKS;
    if (header->end_of_generation)
        return true;
    if (header->generation == 0 || header->size == 0 ||
        (header->thread > HIGHEST_THREAD && header->thread != UINT64_MAX) ||
        header->time < rules->time_ticks / 2 || header->time / 2 > half)
        return false;
    return rules->generation == 0 || rules->irregular
               ? header->generation < UINT64_C(1) << 32
               : header->generation >= rules->generation &&
                     header->generation - rules->generation <= rules->reach;
}

/* Whether a batch has a table, or well-formed events. */
static bool is_well_formed(const struct v2_resync *rules, const struct v2_batch_header *header,
                           const uint8_t *at)
{
    struct v2_wire_event event;
    const uint8_t *end = at + header->size;
    if (header->end_of_generation ||
        v2_batch_kind(header, *at, rules->version) != TRAIL_BATCH_EVENTS)
        return true;
    while (at && at < end)
        at = v2_decode_any(at, end, &event);
    return at != NULL;
}

/* Returns the end of the plausible batch at `at`, with its generation; 0 if there is none. */
static size_t batch_end(const struct v2_resync *rules, const uint8_t *data, size_t size, size_t at,
                        uint64_t *generation)
{
    struct v2_batch_header header;
    size_t length;
    if (v2_batch_header(data + at, size - at, rules->version, &header, &length, NULL) !=
            V2_HEADER_OK ||
        !plausible(rules, &header) || header.size > size - at - length)
        return 0;
    /* Without a time to compare, small numbers in events often look like a header. */
    if (rules->time_ticks == 0 && !is_well_formed(rules, &header, data + at + length))
        return 0;
    *generation = header.generation;
    return at + length + (size_t)header.size;
}

/* Whether a batch is at `at`, followed by another one or the end of the trace. */
static bool continues_at(const struct v2_resync *rules, const uint8_t *data, size_t size, size_t at)
{
    struct v2_resync next = *rules;
    size_t end = batch_end(rules, data, size, at, &next.generation);
    if (end == 0 || data[at] == V2_EndOfGeneration)
        return false;
    next.reach = 1;
    if (end < size && data[end] == V2_EndOfGeneration && rules->version >= 26)
        end++;
    uint64_t generation;
    return end < size ? batch_end(&next, data, size, end, &generation) != 0
                      : end == size && rules->at_end;
}

/* Whether the generation ends at `at`, followed by the next one or the end of the trace. */
static bool ends_at(const struct v2_resync *rules, const uint8_t *data, size_t size, size_t at)
{
    struct v2_resync next = *rules;
    if (rules->version < 26 || rules->generation == 0)
        return false;
    next.generation++;
    return at + 1 < size ? continues_at(&next, data, size, at + 1) : rules->at_end;
}

size_t v2_resync_find(const struct v2_resync *rules, const uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        if ((data[at] == V2_EventBatch || data[at] == V2_ExperimentalBatch) &&
            continues_at(rules, data, size, at))
            return at;
        if (data[at] == V2_EndOfGeneration && ends_at(rules, data, size, at))
            return at;
    }
    return size;
}
