/* The encodings of Parquet's pages: see parquet_page.h. */
#include "export/parquet_page.h"

#include "base/grow.h"
#include "export/thrift.h"

/* Of DELTA_BINARY_PACKED. */
enum { BLOCK = 128, MINI = 32, MINIS = BLOCK / MINI };

/* Shorter runs are packed: starting a run costs a header. */
enum { LEAST_RUN = 16 };

static bool room(struct protobuf *to, size_t size)
{
    if (!to->failed && !GROW(to->data, to->capacity, to->size + size))
        to->failed = true;
    return !to->failed;
}

void parquet_put_fixed(struct protobuf *to, uint64_t value, unsigned size)
{
    if (!room(to, size))
        return;
    for (unsigned i = 0; i < size; i++)
        to->data[to->size++] = (uint8_t)(value >> (8 * i));
}

/* MARK: Packed numbers */

static unsigned width_of(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

/* Writes 8 bytes; compilers make one store of these. */
static inline uint8_t *put_eight(uint8_t *to, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        to[i] = (uint8_t)(value >> (8 * i));
    return to + 8;
}

/* Appends the lowest `width` bits of each value, without gaps, and zeros up to `padded` values,
 * a multiple of 8. */
static void put_packed(struct protobuf *to, const uint64_t *values, size_t count, size_t padded,
                       unsigned width)
{
    uint64_t hold = 0; /* bits that are not appended yet */
    unsigned held = 0;
    size_t size = padded * width / 8;
    if (width == 0 || !room(to, size + sizeof hold))
        return;
    uint8_t *at = to->data + to->size, *end = at + size;
    for (size_t i = 0; i < count; i++) {
        hold |= values[i] << held;
        held += width;
        if (held < 64)
            continue;
        at = put_eight(at, hold);
        held -= 64;
        hold = held > 0 ? values[i] >> (width - held) : 0;
    }
    for (; at < end; hold >>= 8)
        *at++ = (uint8_t)hold;
    to->size += size;
}

void parquet_put_bits(struct protobuf *to, const int64_t *values, size_t count)
{
    put_packed(to, (const uint64_t *)values, count, (count + 7) / 8 * 8, 1);
}

/* MARK: Runs */

static void put_run(struct protobuf *to, uint64_t value, size_t count, unsigned width)
{
    protobuf_varint(to, (uint64_t)count << 1);
    parquet_put_fixed(to, value, (width + 7) / 8);
}

static void put_packed_run(struct protobuf *to, const int64_t *values, size_t count, unsigned width)
{
    size_t groups = (count + 7) / 8;
    if (count == 0)
        return;
    protobuf_varint(to, (uint64_t)groups << 1 | 1);
    put_packed(to, (const uint64_t *)values, count, groups * 8, width);
}

static size_t equal_count(const int64_t *values, size_t count)
{
    size_t equal = 1;
    while (equal < count && values[equal] == values[0])
        equal++;
    return equal;
}

/* Each run of packed values has a multiple of 8, except for the last one. */
void parquet_put_indices(struct protobuf *to, const int64_t *values, size_t count, size_t entries)
{
    unsigned width = entries > 2 ? width_of(entries - 1) : 1;
    size_t begin = 0, at = 0;
    parquet_put_fixed(to, width, 1);
    while (at < count) {
        size_t equal = equal_count(values + at, count - at);
        if (equal < LEAST_RUN) {
            at += count - at < 8 ? count - at : 8;
            continue;
        }
        put_packed_run(to, values + begin, at - begin, width);
        put_run(to, (uint64_t)values[at], equal, width);
        begin = at += equal;
    }
    put_packed_run(to, values + begin, at - begin, width);
}

void parquet_put_levels(struct protobuf *to, const uint64_t *valid, size_t rows, size_t count)
{
    size_t begin = to->size, groups = (rows + 7) / 8;
    parquet_put_fixed(to, 0, 4); /* the size, set below */
    if (count == 0 || count == rows) {
        put_run(to, count > 0, rows, 1);
    } else {
        protobuf_varint(to, (uint64_t)groups << 1 | 1);
        for (size_t i = 0; i < groups; i++)
            parquet_put_fixed(to, valid[i / 8] >> (8 * (i % 8)), 1);
    }
    for (unsigned i = 0; i < 4 && !to->failed; i++)
        to->data[begin + i] = (uint8_t)((to->size - begin - 4) >> (8 * i));
}

/* MARK: Differences */

/* Stores the differences between `count` + 1 values; they wrap around in the column's type. */
static void differences(int64_t *deltas, const int64_t *values, size_t count, bool wide)
{
    for (size_t i = 0; i < count; i++)
        deltas[i] = (int64_t)((uint64_t)values[i + 1] - (uint64_t)values[i]);
    for (size_t i = 0; i < count && !wide; i++)
        deltas[i] = (int32_t)deltas[i];
}

static void put_block(struct protobuf *to, const int64_t *deltas, size_t count)
{
    uint64_t rests[BLOCK] = {0}, bits[MINIS] = {0};
    int64_t least = deltas[0];
    for (size_t i = 1; i < count; i++)
        least = deltas[i] < least ? deltas[i] : least;
    for (size_t i = 0; i < count; i++) {
        rests[i] = (uint64_t)deltas[i] - (uint64_t)least;
        bits[i / MINI] |= rests[i];
    }
    protobuf_varint(to, thrift_zigzag(least));
    for (size_t i = 0; i < MINIS; i++)
        parquet_put_fixed(to, width_of(bits[i]), 1);
    for (size_t i = 0; i < MINIS; i++)
        put_packed(to, rests + i * MINI, MINI, MINI, width_of(bits[i]));
}

void parquet_put_deltas(struct protobuf *to, const int64_t *values, size_t count, bool wide)
{
    int64_t deltas[BLOCK];
    protobuf_varint(to, BLOCK);
    protobuf_varint(to, MINIS);
    protobuf_varint(to, count);
    protobuf_varint(to, thrift_zigzag(values[0]));
    for (size_t at = 1; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? count - at : BLOCK;
        differences(deltas, values + at - 1, n, wide);
        put_block(to, deltas, n);
    }
}
