#include "base/intern.h"

#include <string.h>

struct intern_entry {
    struct intern_entry *next; /* of the same hash */
    uint64_t number;
    size_t size;
    unsigned char data[];
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
    unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(const unsigned char *data, size_t size)
{
    uint64_t hash = size, word;
    size_t left = size;
    for (; left >= sizeof word; data += sizeof word, left -= sizeof word) {
        memcpy(&word, data, sizeof word);
        hash = mix(hash, word);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, data, left);
    return mix(hash, word);
}

static struct intern_entry *entry_make(struct arena *arena, const void *data, size_t size)
{
    if (size > SIZE_MAX - sizeof(struct intern_entry))
        return NULL;
    struct intern_entry *entry = arena_alloc(arena, sizeof *entry + size);
    if (!entry)
        return NULL;
    entry->size = size;
    if (size > 0)
        memcpy(entry->data, data, size);
    return entry;
}

uint64_t intern_put(struct intern *intern, const void *data, size_t size, bool *fresh)
{
    uint64_t hash = hash_bytes(data, size);
    struct intern_entry *first = idmap_find(&intern->map, hash);
    *fresh = false;
    for (struct intern_entry *entry = first; entry; entry = entry->next)
        if (entry->size == size && (size == 0 || memcmp(entry->data, data, size) == 0))
            return entry->number;
    struct intern_entry *entry = entry_make(&intern->arena, data, size);
    if (!entry)
        return 0;
    entry->next = first;
    if (!idmap_put(&intern->map, hash, entry))
        return 0;
    *fresh = true;
    return entry->number = ++intern->last;
}

void intern_clear(struct intern *intern)
{
    idmap_clear(&intern->map);
    arena_reset(&intern->arena);
    intern->last = 0;
}

void intern_free(struct intern *intern)
{
    idmap_free(&intern->map);
    arena_free(&intern->arena);
    intern->last = 0;
}
