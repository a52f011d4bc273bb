/*
 * The encodings of Parquet's pages, read back by a decoder that follows the format's description
 * bit by bit: extreme and random numbers, runs, and rows without a value.
 */
#include <stdlib.h>

#include "base/varint.h"
#include "export/parquet_page.h"

#include "../lib/unit.h"

enum { MOST = 3000 };

/* A page being read; what lies beyond its end fails the test. */
struct page {
    const uint8_t *data;
    size_t size, at; /* at: in bytes */
};

static uint64_t seed = 11;

static uint64_t any(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed ^ seed >> 29;
}

/* MARK: The decoder */

static uint64_t take_fixed(struct page *page, unsigned size)
{
    uint64_t value = 0;
    assert_true(page->at + size <= page->size);
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)page->data[page->at++] << (8 * i);
    return value;
}

static uint64_t take_varint(struct page *page)
{
    uint64_t value = 0;
    const uint8_t *end = uvarint_get(page->data + page->at, page->data + page->size, &value);
    assert_non_null(end);
    page->at = (size_t)(end - page->data);
    return value;
}

static int64_t take_zigzag(struct page *page)
{
    uint64_t value = take_varint(page);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

/* Takes `count` numbers of `width` bits, a multiple of 8 of them. */
static void take_packed(struct page *page, uint64_t *values, size_t count, unsigned width)
{
    assert_true(page->at + count * width / 8 <= page->size);
    for (size_t i = 0; i < count; i++) {
        values[i] = 0;
        for (unsigned b = 0; b < width; b++) {
            size_t bit = i * width + b;
            values[i] |= (uint64_t)(page->data[page->at + bit / 8] >> (bit % 8) & 1) << b;
        }
    }
    page->at += count * width / 8;
}

static void take_runs(struct page *page, uint64_t *values, size_t count, unsigned width)
{
    for (size_t at = 0; at < count;) {
        uint64_t header = take_varint(page);
        size_t run = header >> 1;
        if ((header & 1) != 0) {
            uint64_t packed[MOST + 8];
            run *= 8;
            assert_in_range(run, 8, MOST + 7);
            take_packed(page, packed, run, width);
            for (size_t i = 0; i < run && at < count; i++)
                values[at++] = packed[i];
            continue;
        }
        uint64_t value = take_fixed(page, (width + 7) / 8);
        assert_in_range(run, 1, count - at);
        while (run-- > 0)
            values[at++] = value;
    }
}

static void take_deltas(struct page *page, int64_t *values, size_t count, bool wide)
{
    uint64_t block = take_varint(page), minis = take_varint(page);
    assert_int_equal(block % 128, 0);
    assert_int_equal(block / minis % 32, 0);
    assert_int_equal(take_varint(page), count);
    values[0] = take_zigzag(page);
    for (size_t at = 1; at < count;) {
        uint64_t packed[MOST], widths[8];
        uint64_t least = (uint64_t)take_zigzag(page);
        for (size_t i = 0; i < minis; i++)
            widths[i] = take_fixed(page, 1);
        for (size_t i = 0; i < minis; i++) {
            assert_in_range(widths[i], 0, wide ? 64 : 32);
            if (at >= count)
                continue; /* has no values, and so no data */
            take_packed(page, packed, block / minis, (unsigned)widths[i]);
            for (size_t j = 0; j < block / minis && at < count; j++, at++) {
                uint64_t value = (uint64_t)values[at - 1] + least + packed[j];
                values[at] = wide ? (int64_t)value : (int32_t)(uint32_t)value;
            }
        }
    }
}

/* MARK: Tests */

static void end(struct protobuf *buffer, const struct page *page)
{
    assert_int_equal(page->at, page->size);
    protobuf_free(buffer);
}

static void deltas_are(const int64_t *values, size_t count, bool wide)
{
    static struct parquet_deltas deltas;
    struct protobuf buffer = {0};
    int64_t got[MOST], least = values[0], greatest = values[0];
    parquet_clear_deltas(&deltas);
    for (size_t at = 0, n; at < count; at += n) {
        n = any() % 200;
        n = n < count - at ? n : count - at;
        parquet_add_deltas(&deltas, values + at, n, wide);
    }
    parquet_put_deltas(&buffer, &deltas);
    assert_false(buffer.failed);
    for (size_t i = 0; i < count; i++) {
        least = values[i] < least ? values[i] : least;
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    assert_true(deltas.least == least && deltas.greatest == greatest);
    struct page page = {buffer.data, buffer.size, 0};
    take_deltas(&page, got, count, wide);
    assert_memory_equal(got, values, count * sizeof *values);
    end(&buffer, &page);
}

TEST(numbers_as_differences)
{
    static const size_t counts[] = {1, 2, 32, 33, 34, 128, 129, 130, 161, 257, MOST};
    int64_t values[MOST] = {0};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (unsigned bits = 1; bits <= 64; bits++) {
            for (size_t j = 0; j < counts[i]; j++)
                values[j] = (int64_t)(any() >> (64 - bits));
            deltas_are(values, counts[i], true);
            for (size_t j = 0; j < counts[i]; j++)
                values[j] = (int32_t)(uint32_t)values[j];
            deltas_are(values, counts[i], false);
        }
    }
    deltas_are((int64_t[]){INT64_MIN, INT64_MAX, INT64_MIN, 0, -1, 1, INT64_MAX, INT64_MAX}, 8,
               true);
    deltas_are((int64_t[]){INT32_MIN, INT32_MAX, INT32_MIN, 0, -1, 1, INT32_MAX, INT32_MAX}, 8,
               false);
    deltas_are((int64_t[]){7, 7, 7, 7}, 4, true);
}

static void indices_are(const uint32_t *values, size_t count, size_t entries)
{
    struct protobuf buffer = {0};
    uint64_t got[MOST];
    parquet_put_indices(&buffer, values, count, entries);
    assert_false(buffer.failed);
    struct page page = {buffer.data, buffer.size, 0};
    unsigned width = (unsigned)take_fixed(&page, 1);
    assert_in_range(width, 1, 32);
    take_runs(&page, got, count, width);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(got[i], values[i]);
    end(&buffer, &page);
}

TEST(numbers_of_entries_and_their_runs)
{
    static const size_t entries[] = {1, 2, 3, 4, 5, 255, 256, 257, 100000, UINT32_MAX};
    uint32_t values[MOST];
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        for (size_t longest = 1; longest < 200; longest += 1 + longest / 3) {
            for (size_t at = 0; at < MOST;) {
                uint32_t value = (uint32_t)(any() % entries[i]);
                for (size_t run = 1 + any() % longest; run > 0 && at < MOST; run--)
                    values[at++] = value;
            }
            for (size_t count = 1; count <= MOST; count += 1 + count / 2)
                indices_are(values, count, entries[i]);
        }
        values[0] = (uint32_t)(entries[i] - 1);
        indices_are(values, 1, entries[i]);
    }
}

