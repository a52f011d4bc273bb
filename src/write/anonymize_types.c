/* Replaces the names of types in batches of the experiment AllocFree. */
#include "write/anonymize_types.h"

#include <ctype.h>
#include <string.h>

#include "base/varint.h"
#include "wire/wire.h"

/* The first byte of a batch. */
enum { TYPES, HEAP };

enum { TYPE_NUMBERS = 5, HEAP_NUMBERS = 4 };

/* MARK: Names of types */

/* Go's own words, which may stay in a type's name. */
static const char *const go_words[] = {
    "any",     "bool",  "byte",    "chan",   "complex128", "complex64", "error",  "float32",
    "float64", "func",  "int",     "int16",  "int32",      "int64",     "int8",   "interface",
    "map",     "noalg", "rune",    "string", "struct",     "uint",      "uint16", "uint32",
    "uint64",  "uint8", "uintptr", "unsafe", "Pointer",
};

static bool is_go_word(const char *word, size_t size)
{
    for (size_t i = 0; i < sizeof go_words / sizeof *go_words; i++)
        if (strlen(go_words[i]) == size && memcmp(go_words[i], word, size) == 0)
            return true;
    return false;
}

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

/* Whether a type consists of words of the language, digits and signs, without quoted text:
 * "map[string][]uint8". */
static bool is_go_type(trail_string name)
{
    for (size_t at = 0; at < name.size;) {
        size_t end = at;
        while (end < name.size && is_letter(name.data[end]))
            end++;
        size_t digits = at;
        while (digits < end && isdigit((unsigned char)name.data[digits]))
            digits++;
        if (digits < end && !is_go_word(name.data + at, end - at))
            return false;
        if (end == at && !strchr("[](){}*., ;<-", name.data[end]))
            return false;
        at = end == at ? end + 1 : end;
    }
    return true;
}

/* MARK: Batches */

/* A batch under construction. */
struct batch {
    anonymous_put put;
    void *context;
    size_t size;
    uint8_t data[V2_MAX_BATCH_DATA];
};

static bool flush(struct batch *batch)
{
    size_t size = batch->size;
    batch->size = 1; /* the kind is unchanged */
    return size <= 1 || batch->put(batch->context, batch->data, size);
}

static bool add_type(struct batch *batch, const uint64_t *numbers, trail_string name)
{
    size_t most = (size_t)TYPE_NUMBERS * UVARINT_MAX_SIZE + name.size;
    if (sizeof batch->data - batch->size < most && !flush(batch))
        return false;
    if (sizeof batch->data - batch->size < most)
        return false;
    for (int i = 0; i < TYPE_NUMBERS - 1; i++)
        batch->size += uvarint_put(batch->data + batch->size, numbers[i]);
    batch->size += uvarint_put(batch->data + batch->size, name.size);
    memcpy(batch->data + batch->size, name.data, name.size);
    batch->size += name.size;
    return true;
}

/* Reads numbers. Returns their end; NULL: there are too few. */
static const uint8_t *get_numbers(const uint8_t *at, const uint8_t *end, uint64_t *numbers,
                                  int count)
{
    for (int i = 0; i < count && at; i++)
        at = uvarint_get(at, end, &numbers[i]);
    return at;
}

static bool copy_types(const struct anonymizer *a, const uint8_t *at, const uint8_t *end,
                       struct batch *batch)
{
    uint64_t numbers[TYPE_NUMBERS]; /* ID, address, size, bytes with pointers, length of the name */
    while (at < end) {
        struct stand_in room;
        at = get_numbers(at, end, numbers, TYPE_NUMBERS);
        if (!at || numbers[TYPE_NUMBERS - 1] > (uint64_t)(end - at))
            return false;
        trail_string name = {(const char *)at, (size_t)numbers[TYPE_NUMBERS - 1]};
        at += name.size;
        if (!add_type(batch, numbers, is_go_type(name) ? name : anonymize_text(a, name, &room)))
            return false;
    }
    return true;
}

static bool copy_heap(const uint8_t *at, const uint8_t *end, struct batch *batch)
{
    uint64_t numbers[HEAP_NUMBERS];
    at = get_numbers(at, end, numbers, HEAP_NUMBERS);
    for (int i = 0; i < HEAP_NUMBERS && at == end; i++)
        batch->size += uvarint_put(batch->data + batch->size, numbers[i]);
    return at == end;
}

bool anonymize_alloc_free(const struct anonymizer *a, const uint8_t *data, size_t size,
                          anonymous_put put, void *context)
{
    struct batch batch = {.put = put, .context = context, .size = 1};
    if (size == 0 || data[0] > HEAP)
        return false;
    batch.data[0] = data[0];
    bool good = data[0] == TYPES ? copy_types(a, data + 1, data + size, &batch)
                                 : copy_heap(data + 1, data + size, &batch);
    return flush(&batch) && good;
}
