/* The line of a trace that names what made it: finding, parsing and writing it. */
#include "read/maker.h"

#include <stdio.h>

#include "base/text.h"
#include "base/utf8.h"
#include "read/string_record.h"
#include "read/v1/lex.h"

_Static_assert(MAKER_WORD_MAX == TRAIL_TASK_WORD_MAX, "the public limit is that of the line");

/* Whether the word can be displayed unescaped. */
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
    if (text_is(line, MAKER_RECORD)) {
        *maker = (trail_maker){.made_by = TRAIL_MADE_BY_RECORD};
        return true;
    }
    if (text_is(line, MAKER_IMPORT)) {
        *maker = (trail_maker){.made_by = TRAIL_MADE_BY_IMPORT};
        return true;
    }
    if (!text_take(&line, MAKER_HOST) || !is_word(line))
        return false;
    *maker = (trail_maker){.made_by = TRAIL_MADE_BY_HOST};
    memcpy(maker->task_word, line.data, line.size);
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

static bool in_v2_strings(const uint8_t *at, const uint8_t *end, trail_maker *maker)
{
    trail_string text;
    while (at < end && *at++ == V2_String && string_take(&at, end, &text))
        if (maker_parse(text, maker))
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
        if (lex.class[*at] == V1_LEX_STRING && string_take(&body, next, &text) &&
            maker_parse(text, maker))
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
