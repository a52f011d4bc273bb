/* v2: reads the header of a batch. */
#include "read/v2/batch.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/varint.h"
#include "wire/wire.h"

/*
 * Decodes one number of the header; if that fails, returns whether the bytes ran out or are
 * malformed.
 */
static enum v2_header_result number(const uint8_t **at, const uint8_t *end, const char *what,
                                    uint64_t *value, trail_error *err)
{
    const uint8_t *next = uvarint_get(*at, end, value);
    if (next) {
        *at = next;
        return V2_HEADER_OK;
    }
    if (end - *at < UVARINT_MAX_SIZE) {
        error_set(err, TRAIL_TRUNCATED, "error reading batch %s: unexpected end of the trace",
                  what);
        return V2_HEADER_SHORT;
    }
    error_set(err, TRAIL_CORRUPT, "error reading batch %s: number overflows 64 bits", what);
    return V2_HEADER_BAD;
}

enum v2_header_result v2_batch_header(const uint8_t *data, size_t size, int version,
                                      struct v2_batch_header *header, size_t *length,
                                      trail_error *err)
{
    const uint8_t *at = data, *end = data + size;
    *header = (struct v2_batch_header){0};
    if (size == 0) {
        error_set(err, TRAIL_TRUNCATED, "unexpected end of the trace");
        return V2_HEADER_SHORT;
    }
    uint8_t type = *at++;
    if (type == V2_EndOfGeneration) {
        /* Up to 1.25, Go reads this byte as a batch of generation 0, which is an error. */
        header->end_of_generation = version >= 26;
        *length = 1;
        return V2_HEADER_OK;
    }
    if (type != V2_EventBatch && type != V2_ExperimentalBatch) {
        error_set(err, TRAIL_CORRUPT, "expected batch event, got event %u", type);
        return V2_HEADER_BAD;
    }
    if (type == V2_ExperimentalBatch) {
        if (at == end) {
            error_set(err, TRAIL_TRUNCATED,
                      "error reading batch experiment: unexpected end of the trace");
            return V2_HEADER_SHORT;
        }
        header->experiment = *at++;
    }
    const struct {
        const char *what;
        uint64_t *value;
    } numbers[] = {
        {"gen", &header->generation},
        {"M ID", &header->thread},
        {"timestamp", &header->time},
        {"size", &header->size},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        enum v2_header_result result = number(&at, end, numbers[i].what, numbers[i].value, err);
        if (result != V2_HEADER_OK)
            return result;
    }
    if (header->size > V2_MAX_BATCH_DATA) {
        error_set(err, TRAIL_CORRUPT, "invalid batch size %" PRIu64 ", maximum is %d", header->size,
                  V2_MAX_BATCH_DATA);
        return V2_HEADER_BAD;
    }
    *length = (size_t)(at - data);
    return V2_HEADER_OK;
}

trail_batch_kind v2_batch_kind(const struct v2_batch_header *header, uint8_t first, int version)
{
    if (header->end_of_generation)
        return TRAIL_BATCH_END_GENERATION;
    if (header->experiment != 0)
        return TRAIL_BATCH_EXPERIMENT;
    switch (first) {
    case V2_Strings:
        return TRAIL_BATCH_STRINGS;
    case V2_Stacks:
        return TRAIL_BATCH_STACKS;
    case V2_CPUSamples:
        return TRAIL_BATCH_CPU_SAMPLES;
    case V2_Frequency:
        return version < 25 ? TRAIL_BATCH_SYNC : TRAIL_BATCH_EVENTS;
    case V2_Sync:
        return version >= 25 ? TRAIL_BATCH_SYNC : TRAIL_BATCH_EVENTS;
    default:
        return TRAIL_BATCH_EVENTS;
    }
}
