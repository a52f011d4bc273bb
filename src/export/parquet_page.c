/* The encodings of Parquet's pages: see parquet_page.h. */
#include "export/parquet_page.h"

#include "base/grow.h"
#include "export/thrift.h"

/* A block of differences is packed in parts, each with a width of its own. */
enum { MINI = 32, MINIS = PARQUET_BLOCK / MINI };

/* How many indices are packed at once; a multiple of 8. */
enum { AT_ONCE = 64 };

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

/* The same for indices. */
static void put_packed_indices(struct protobuf *to, const uint32_t *values, size_t count,
                               unsigned width)
{
    uint64_t some[AT_ONCE];
    for (size_t at = 0; at < count; at += AT_ONCE) {
        size_t n = count - at < AT_ONCE ? count - at : AT_ONCE;
        for (size_t i = 0; i < n; i++)
            some[i] = values[at + i];
        put_packed(to, some, n, (n + 7) / 8 * 8, width);
    }
}

void parquet_put_bits(struct protobuf *to, const uint32_t *values, size_t count)
{
    put_packed_indices(to, values, count, 1);
}

/* MARK: Runs */

static void put_run(struct protobuf *to, uint64_t value, size_t count, unsigned width)
{
    protobuf_varint(to, (uint64_t)count << 1);
    parquet_put_fixed(to, value, (width + 7) / 8);
}

static void put_packed_run(struct protobuf *to, const uint32_t *values, size_t count,
                           unsigned width)
{
    if (count == 0)
        return;
    protobuf_varint(to, (uint64_t)(count + 7) / 8 << 1 | 1);
    put_packed_indices(to, values, count, width);
}

static size_t equal_count(const uint32_t *values, size_t count)
{
    size_t equal = 1;
    while (equal < count && values[equal] == values[0])
        equal++;
    return equal;
}

/* Each run of packed values has a multiple of 8, except for the last one. */
void parquet_put_indices(struct protobuf *to, const uint32_t *values, size_t count, size_t entries)
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
        put_run(to, values[at], equal, width);
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

static void put_block(struct protobuf *to, const int64_t *deltas, size_t count)
{
    uint64_t rests[PARQUET_BLOCK] = {0}, bits[MINIS] = {0};
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

/* Adds numbers after the first, at most as many as the block has room for. */
static void add_to_block(struct parquet_deltas *to, const int64_t *values, size_t count, bool wide)
{
    int64_t *rest = to->rest + to->rest_count;
    int64_t last = to->last, least = to->least, greatest = to->greatest;
    for (size_t i = 0; i < count; i++) {
        int64_t value = values[i], delta = (int64_t)((uint64_t)value - (uint64_t)last);
        rest[i] = wide ? delta : (int32_t)delta; /* they wrap around in the column's type */
        least = value < least ? value : least;
        greatest = value > greatest ? value : greatest;
        last = value;
    }
    to->last = last;
    to->least = least;
    to->greatest = greatest;
    to->rest_count += count;
}

void parquet_add_deltas(struct parquet_deltas *to, const int64_t *values, size_t count, bool wide)
{
    size_t at = 0;
    if (to->count == 0 && count > 0)
        to->first = to->last = to->least = to->greatest = values[at++];
    while (at < count) {
        size_t room_left = PARQUET_BLOCK - to->rest_count;
        size_t n = count - at < room_left ? count - at : room_left;
        add_to_block(to, values + at, n, wide);
        at += n;
        if (to->rest_count < PARQUET_BLOCK)
            continue;
        put_block(&to->blocks, to->rest, PARQUET_BLOCK);
        to->rest_count = 0;
    }
    to->count += count;
}

void parquet_put_deltas(struct protobuf *to, const struct parquet_deltas *deltas)
{
    protobuf_varint(to, PARQUET_BLOCK);
    protobuf_varint(to, MINIS);
    protobuf_varint(to, deltas->count);
    protobuf_varint(to, thrift_zigzag(deltas->first));
    protobuf_raw(to, deltas->blocks.data, deltas->blocks.size);
    if (deltas->rest_count > 0)
        put_block(to, deltas->rest, deltas->rest_count);
    to->failed = to->failed || deltas->blocks.failed;
}

void parquet_clear_deltas(struct parquet_deltas *deltas)
{
    deltas->count = deltas->rest_count = deltas->blocks.size = 0;
}
