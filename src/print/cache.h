/*
 * Cache: rendered text of the strings or stacks of a trace, by handle. A stack is printed many
 * times (hundreds of bytes with each event) but rendered once per epoch (trail_reader_epoch). The
 * cache is bounded; further handles are rendered each time.
 */
#pragma once

#include <trail/read.h>

#include "base/arena.h"
#include "base/out.h"

struct cache_block {
    const char *data; /* NULL: not rendered yet */
    size_t size;
};

/* Writes the text of `handle`. */
typedef void (*cache_render_fn)(const trail_reader *reader, uint32_t handle, struct out *out);

struct cache {
    const trail_reader *reader;
    cache_render_fn render;
    uint64_t epoch;
    bool started;
    struct cache_block *blocks; /* by handle */
    size_t block_count;
    size_t kept; /* bytes cached, in the arena */
    struct arena arena;
    struct out scratch; /* blocks are rendered here first */
    char *long_block;   /* holds a block that exceeds the scratch buffer */
    size_t long_size, long_capacity;
};

/* Returns false if out of memory. Call cache_free in any case. */
bool cache_init(struct cache *cache, const trail_reader *reader, cache_render_fn render);
void cache_free(struct cache *cache);

/*
 * Call for each batch of events: clears the cache if the epoch has changed. `count` is the number
 * of handles in use.
 */
void cache_begin_batch(struct cache *cache, size_t count);

/* The slow path of cache_get. */
struct cache_block cache_fill(struct cache *cache, uint32_t handle);

/* Returns the text of `handle`, valid until the next call with this cache. */
static inline struct cache_block cache_get(struct cache *cache, uint32_t handle)
{
    if (__builtin_expect(handle < cache->block_count && cache->blocks[handle].data != NULL, 1))
        return cache->blocks[handle];
    return cache_fill(cache, handle);
}

/* Writes the text of `handle`. */
static inline void cache_put(struct cache *cache, uint32_t handle, struct out *out)
{
    struct cache_block block = cache_get(cache, handle);
    out_bytes(out, block.data, block.size);
}
