#include "analyze/path_log.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "base/temporary.h"
#include "base/varint.h"

enum {
    BLOCK_BITS = 20,
    BLOCK = 1 << BLOCK_BITS,
    KEPT = 144, /* blocks in memory before the file is made */
    ENTRY_MOST = 1 + 8 * UVARINT_MAX_SIZE,
    CHUNK_MOST = PATH_CHUNK * ENTRY_MOST
};

/* MARK: The file */

/* Returns the descriptor of a new file + 1, or -1. */
static int file_make(void)
{
    int fd = temporary_file();
    return fd >= 0 ? fd + 1 : -1;
}

/*
 * Writes the oldest block in memory to the file, and returns its memory for the newest. NULL
 * without a file, or room in it: then more memory is used.
 */
static uint8_t *spill(struct path_log *log)
{
    if (log->file == 0)
        log->file = file_make();
    if (log->file < 0)
        return NULL;
    uint8_t *block = log->blocks[log->spilled];
    if (!file_write_at(log->file - 1, block, BLOCK, (int64_t)log->spilled << BLOCK_BITS)) {
        return NULL;
    }
    log->blocks[log->spilled++] = NULL;
    return block;
}

/* MARK: Writing */

static bool block_new(struct path_log *log)
{
    if (!GROW(log->blocks, log->block_capacity, log->block_count + 1))
        return false;
    uint8_t *block = log->block_count - log->spilled >= KEPT ? spill(log) : NULL;
    if (!block)
        block = malloc(BLOCK);
    if (!block)
        return false;
    log->blocks[log->block_count++] = block;
    log->used = 0;
    return true;
}

static bool chunk_new(struct path_log *log)
{
    size_t number = (size_t)(log->count / PATH_CHUNK);
    if (!GROW(log->chunks, log->chunk_capacity, number + 1))
        return false;
    if ((log->block_count == 0 || BLOCK - log->used < CHUNK_MOST) && !block_new(log))
        return false;
    log->chunks[number] = (struct path_chunk){
        .time_ns = log->last_ns,
        .at = (uint64_t)(log->block_count - 1) << BLOCK_BITS | log->used,
    };
    return true;
}

/* One byte, or two, in most cases. */
static inline size_t put(uint8_t *at, uint64_t value)
{
    if (__builtin_expect(value >= 1 << 14, 0))
        return uvarint_put(at, value);
    at[0] = (uint8_t)(value | (value >= 0x80 ? 0x80 : 0));
    at[1] = (uint8_t)(value >> 7);
    return value >= 0x80 ? 2 : 1;
}

uint64_t path_log_add(struct path_log *log, struct path_entry *entry)
{
    if (log->count == 0 || entry->time_ns < log->last_ns) {
        if (log->count == 0)
            log->last_ns = entry->time_ns;
        entry->time_ns = log->last_ns;
    }
    if (log->count % PATH_CHUNK == 0 && !chunk_new(log))
        return 0;
    uint64_t number = log->count + 1;
    uint8_t *begin = log->blocks[log->block_count - 1], *at = begin + log->used;
    unsigned noted = entry->reason | entry->stack ? PATH_NOTED : 0;
    *at++ = (uint8_t)(entry->state | entry->flags | noted);
    at += put(at, (uint64_t)entry->time_ns - (uint64_t)log->last_ns);
    if (!(entry->flags & (PATH_BEFORE | PATH_CREATED)))
        at += put(at, number - entry->before);
    if (entry->flags & PATH_WOKEN) {
        at += put(at, number - entry->waker_entry);
        at += put(at, entry->waker);
    }
    if (entry->flags & (PATH_WAITED | PATH_CREATED))
        at += put(at, entry->where);
    if (noted) {
        at += put(at, entry->reason);
        at += put(at, entry->stack);
    }
    log->used = (size_t)(at - begin);
    log->last_ns = entry->time_ns;
    log->count = number;
    return number;
}

/* MARK: Reading */

/* Returns a chunk in memory; NULL if it cannot be read. */
static const uint8_t *chunk_data(struct path_log *log, uint64_t at)
{
    size_t block = (size_t)(at >> BLOCK_BITS), offset = (size_t)(at & (BLOCK - 1));
    if (log->blocks[block])
        return log->blocks[block] + offset;
    if (!log->window) {
        log->window = malloc(BLOCK);
        log->window_block = SIZE_MAX;
    }
    if (!log->window)
        return NULL;
    if (log->window_block != block) {
        log->window_block = SIZE_MAX;
        if (file_read_at(log->file - 1, log->window, BLOCK, (int64_t)block << BLOCK_BITS) != BLOCK)
            return NULL;
        log->window_block = block;
    }
    return log->window + offset;
}

/* Reads a number of path_log_add: complete, and one or two bytes in most cases. */
static inline uint64_t number_at(const uint8_t **at)
{
    const uint8_t *bytes = *at;
    uint64_t value = 0;
    if (__builtin_expect(bytes[0] < 0x80, 1)) {
        *at += 1;
        return bytes[0];
    }
    if (__builtin_expect(bytes[1] < 0x80, 1)) {
        *at += 2;
        return (bytes[0] & 0x7FU) | (uint64_t)bytes[1] << 7;
    }
    *at = uvarint_get(*at, *at + UVARINT_MAX_SIZE, &value);
    return value;
}

static void decode(const uint8_t **at, int64_t *time, uint64_t number, struct path_entry *entry)
{
    unsigned first = *(*at)++;
    *entry = (struct path_entry){.state = first & 7, .flags = (uint8_t)(first & ~7U)};
    *time = (int64_t)((uint64_t)*time + number_at(at));
    entry->time_ns = *time;
    if (!(first & (PATH_BEFORE | PATH_CREATED)))
        entry->before = number - number_at(at);
    if (first & PATH_WOKEN) {
        entry->waker_entry = number - number_at(at);
        entry->waker = (uint32_t)number_at(at);
    }
    if (first & (PATH_WAITED | PATH_CREATED))
        entry->where = (uint32_t)number_at(at);
    if (first & PATH_NOTED) {
        entry->reason = (uint32_t)number_at(at);
        entry->stack = (uint32_t)number_at(at);
    }
}

const struct path_entry *path_log_get(struct path_log *log, uint64_t number)
{
    uint64_t chunk = (number - 1) / PATH_CHUNK;
    if (log->decoded_chunk != chunk + 1) {
        const uint8_t *at = chunk_data(log, log->chunks[chunk].at);
        if (!at)
            return NULL;
        int64_t time = log->chunks[chunk].time_ns;
        uint64_t first = chunk * PATH_CHUNK + 1;
        uint64_t count = log->count + 1 - first;
        for (uint64_t i = 0; i < count && i < PATH_CHUNK; i++)
            decode(&at, &time, first + i, &log->decoded[i]);
        log->decoded_chunk = chunk + 1;
    }
    return &log->decoded[(number - 1) % PATH_CHUNK];
}

/* MARK: End */

void path_log_clear(struct path_log *log)
{
    for (size_t i = log->spilled; i < log->block_count; i++)
        free(log->blocks[i]);
    log->block_count = log->spilled = log->used = 0;
    log->count = 0;
    log->window_block = SIZE_MAX;
    log->decoded_chunk = 0;
}

void path_log_free(struct path_log *log)
{
    path_log_clear(log);
    free(log->blocks);
    free(log->chunks);
    free(log->window);
    if (log->file > 0)
        (void)close(log->file - 1);
}
