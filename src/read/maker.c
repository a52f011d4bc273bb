/* The line of a trace that names what made it: finding, parsing and writing it. */
#include "read/maker.h"

#include <stdio.h>

#include "base/utf8.h"
#include "base/varint.h"
#include "read/v1/lex.h"

_Static_assert(MAKER_WORD_MAX == TRAIL_TASK_WORD_MAX, "the public limit is that of the line");

/* Whether the word can be shown to people unescaped. */
static bool is_word(trail_string word)
{
    const uint8_t *at = (const uint8_t *)word.data, *end = at + word.size;
    uint32_t rune;
    if (word.size == 0 || word.size > MAKER_WORD_MAX || *at == ' ' || end[-1] == ' ')
        return false;
    while (at < end) {
        unsigned size = utf8_decode(at, end, &rune);
        if (size == 0 || !rune_is_print(rune))
            return false;
        at += size;
    }
    return true;
}

bool maker_parse(trail_string line, trail_maker *maker)
{
    const size_t host = sizeof MAKER_HOST - 1, record = sizeof MAKER_RECORD - 1,
                 import = sizeof MAKER_IMPORT - 1;
    if (line.size == record && memcmp(line.data, MAKER_RECORD, record) == 0) {
        *maker = (trail_maker){.made_by = TRAIL_MADE_BY_RECORD};
        return true;
    }
    if (line.size == import && memcmp(line.data, MAKER_IMPORT, import) == 0) {
        *maker = (trail_maker){.made_by = TRAIL_MADE_BY_IMPORT};
        return true;
    }
    if (line.size < host || memcmp(line.data, MAKER_HOST, host) != 0)
        return false;
    trail_string word = {line.data + host, line.size - host};
    if (!is_word(word))
        return false;
    *maker = (trail_maker){.made_by = TRAIL_MADE_BY_HOST};
    memcpy(maker->task_word, word.data, word.size);
    return true;
}

trail_string maker_line(const trail_maker *maker, char *room)
{
    int size = 0;
    if (maker->made_by == TRAIL_MADE_BY_RECORD)
        size = snprintf(room, MAKER_LINE, "%s", MAKER_RECORD);
    else if (maker->made_by == TRAIL_MADE_BY_IMPORT)
        size = snprintf(room, MAKER_LINE, "%s", MAKER_IMPORT);
    else if (maker->made_by == TRAIL_MADE_BY_HOST)
        size = snprintf(room, MAKER_LINE, MAKER_HOST "%s", maker->task_word);
    return (trail_string){room, (size_t)size};
}

/* MARK: In a batch */

/*
 * Consumes the ID and the text of a string record in [*at, end). Returns false if they are
 * incomplete.
 */
static bool take_string(const uint8_t **at, const uint8_t *end, trail_string *text)
{
    uint64_t id, size;
    const uint8_t *next = uvarint_get(*at, end, &id);
    next = next ? uvarint_get(next, end, &size) : NULL;
    if (!next || size > (uint64_t)(end - next))
        return false;
    *text = (trail_string){(const char *)next, (size_t)size};
    *at = next + size;
    return true;
}

static bool in_v2_strings(const uint8_t *at, const uint8_t *end, trail_maker *maker)
{
    trail_string text;
    while (at < end && *at++ == V2_String && take_string(&at, end, &text))
        if (maker_is_line(text) && maker_parse(text, maker))
            return true;
    return false;
}

static bool in_v1_records(int version, const uint8_t *at, const uint8_t *end, trail_maker *maker)
{
    struct v1_lex lex;
    v1_lex_init(&lex, version);
    while (at < end) {
        const uint8_t *next = v1_lex_skip(&lex, at, end), *body = at + 1;
        trail_string text;
        if (!next)
            return false;
        if (lex.class[*at] == V1_LEX_STRING && take_string(&body, next, &text) &&
            maker_is_line(text) && maker_parse(text, maker))
            return true;
        at = next;
    }
    return false;
}

bool maker_in_batch(int version, const trail_batch *batch, const uint8_t *data, trail_maker *maker)
{
    const uint8_t *end = data + batch->size;
    if (trail_version_is_v2(version))
        return batch->kind == TRAIL_BATCH_STRINGS && batch->size > 0 &&
               in_v2_strings(data + 1, end, maker);
    /*
     * Few batches have the line, and decoding each record takes longer than a search for the bytes.
     */
    return memmem(data, batch->size, MAKER_PREFIX, sizeof MAKER_PREFIX - 1) &&
           in_v1_records(version, data, end, maker);
}
