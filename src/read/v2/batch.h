/*
 * v2 batches on the wire (§5.1, §6.1), one header each:
 *
 *     0x01          gen m time size  data[size]      EventBatch
 *     0x31 E        gen m time size  data[size]      ExperimentalBatch; E is one raw byte
 *     0x34                                           EndOfGeneration, from 1.26 on
 *
 * gen, m, time and size are uvarints; size is usually padded to 10 bytes.
 */
#pragma once

#include <trail/read.h>

struct v2_batch_header {
    bool end_of_generation; /* no other field is set then */
    uint8_t experiment;     /* 0: none */
    uint64_t generation;
    uint64_t thread;
    uint64_t time;
    uint64_t size; /* of the data */
};

enum v2_header_result { V2_HEADER_OK, V2_HEADER_SHORT, V2_HEADER_BAD };

/*
 * Decodes the batch header at the start of [data, data + size). OK: *header is set, and *length is
 * its size. SHORT: the bytes end inside it; *err has the position. BAD: *err has the reason. The
 * caller sets positions in *err.
 */
enum v2_header_result v2_batch_header(const uint8_t *data, size_t size, int version,
                                      struct v2_batch_header *header, size_t *length,
                                      trail_error *err);

/* Returns the kind of a batch from its header and first data byte (0 if it has none) (§6.2). */
trail_batch_kind v2_batch_kind(const struct v2_batch_header *header, uint8_t first, int version);
