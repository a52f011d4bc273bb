#include "read/v2_skip.h"

#include "base/varint.h"
#include "read/v2_batch.h"
#include "read/v2_order.h"
#include "wire/wire.h"

/*
 * Events of a generation go on for a while after the next has begun: its last records tell the
 * states of goroutines that did nothing.
 */
#define OVERLAP_NS INT64_C(50000000)

/* A generation as far as its headers tell. */
struct headers {
    size_t at; /* of its first batch */
    uint64_t number, min_ticks, frequency;
    bool any;
};

/* The frequency, if the batch of a Sync section tells it; 0 if not (§5.1). */
static uint64_t find_frequency(const uint8_t *at, const uint8_t *end)
{
    uint64_t number;
    if (at < end && *at == V2_Sync)
        at++;
    while (at && at < end) {
        unsigned type = *at++;
        if (type == V2_Frequency)
            return uvarint_get(at, end, &number) ? number : 0;
        for (unsigned i = 0; at && i < v2_types[V2_ClockSnapshot].args; i++)
            at = uvarint_get(at, end, &number);
    }
    return 0;
}

static void take_batch(struct headers *g, const struct v2_batch_header *header, const uint8_t *data,
                       int version)
{
    if (!g->any || header->time < g->min_ticks)
        g->min_ticks = header->time;
    g->any = true;
    g->number = header->generation;
    uint8_t first = header->size > 0 ? data[0] : 0;
    if (v2_batch_kind(header, first, version) == TRAIL_BATCH_SYNC)
        g->frequency = find_frequency(data, data + header->size);
}

/* Reads the headers of the generation at `at`. Returns where it ends; 0: it is damaged. */
static size_t take_generation(const uint8_t *data, size_t size, size_t at, int version,
                              struct headers *g)
{
    *g = (struct headers){.at = at};
    while (at < size) {
        struct v2_batch_header header;
        size_t length;
        if (v2_batch_header(data + at, size - at, version, &header, &length, NULL) != V2_HEADER_OK)
            return 0;
        if (header.end_of_generation)
            return at + length;
        if (g->any && header.generation != g->number)
            return at;
        if (header.size > size - at - length)
            return 0;
        take_batch(g, &header, data + at + length, version);
        at += length + (size_t)header.size;
    }
    return at;
}

static int64_t begin_ns(const struct headers *g)
{
    return v2_ticks_to_ns(1.0 / ((double)g->frequency / 1e9), g->min_ticks);
}

bool v2_skip_find(const uint8_t *data, size_t size, int version, int64_t from_ns,
                  struct v2_skip *skip)
{
    size_t at = 0;
    *skip = (struct v2_skip){0};
    while (at < size) {
        struct headers g;
        at = take_generation(data, size, at, version, &g);
        if (at == 0 || !g.any || g.frequency == 0)
            return false;
        int64_t ns = begin_ns(&g);
        if (g.at == 0)
            skip->first_ns = ns;
        int64_t since;
        if (__builtin_sub_overflow(ns, skip->first_ns, &since) || ns < skip->first_ns)
            return false;
        if (since > from_ns - OVERLAP_NS)
            break;
        skip->size = g.at;
    }
    return skip->size > 0;
}
