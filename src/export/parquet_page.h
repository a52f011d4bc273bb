/*
 * What the pages of a Parquet file contain: numbers and bits in the encodings of its format,
 * appended to a buffer (Apache Parquet, "Encodings").
 */
#pragma once

#include "export/protobuf.h"

/* Encodings, as numbered by the format. */
enum parquet_encoding {
    PARQUET_PLAIN = 0,
    PARQUET_RLE = 3,
    PARQUET_DELTA = 5,     /* DELTA_BINARY_PACKED */
    PARQUET_DICTIONARY = 8 /* RLE_DICTIONARY */
};

/*
 * Which of `rows` rows have a value, one bit each, as definition levels. `count` of them are set.
 */
void parquet_put_levels(struct protobuf *to, const uint64_t *valid, size_t rows, size_t count);

/* Numbers of dictionary entries, each less than `entries`, of which there is one at least. */
void parquet_put_indices(struct protobuf *to, const uint32_t *values, size_t count, size_t entries);

/* Each value is 0 or 1. */
void parquet_put_bits(struct protobuf *to, const uint32_t *values, size_t count);

/* Differences in a block of DELTA_BINARY_PACKED. */
enum { PARQUET_BLOCK = 128 };

/* Numbers, encoded as differences while they arrive. Zero-initialised: empty. */
struct parquet_deltas {
    size_t count;
    int64_t first, last, least, greatest; /* if there are any */
    struct protobuf blocks;               /* the complete ones */
    int64_t rest[PARQUET_BLOCK];          /* differences of the next block */
    size_t rest_count;
};

/* Adds numbers; `wide`: they are INT64, else INT32. */
void parquet_add_deltas(struct parquet_deltas *to, const int64_t *values, size_t count, bool wide);

/* Appends the numbers, of which there is one at least. */
void parquet_put_deltas(struct protobuf *to, const struct parquet_deltas *deltas);

/* Removes the numbers; keeps memory. */
void parquet_clear_deltas(struct parquet_deltas *deltas);

/* `size` bytes of a number, the lowest first. */
void parquet_put_fixed(struct protobuf *to, uint64_t value, unsigned size);
