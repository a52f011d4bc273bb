#include "print/cache.h"

#include <stdlib.h>
#include <string.h>

#define CACHE_MAX_KEPT ((size_t)64 << 20)

/* The sink of the scratch buffer: collects a long block. */
static bool cache_collect(void *context, const void *data, size_t size)
{
    struct cache *cache = context;
    if (size > cache->long_capacity - cache->long_size) {
        size_t wanted = (cache->long_size + size) * 2;
        char *grown = realloc(cache->long_block, wanted);
        if (!grown)
            return false;
        cache->long_block = grown;
        cache->long_capacity = wanted;
    }
    memcpy(cache->long_block + cache->long_size, data, size);
    cache->long_size += size;
    return true;
}

bool cache_init(struct cache *cache, const trail_reader *reader, cache_render_fn render)
{
    *cache = (struct cache){.reader = reader, .render = render};
    return out_init(&cache->scratch, cache_collect, cache);
}

void cache_free(struct cache *cache)
{
    out_drop(&cache->scratch);
    arena_free(&cache->arena);
    free(cache->blocks);
    free(cache->long_block);
    *cache = (struct cache){0};
}

/* Extends the table to `count` handles; if out of memory, the rest is not cached. */
static void cache_cover(struct cache *cache, size_t count)
{
    if (count <= cache->block_count)
        return;
    size_t wanted = count + count / 2;
    struct cache_block *grown = reallocarray(cache->blocks, wanted, sizeof *grown);
    if (!grown)
        return;
    memset(grown + cache->block_count, 0, (wanted - cache->block_count) * sizeof *grown);
    cache->blocks = grown;
    cache->block_count = wanted;
}

void cache_begin_batch(struct cache *cache, size_t count)
{
    uint64_t epoch = trail_reader_epoch(cache->reader);
    if (!cache->started || epoch != cache->epoch) {
        if (cache->block_count > 0)
            memset(cache->blocks, 0, cache->block_count * sizeof *cache->blocks);
        arena_reset(&cache->arena);
        cache->kept = 0;
        cache->epoch = epoch;
        cache->started = true;
    }
    cache_cover(cache, count);
}

static struct cache_block cache_render(struct cache *cache, uint32_t handle)
{
    struct out *scratch = &cache->scratch;
    scratch->at = scratch->buffer;
    cache->long_size = 0;
    cache->render(cache->reader, handle, scratch);
    if (cache->long_size == 0)
        return (struct cache_block){scratch->buffer, (size_t)(scratch->at - scratch->buffer)};
    out_flush(scratch);
    return (struct cache_block){cache->long_block, cache->long_size};
}

struct cache_block cache_fill(struct cache *cache, uint32_t handle)
{
    struct cache_block block = cache_render(cache, handle);
    if (handle >= cache->block_count || block.size > CACHE_MAX_KEPT - cache->kept)
        return block;
    char *kept = arena_copy(&cache->arena, block.data, block.size);
    if (!kept)
        return block;
    cache->kept += block.size;
    cache->blocks[handle] = (struct cache_block){kept, block.size};
    return cache->blocks[handle];
}
