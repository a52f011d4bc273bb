/*
 * Headless: see headless.h.
 *
 * The formats from 1.22 on are recognised by two batches that follow each other, one of them with
 * events; those up to 1.21 by many records from the first byte on. Versions that differ in nothing
 * but the header are taken for the newest. Where no batch shows the version, it is taken for 1.25:
 * so no event is lost, whatever it is (read/v2/generation.c).
 */
#include "read/headless.h"

#include "read/v1/record.h"
#include "read/v2/batch.h"
#include "read/v2/resync.h"
#include "wire/wire.h"

enum {
    V2_OLD = 23,
    V2_SYNC = 25, /* has Sync batches */
    V2_ENDED = 26 /* has EndOfGeneration, which its batches may be followed by */
};

#define LEAST_RECORDS 64
#define MOST_TRIES    32
#define MOST_BATCHES  64
#define LEAST_TYPES   4
/* The earliest time of a batch, because small numbers occur everywhere: 67 ms in ticks of 64 ns. */
#define LEAST_TICKS (UINT64_C(1) << 20)

struct batches {
    unsigned count;
    bool events; /* one of them has events, all well-formed */
    bool frequency, sync, ended;
};

/* Examines the batches from `at` on, up to the first that is incomplete or malformed. */
static struct batches batches_at(const uint8_t *data, size_t size, size_t at)
{
    struct batches found = {0};
    struct v2_batch_header header;
    size_t length;
    while (found.count < MOST_BATCHES &&
           v2_batch_header(data + at, size - at, V2_ENDED, &header, &length, NULL) ==
               V2_HEADER_OK &&
           header.size <= size - at - length) {
        const uint8_t *begin = data + at + length;
        at += length + (size_t)header.size;
        found.ended |= header.end_of_generation;
        if (header.end_of_generation)
            continue;
        if (header.time < LEAST_TICKS || header.size == 0)
            break;
        const bool frequency = *begin == V2_Frequency && header.experiment == 0;
        trail_batch_kind kind = v2_batch_kind(&header, *begin, frequency ? V2_OLD : V2_SYNC);
        if (kind == TRAIL_BATCH_EVENTS && !v2_resync_events(begin, data + at))
            break;
        found.count++;
        found.frequency |= frequency;
        found.sync |= kind == TRAIL_BATCH_SYNC;
        found.events |= kind == TRAIL_BATCH_EVENTS;
    }
    return found;
}

static int v2_version(const uint8_t *data, size_t size, int last, bool *assumed)
{
    const struct v2_resync rules = {.version = V2_ENDED, .at_end = true};
    size_t at = 0;
    for (unsigned tries = 0; tries < MOST_TRIES && at < size; tries++, at++) {
        at += v2_resync_find(&rules, data + at, size - at);
        struct batches found = batches_at(data, size, at);
        if (found.count < 2 || !found.events)
            continue;
        if (found.frequency)
            return V2_OLD;
        if (found.ended || last == V2_EndOfGeneration)
            return V2_ENDED;
        *assumed = !found.sync;
        return V2_SYNC;
    }
    return 0;
}

/*
 * Whether there are many records from the first byte on, the first of which is a batch; of several
 * types or batches, because bytes that repeat are records of one type.
 */
static bool has_records(const uint8_t *data, size_t size, int version, uint64_t *stw_kinds)
{
    const struct v1_bytes bytes = {.data = data, .size = size};
    struct v1_format format;
    struct v1_record record;
    size_t count = 0, batches = 0;
    uint64_t types = 0;
    v1_format_init(&format, version, version >= 11);
    for (const uint8_t *at = data; at < data + size; at = record.end, count++) {
        if (v1_record_read(&format, &bytes, at, &record, NULL) < 0 ||
            (count == 0 &&
             (record.type != V1_Batch || record.number[record.numbers - 1] < LEAST_TICKS)))
            break;
        types |= UINT64_C(1) << (record.type & 63);
        batches += record.type == V1_Batch;
        if (record.type == V1_STWStart && record.numbers > 1 && record.number[1] > *stw_kinds)
            *stw_kinds = record.number[1];
    }
    return count >= LEAST_RECORDS && (batches > 1 || __builtin_popcountll(types) >= LEAST_TYPES);
}

/* Stop-the-world pauses have kinds from 2 on only in 1.21, where nearly each GC cycle has one. */
static int v1_version(const uint8_t *data, size_t size)
{
    static const int versions[] = {21, 10, 5};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        uint64_t stw_kinds = 0;
        if (has_records(data, size, versions[i], &stw_kinds))
            return versions[i] == 21 && stw_kinds < 2 ? 19 : versions[i];
    }
    return 0;
}

int headless_version(const uint8_t *data, size_t size, int last, bool *assumed)
{
    *assumed = false;
    int version = v2_version(data, size, last, assumed);
    /* Part of the header may be left. */
    for (size_t at = 0; version == 0 && at < WIRE_HEADER_SIZE && at < size; at++)
        version = v1_version(data + at, size - at);
    return version;
}
