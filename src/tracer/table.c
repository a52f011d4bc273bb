/* The deduplicating table: see table.h. */
#include "tracer/table.h"

#include <string.h>

#include "tracer/memory.h"
#include "tracer/tracer.h"
#include "tracer/tsan.h"

struct region_block {
    struct region_block *next;
    size_t used; /* atomic; from the start of the block */
};

/* Returns a new block, for which buffers are reserved; NULL: no memory. */
static struct region_block *new_block(const struct table *table)
{
    struct region_block *block = memory_map(REGION_BLOCK);
    if (!block)
        return NULL;
    if (table->buffers_a_block && !queue_reserve(table->buffers_a_block)) {
        memory_unmap(block, REGION_BLOCK);
        return NULL;
    }
    block->used = sizeof *block;
    return block;
}

void table_prepare(struct table *table)
{
    if (table->block)
        return;
    table->block = new_block(table);
    if (!table->block)
        return;
    table->block->next = NULL;
    table->bytes = REGION_BLOCK;
}

static void free_block(const struct table *table, struct region_block *block)
{
    if (table->buffers_a_block)
        queue_unreserve(table->buffers_a_block);
    memory_unmap(block, REGION_BLOCK);
}

/* Allocates `size` bytes from the current block, or from a new one that replaces it when full. */
static void *region_alloc(struct table *table, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if (size > REGION_BLOCK - sizeof(struct region_block))
        return NULL;
    for (;;) {
        /* Pairs with the exchange below: the block's header is visible. */
        struct region_block *block = __atomic_load_n(&table->block, __ATOMIC_ACQUIRE), *fresh;
        tsan_acquire(table);
        if (block) {
            size_t at = __atomic_fetch_add(&block->used, size, __ATOMIC_RELAXED);
            if (at <= REGION_BLOCK - size)
                return (char *)block + at;
        }
        if (__atomic_load_n(&table->bytes, __ATOMIC_RELAXED) + REGION_BLOCK > table->limit)
            return NULL;
        fresh = new_block(table);
        if (!fresh)
            return NULL;
        fresh->next = block;
        tsan_release(table);
        if (__atomic_compare_exchange_n(&table->block, &block, fresh, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            __atomic_fetch_add(&table->bytes, REGION_BLOCK, __ATOMIC_RELAXED);
        else
            free_block(table, fresh);
    }
}

static struct table_entry *find(struct table_entry *entry, const void *data, size_t size,
                                uint64_t hash)
{
    for (; entry; entry = entry->next) {
        if (entry->hash == hash && entry->size == size && memcmp(entry->data, data, size) == 0)
            return entry;
    }
    return NULL;
}

struct table_entry *table_put(struct table *table, const void *data, size_t size, uint64_t hash,
                              bool *fresh)
{
    struct table_entry **bucket = &table->buckets[hash % TABLE_BUCKETS];
    /* Pairs with the exchange below: an entry's contents are visible. */
    struct table_entry *head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE), *entry;
    /* Acquired after the load, for what was released before the head was stored. */
    tsan_acquire(bucket);
    if (fresh)
        *fresh = false;
    entry = find(head, data, size, hash);
    if (__builtin_expect(entry != NULL, 1))
        return entry;
    entry = region_alloc(table, sizeof *entry + size);
    if (!entry)
        return NULL;
    entry->hash = hash;
    entry->size = (uint32_t)size;
    entry->id = (uint32_t)table_reserve_ids(table, 1);
    memcpy(entry->data, data, size);
    tsan_release(bucket);
    do {
        struct table_entry *other;
        tsan_acquire(bucket);
        other = find(head, data, size, hash);
        if (other)
            return other;
        entry->next = head;
    } while (!__atomic_compare_exchange_n(bucket, &head, entry, false, __ATOMIC_RELEASE,
                                          __ATOMIC_ACQUIRE));
    if (fresh)
        *fresh = true;
    return entry;
}

uint64_t table_reserve_ids(struct table *table, uint64_t n)
{
    return __atomic_fetch_add(&table->last_id, n, __ATOMIC_RELAXED) + 1;
}

void table_each(const struct table *table, void (*visit)(const struct table_entry *, void *),
                void *context)
{
    for (size_t i = 0; i < TABLE_BUCKETS; i++) {
        tsan_acquire((void *)(uintptr_t)&table->buckets[i]);
        for (const struct table_entry *entry = table->buckets[i]; entry; entry = entry->next)
            visit(entry, context);
    }
}

/* Frees the blocks from `block` on. */
static void free_blocks(const struct table *table, struct region_block *block)
{
    struct region_block *next;
    for (; block; block = next) {
        next = block->next;
        free_block(table, block);
    }
}

/*
 * Replaces a block with a new one, or keeps it if the system has no memory. New pages take memory
 * only where they are used, and ThreadSanitizer has no history of them.
 */
static struct region_block *exchange(struct region_block *old)
{
    struct region_block *block = memory_map(REGION_BLOCK);
    if (block)
        memory_unmap(old, REGION_BLOCK);
    return block ? block : old;
}

void table_reset(struct table *table)
{
    memset(table->buckets, 0, sizeof table->buckets);
    table->last_id = 0;
    if (!table->block)
        return;
    free_blocks(table, table->block->next);
    table->block = exchange(table->block);
    table->block->next = NULL;
    table->block->used = sizeof *table->block;
    table->bytes = REGION_BLOCK;
}

void table_free(struct table *table)
{
    table_reset(table);
    free_blocks(table, table->block);
    table->block = NULL;
    table->bytes = 0;
}

uint64_t table_hash_bytes(const void *data, size_t size)
{
    const unsigned char *at = data;
    uint64_t hash = size, word;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&word, at, 8);
        hash = table_mix(hash, word);
    }
    word = 0;
    memcpy(&word, at, size);
    return table_mix(table_mix(hash, word), size);
}
