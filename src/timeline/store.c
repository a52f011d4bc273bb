/* Where chunks of lanes are: memory, then a mapped file. */
#include "timeline/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/temporary.h"

/* A full disk shows here, not as a signal when the memory is written to. */
static uint8_t *map_block(const struct store *store)
{
    off_t at = (off_t)(store->block_count * STORE_BLOCK);
    if (posix_fallocate(store->file - 1, at, (off_t)STORE_BLOCK) != 0)
        return NULL;
    void *block = mmap(NULL, STORE_BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, store->file - 1, at);
    return block == MAP_FAILED ? NULL : block;
}

static void close_file(struct store *store)
{
    if (store->file > 0)
        (void)close(store->file - 1);
    store->file = -1;
}

static bool add_block(struct store *store)
{
    size_t count = store->block_count;
    if (store->file == 0)
        store->file = temporary_file() + 1;
    if (store->file <= 0 || !GROW(store->blocks, store->block_capacity, count + 1) ||
        !(store->blocks[count] = map_block(store))) {
        close_file(store);
        return false;
    }
    /* What is complete need not stay in this process's memory; it is in the kernel's. */
    if (count > 0)
        (void)madvise(store->blocks[count - 1], STORE_BLOCK, MADV_DONTNEED);
    store->block_count++;
    store->used = 0;
    return true;
}

static uint8_t *alloc_in_file(struct store *store, size_t size)
{
    bool room = store->block_count > 0 && STORE_BLOCK - store->used >= size;
    if (store->file < 0 || (!room && !add_block(store)))
        return NULL;
    uint8_t *at = store->blocks[store->block_count - 1] + store->used;
    store->used += size;
    return at;
}

uint8_t *store_alloc(struct store *store, size_t size)
{
    uint8_t *at = store->kept >= store->memory ? alloc_in_file(store, size) : NULL;
    if (!at) {
        at = arena_alloc(&store->arena, size);
        store->kept += at ? size : 0;
    }
    store->bytes += at ? size : 0;
    return at;
}

/* MARK: Files that stay */

bool store_use_file(struct store *store, int folder)
{
    int fd = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    store->file = fd + 1;
    store->memory = 0;
    return true;
}

bool store_position(const struct store *store, const uint8_t *chunk, size_t *block,
                    uint64_t *position)
{
    for (size_t i = 0; i < store->block_count; i++) {
        size_t at = (*block + i) % store->block_count;
        uintptr_t begin = (uintptr_t)store->blocks[at], from = (uintptr_t)chunk;
        if (from < begin || from - begin >= STORE_BLOCK)
            continue;
        *block = at;
        *position = at * STORE_BLOCK + (from - begin);
        return true;
    }
    return false;
}

bool store_map(struct store *store, int fd, uint64_t size)
{
    store->file = -1;
    for (uint64_t at = 0; at < size; at += STORE_BLOCK) {
        size_t count = store->block_count;
        if (!GROW(store->blocks, store->block_capacity, count + 1))
            return false;
        void *block = mmap(NULL, STORE_BLOCK, PROT_READ, MAP_SHARED, fd, (off_t)at);
        if (block == MAP_FAILED)
            return false;
        store->blocks[store->block_count++] = block;
    }
    store->used = (size_t)(size - (store->block_count - 1) * STORE_BLOCK);
    return true;
}

uint8_t *store_at(const struct store *store, uint64_t position)
{
    uint64_t block = position / STORE_BLOCK, at = position % STORE_BLOCK;
    bool inside =
        block < store->block_count && (block + 1 < store->block_count || at < store->used);
    return inside ? store->blocks[block] + at : NULL;
}

void store_free(struct store *store)
{
    for (size_t i = 0; i < store->block_count; i++)
        (void)munmap(store->blocks[i], STORE_BLOCK);
    free(store->blocks);
    close_file(store);
    arena_free(&store->arena);
    *store = (struct store){.memory = store->memory};
}
