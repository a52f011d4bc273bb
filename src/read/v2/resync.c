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
/* Times the bytes searched: how many are decoded to examine batches, whatever the bytes are. */
#define DECODED_MOST 128

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

bool v2_resync_events(const uint8_t *at, const uint8_t *end)
{
    struct v2_wire_event event;
    while (at && at < end)
        at = v2_decode_any(at, end, &event);
    return at != NULL;
}

/* Returns the end of the batch at `at` if its header is plausible, otherwise 0. */
static size_t batch_end(const struct v2_resync *rules, const uint8_t *data, size_t size, size_t at,
                        struct v2_batch_header *header)
{
    size_t length;
    if (v2_batch_header(data + at, size - at, rules->version, header, &length, NULL) !=
            V2_HEADER_OK ||
        !plausible(rules, header) || header->size > size - at - length)
        return 0;
    return at + length + (size_t)header->size;
}

/*
 * Whether the batch that ends at `end` has a table, or well-formed events: without a time to
 * compare, small numbers in events often look like a header.
 */
static bool is_well_formed(const struct v2_resync *rules, const struct v2_batch_header *header,
                           const uint8_t *end, size_t *budget)
{
    const uint8_t *at = end - header->size;
    if (rules->time_ticks != 0 || header->end_of_generation || *at == V2_Frequency ||
        v2_batch_kind(header, *at, rules->version) != TRAIL_BATCH_EVENTS)
        return true;
    struct v2_wire_event event;
    while (at && at<end && * budget> 0) {
        const uint8_t *next = v2_decode_any(at, end, &event);
        const size_t size = (size_t)((next ? next : at + 1) - at);
        *budget -= size < *budget ? size : *budget;
        at = next;
    }
    return at == end;
}

/* Whether a batch is at `at`, followed by another one or the end of the trace. */
static bool continues_at(const struct v2_resync *rules, const uint8_t *data, size_t size, size_t at,
                         size_t *budget)
{
    struct v2_resync next = *rules;
    struct v2_batch_header header, second;
    const size_t end = batch_end(rules, data, size, at, &header);
    if (end == 0 || data[at] == V2_EndOfGeneration)
        return false;
    next.generation = header.generation;
    next.reach = 1;
    const size_t behind =
        end + (end < size && data[end] == V2_EndOfGeneration && rules->version >= 26);
    if (behind == size)
        return rules->at_end && is_well_formed(rules, &header, data + end, budget);
    const size_t second_end = batch_end(&next, data, size, behind, &second);
    return second_end != 0 && is_well_formed(rules, &header, data + end, budget) &&
           is_well_formed(&next, &second, data + second_end, budget);
}

/* Whether the generation ends at `at`, followed by the next one or the end of the trace. */
static bool ends_at(const struct v2_resync *rules, const uint8_t *data, size_t size, size_t at,
                    size_t *budget)
{
    struct v2_resync next = *rules;
    if (rules->version < 26 || rules->generation == 0)
        return false;
    next.generation++;
    return at + 1 < size ? continues_at(&next, data, size, at + 1, budget) : rules->at_end;
}

size_t v2_resync_find(const struct v2_resync *rules, const uint8_t *data, size_t size)
{
    size_t budget = DECODED_MOST * size;
    for (size_t at = 0; at < size; at++) {
        if ((data[at] == V2_EventBatch || data[at] == V2_ExperimentalBatch) &&
            continues_at(rules, data, size, at, &budget))
            return at;
        if (data[at] == V2_EndOfGeneration && ends_at(rules, data, size, at, &budget))
            return at;
    }
    return size;
}
