/*
 * Compressor: compresses blocks with zlib, each on its own, in several threads. The caller's thread
 * writes them, in their order, and compresses itself while it would otherwise wait.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct compressor;

/* Takes a compressed block, before which there are COMPRESSOR_HEAD bytes of room. False with errno
 * set: it has failed. */
typedef bool (*compressor_write)(void *context, uint8_t *data, size_t size);
#define COMPRESSOR_HEAD 32

/* `most`: bytes of a block; `threads`: at most this many, the caller's included. NULL: out of
 * memory. */
struct compressor *compressor_open(size_t most, unsigned threads, compressor_write write,
                                   void *context);

/* Takes a copy of a block, and writes earlier ones. False with errno set: one was not written. */
bool compressor_put(struct compressor *compressor, const void *data, size_t size);

/* Writes all blocks. Returns as compressor_put. */
bool compressor_flush(struct compressor *compressor);

/* Frees the compressor, with the blocks not yet written. Accepts NULL. */
void compressor_close(struct compressor *compressor);
