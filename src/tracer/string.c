/*
 * Strings, interned in the generation's table (§2.5, §7.5). v2 writes the table when the generation
 * ends; v1 writes a new string to the buffer at once.
 */
#include <string.h>

#include "tracer/event.h"
#include "tracer/lock.h"
#include "tracer/tables.h"
#include "tracer/tsan.h"

/* v1: must fit into an empty buffer, with its ID and length, after the Batch record. */
#define V1_STRING_MAX (BUFFER_CAPACITY - 64)

/* IDs reserved per M for strings written once, so that threads do not share a counter. */
#define IDS_AT_ONCE 64

/* Appends a string's record, for which the writer has room. */
static bool put_string(struct trail_writer_ *writer, unsigned type, uint64_t id, const char *text,
                       size_t size)
{
    uint8_t *at = writer->at;
    *at++ = (uint8_t)type;
    at = put(at, id);
    at = put(at, size);
    text_copy(at, text, size);
    writer->at = at + size;
    tsan_release(writer->buffer);
    return true;
}

bool v1_write_string(struct trail_writer_ *writer, uint64_t proc, uint64_t generation, uint64_t id,
                     const char *text, size_t size)
{
    return v1_refill(writer, generation, proc, 1 + 2 * UVARINT_MAX_SIZE + size) &&
           put_string(writer, V1_String, id, text, size);
}

static bool v1_write_string_of(trail_m *m, uint64_t generation, uint64_t id, const char *text,
                               size_t size)
{
    bool written;
    if (m && owns_p(m))
        return v1_write_string(&m->p->writer_, (uint64_t)(int64_t)m->p->id, generation, id, text,
                               size);
    lock_mutex(&tracer.no_proc);
    written = v1_write_string(&tracer.no_proc_writer, V1_NO_PROC, generation, id, text, size);
    pthread_mutex_unlock(&tracer.no_proc);
    return written;
}

const struct table_entry *string_put(uint64_t generation, const char *text, size_t size,
                                     bool *fresh)
{
    const struct table_entry *entry;
    entry = table_put(string_table(generation), text, size, table_hash_bytes(text, size), fresh);
    if (!entry)
        count(&tracer.stats.lost_strings);
    return entry;
}

void v2_intern_constants(uint64_t generation)
{
    static const char *const texts[] = {
#define REASON(name, text) text,
        TRAIL_BLOCK_REASONS(REASON)
#undef REASON
            "runtime.Gosched",
    };
    bool complete = true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        complete = string_put(generation, texts[i], strlen(texts[i]), NULL) && complete;
    tracer.has_constants[generation & 1] = complete;
}

void string_note(trail_m *m, uint64_t generation, const char *text, size_t size)
{
    bool fresh;
    const struct table_entry *entry = string_put(generation, text, size, &fresh);
    if (entry && fresh && !tracer.v2)
        v1_write_string_of(m, generation, entry->id, text, size);
}

/*
 * Returns the slot, by address, of a text that this M interned recently, which saves length, hash
 * and search. The text is compared, because the memory may have been reused for another.
 */
static const struct table_entry **recent(trail_m *m, const char *text)
{
    return (const struct table_entry **)&m
        ->recent_[((uintptr_t)text >> 2 ^ (uintptr_t)text >> 7) % TRAIL_RECENT_STRINGS_];
}

static inline bool same_text(const struct table_entry *entry, const char *text)
{
    const char *kept;
    if (!entry)
        return false;
    kept = (const char *)entry->data;
    /* Names are short, so a call of strncmp would take longer. No stored text contains a NUL. */
    for (size_t i = 0; i < entry->size; i++) {
        if (text[i] != kept[i])
            return false;
    }
    return !text[entry->size];
}

size_t string_max(void)
{
    return tracer.v2 ? V2_MAX_STRING : V1_STRING_MAX;
}

static const struct table_entry *intern_slow(trail_m *m, uint64_t generation, const char *text,
                                             const struct table_entry **slot)
{
    size_t size = text ? strnlen(text, string_max()) : 0;
    const struct table_entry *entry;
    bool fresh;
    if (size == 0)
        return NULL;
    entry = string_put(generation, text, size, &fresh);
    if (!entry)
        return NULL;
    *slot = entry;
    if (fresh && !tracer.v2)
        v1_write_string_of(m, generation, entry->id, text, size);
    return entry;
}

const struct table_entry *string_intern(trail_m *m, uint64_t generation, const char *text)
{
    const struct table_entry **slot = recent(m, text);
    if (likely(text && same_text(*slot, text)))
        return *slot;
    return intern_slow(m, generation, text, slot);
}

uint64_t string_id(trail_m *m, uint64_t generation, const char *text)
{
    const struct table_entry *entry = string_intern(m, generation, text);
    return entry ? entry->id : 0;
}

bool v2_write_string(struct trail_writer_ *writer, uint64_t generation, uint64_t id,
                     const char *text, size_t size)
{
    size_t room = 1 + 1 + 2 * UVARINT_MAX_SIZE + size;
    return v2_section_room(writer, generation, V2_Strings, room) &&
           put_string(writer, V2_String, id, text, size);
}

bool v2_section_room(struct trail_writer_ *writer, uint64_t generation, unsigned section,
                     size_t room)
{
    struct trail_buffer_ *buffer = writer->buffer;
    if (buffer && buffer->length_at && writer_room(writer) >= room)
        return true;
    if (!v2_open_batch(writer, generation, V2_NO_THREAD, room))
        return false;
    *writer->at++ = (uint8_t)section;
    return true;
}

uint64_t string_once(trail_m *m, uint64_t generation, const char *text, size_t size)
{
    uint64_t id;
    if (size > V2_MAX_STRING)
        size = V2_MAX_STRING;
    if (size == 0)
        return 0;
    if (m->string_ids_ == m->string_ids_end_) {
        m->string_ids_ = table_reserve_ids(string_table(generation), IDS_AT_ONCE);
        m->string_ids_end_ = m->string_ids_ + IDS_AT_ONCE;
    }
    id = m->string_ids_++;
    if (v2_write_string(&m->strings_[generation & 1], generation, id, text, size))
        return id;
    count(&tracer.stats.lost_strings);
    return 0;
}
