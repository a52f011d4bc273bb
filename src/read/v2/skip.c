#include "read/v2/skip.h"

#include "base/varint.h"
#include "read/source.h"
#include "read/v2/batch.h"
#include "read/v2/order.h"
#include "wire/wire.h"

/*
 * Events of a generation go on for a while after the next has begun: its last records tell the
 * states of goroutines that did nothing.
 */
#define OVERLAP_NS INT64_C(50000000)

/* A header, and the byte behind it, fit. */
#define LOOK_SIZE 64

/* A generation as far as its headers tell. */
struct headers {
    uint64_t at; /* of its first batch */
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

/* The same of the batch whose data are at `at`. */
static uint64_t look_for_frequency(const trail_source *source, uint64_t at, uint64_t size)
{
    uint8_t data[512];
    ssize_t n = source_look(source, at, data, size < sizeof data ? (size_t)size : sizeof data);
    return n > 0 ? find_frequency(data, data + n) : 0;
}

static void take_batch(struct headers *g, const struct v2_batch_header *header)
{
    if (!g->any || header->time < g->min_ticks)
        g->min_ticks = header->time;
    g->any = true;
    g->number = header->generation;
}

/* Reads the headers of the generation at `at`. Returns where it ends; 0: it is damaged. */
static uint64_t take_generation(const trail_source *source, uint64_t at, int version,
                                struct headers *g)
{
    *g = (struct headers){.at = at};
    for (;;) {
        struct v2_batch_header header;
        uint8_t look[LOOK_SIZE];
        size_t length;
        ssize_t have = source_look(source, at, look, sizeof look);
        if (have <= 0)
            return have == 0 ? at : 0;
        if (v2_batch_header(look, (size_t)have, version, &header, &length, NULL) != V2_HEADER_OK)
            return 0;
        if (header.end_of_generation)
            return at + length;
        if (g->any && header.generation != g->number)
            return at;
        uint8_t first = header.size > 0 && length < (size_t)have ? look[length] : 0;
        take_batch(g, &header);
        at += length;
        if (v2_batch_kind(&header, first, version) == TRAIL_BATCH_SYNC)
            g->frequency = look_for_frequency(source, at, header.size);
        at += header.size;
    }
}

static int64_t begin_ns(const struct headers *g)
{
    return v2_ticks_to_ns(1.0 / ((double)g->frequency / 1e9), g->min_ticks);
}

bool v2_skip_find(const trail_source *source, int version, int64_t from_ns, struct v2_skip *skip)
{
    uint64_t at = 0;
    uint8_t byte;
    *skip = (struct v2_skip){0};
    while (source_look(source, at, &byte, 1) > 0) {
        struct headers g;
        at = take_generation(source, at, version, &g);
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
