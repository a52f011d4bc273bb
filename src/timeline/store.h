/*
 * Store: the complete chunks of all lanes (lane.h), which are written once and read until the end.
 * The first `memory` bytes are in memory, all others in a temporary file. It is mapped, so that the
 * kernel can write it back: the spans of a trace of any size take bounded memory.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"

enum { STORE_MEMORY = 128 << 20 };

/* Zero-initialised except for `memory`: empty and ready. Not thread-safe. */
struct store {
    size_t memory; /* bytes that come first and stay in memory */
    size_t bytes;  /* of chunks here, and of what lanes need to grow; lanes count the latter */
    size_t kept;   /* bytes in `arena` */
    struct arena arena;
    int file;         /* descriptor + 1; 0: not yet needed, -1: none, or it is full */
    uint8_t **blocks; /* of the file: mappings of equal size */
    size_t block_count, block_capacity, used; /* bytes of the last block */
};

/* Bytes of a block. */
#define STORE_BLOCK ((size_t)64 << 20)

/*
 * Returns `size` bytes, at most 64 KiB, that stay where they are until the store is freed. Without
 * a file, or room in it, they are in memory; NULL: out of memory.
 */
uint8_t *store_alloc(struct store *store, size_t size);

/*
 * Puts all chunks into a new file in a folder, which has no name yet. Called before the first.
 * Returns false if there can be none.
 */
bool store_use_file(struct store *store, int folder);

/*
 * Finds a chunk in the file and sets *position. Searches from *block on, which becomes the
 * chunk's. Returns false if the chunk is in memory.
 */
bool store_position(const struct store *store, const uint8_t *chunk, size_t *block,
                    uint64_t *position);

/* Maps the first `size` bytes of such a file, to read only. Returns false on an error. */
bool store_map(struct store *store, int fd, uint64_t size);

/* Returns what is at a position in the file; NULL: it ends before. */
uint8_t *store_at(const struct store *store, uint64_t position);

/* Frees all chunks. */
void store_free(struct store *store);
