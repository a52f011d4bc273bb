/*
 * The deduplicating table of stacks and strings (§2.6): bytes in, ID out.
 *
 *   bucket -> entry -> entry -> NULL      newest first; an entry never changes
 *
 * A look-up takes no lock: heads are read and replaced atomically, and entries are immutable. If
 * two threads insert the same bytes at once, one finds the other's entry; its own ID stays unused,
 * which every reader accepts. Entries live in blocks of 64 KiB, which are freed all at once by a
 * thread that knows that no other uses the table (the one that advances, after it has waited for
 * all sections). For each block the buffers are reserved into which its entries will be written, so
 * that a generation can end when the system has no memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_BUCKETS 8192
#define REGION_BLOCK  65536

struct table_entry {
    struct table_entry *next;
    uint64_t hash;
    uint32_t id;   /* from 1 on */
    uint32_t size; /* in bytes */
    uint64_t data[];
};

struct region_block;

struct table {
    struct table_entry *buckets[TABLE_BUCKETS]; /* atomic */
    struct region_block *block;                 /* atomic: entries are allocated from it */
    uint64_t last_id;                           /* atomic */
    size_t bytes, limit;                        /* of all blocks; bytes is atomic */
    size_t buffers_a_block;                     /* to be reserved (queue_reserve) */
};

/*
 * Maps the first block, if possible, so that threads that begin together do not all map one. No
 * other thread may use the table.
 */
void table_prepare(struct table *table);

/*
 * Returns the entry of `size` bytes at `data`, created if there is none. NULL if there is no
 * memory, or if `size` exceeds a block. *fresh (may be NULL) is set to whether this call created
 * it. Any thread.
 */
struct table_entry *table_put(struct table *table, const void *data, size_t size, uint64_t hash,
                              bool *fresh);

/* Reserves `n` IDs without entries and returns the first. */
uint64_t table_reserve_ids(struct table *table, uint64_t n);

/* Calls visit for every entry, by bucket. No other thread may insert during this. */
void table_each(const struct table *table, void (*visit)(const struct table_entry *, void *),
                void *context);

/*
 * Removes all entries, but keeps a block, so that the first entries of the next generation need no
 * memory. No other thread may use the table.
 */
void table_reset(struct table *table);
/* Removes all entries and frees all memory. No other thread may use the table. */
void table_free(struct table *table);

/* Fast hashes: of a whole word, and of bytes. */
static inline uint64_t table_mix(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0x9e3779b97f4a7c15u;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t table_hash_bytes(const void *data, size_t size);