TEST(rows_without_a_value)
{
    for (size_t rows = 1; rows <= MOST; rows += rows < 300 ? 1 : 900) {
        for (unsigned share = 0; share <= 8; share++) {
            uint64_t valid[MOST / 64 + 1] = {0}, got[MOST];
            size_t count = 0;
            for (size_t i = 0; i < rows; i++) {
                bool is = any() % 8 < share;
                valid[i / 64] |= (uint64_t)is << (i % 64);
                count += is;
            }
            struct protobuf buffer = {0};
            parquet_put_levels(&buffer, valid, rows, count);
            struct page page = {buffer.data, buffer.size, 0};
            assert_int_equal(take_fixed(&page, 4), buffer.size - 4);
            take_runs(&page, got, rows, 1);
            for (size_t i = 0; i < rows; i++)
                assert_int_equal(got[i], valid[i / 64] >> (i % 64) & 1);
            end(&buffer, &page);
        }
    }
}

TEST(truth_values)
{
    uint32_t values[MOST];
    for (size_t i = 0; i < MOST; i++)
        values[i] = any() & 1;
    for (size_t count = 1; count < MOST; count += 3) {
        struct protobuf buffer = {0};
        uint64_t got[MOST];
        parquet_put_bits(&buffer, values, count);
        struct page page = {buffer.data, buffer.size, 0};
        take_packed(&page, got, (count + 7) / 8 * 8, 1);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(got[i], values[i]);
        end(&buffer, &page);
    }
}

int main(void)
{
    return run_all_tests(NULL, NULL);
}
