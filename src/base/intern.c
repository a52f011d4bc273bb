/* Interning: equal bytes get equal numbers. */
#include "base/intern.h"

#include <string.h>

#include "base/hash.h"

struct intern_entry {
    struct intern_entry *next; /* with the same hash */
    uint64_t number;
    size_t size;
    unsigned char data[]; /* and a NUL */
};

static struct intern_entry *entry_make(struct arena *arena, const void *data, size_t size)
{
    if (size >= SIZE_MAX - sizeof(struct intern_entry))
        return NULL;
    struct intern_entry *entry = arena_alloc(arena, sizeof *entry + size + 1);
    if (!entry)
        return NULL;
    entry->size = size;
    if (size > 0)
        memcpy(entry->data, data, size);
    entry->data[size] = '\0';
    return entry;
}

static struct intern_entry *put(struct intern *intern, const void *data, size_t size, bool *fresh)
{
    uint64_t hash = hash_keyed_bytes(0, data, size);
    struct intern_entry *first = idmap_find(&intern->map, hash);
    *fresh = false;
    for (struct intern_entry *entry = first; entry; entry = entry->next)
        if (entry->size == size && (size == 0 || memcmp(entry->data, data, size) == 0))
            return entry;
    struct intern_entry *entry = entry_make(&intern->arena, data, size);
    if (!entry)
        return NULL;
    entry->next = first;
    if (!idmap_put(&intern->map, hash, entry))
        return NULL;
    *fresh = true;
    entry->number = ++intern->last;
    return entry;
}

uint64_t intern_put(struct intern *intern, const void *data, size_t size, bool *fresh)
{
    struct intern_entry *entry = put(intern, data, size, fresh);
    return entry ? entry->number : 0;
}

const char *intern_text(struct intern *intern, const char *text, size_t size)
{
    bool fresh;
    struct intern_entry *entry = put(intern, text, size, &fresh);
    return entry ? (const char *)entry->data : NULL;
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
