/* v2: moves to the generation of a time, by batch headers alone. */
#include "read/v2/skip.h"

#include "base/varint.h"
#include "read/source.h"
#include "read/v2/batch.h"
#include "read/v2/order.h"
#include "wire/wire.h"

/*
 * Events of a generation overlap the next one a little: its last records are the states of idle
 * goroutines.
 */
#define OVERLAP_NS INT64_C(50000000)

/* Holds a header and the byte after it. */
#define HEADER_READ_SIZE 64

/* The headers of a generation. */
struct headers {
    uint64_t at; /* of its first batch */
    uint64_t number, min_ticks, frequency;
    bool any;
};

/* Returns the frequency in the data of a Sync batch; 0 if there is none (§5.1). */
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

/* The same for a batch whose data are at offset `at`. */
static uint64_t read_frequency(const trail_source *source, uint64_t at, uint64_t size)
{
    uint8_t data[512];
    ssize_t n = source_peek_at(source, at, data, size < sizeof data ? (size_t)size : sizeof data);
    return n > 0 ? find_frequency(data, data + n) : 0;
}

static void take_batch(struct headers *g, const struct v2_batch_header *header)
{
    if (!g->any || header->time < g->min_ticks)
        g->min_ticks = header->time;
    g->any = true;
    g->number = header->generation;
}

/* Reads the headers of the generation at `at`. Returns its end; 0 if it is damaged. */
static uint64_t read_generation_headers(const trail_source *source, uint64_t at, int version,
                                        struct headers *g)
{
    *g = (struct headers){.at = at};
    for (;;) {
        struct v2_batch_header header;
        uint8_t header_bytes[HEADER_READ_SIZE];
        size_t length;
        ssize_t have = source_peek_at(source, at, header_bytes, sizeof header_bytes);
        if (have <= 0)
            return have == 0 ? at : 0;
        if (v2_batch_header(header_bytes, (size_t)have, version, &header, &length, NULL) !=
            V2_HEADER_OK)
            return 0;
        if (header.end_of_generation)
            return at + length;
        if (g->any && header.generation != g->number)
            return at;
        uint8_t first = header.size > 0 && length < (size_t)have ? header_bytes[length] : 0;
        take_batch(g, &header);
        at += length;
        if (v2_batch_kind(&header, first, version) == TRAIL_BATCH_SYNC)
            g->frequency = read_frequency(source, at, header.size);
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
    while (source_peek_at(source, at, &byte, 1) > 0) {
        struct headers g;
        at = read_generation_headers(source, at, version, &g);
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
