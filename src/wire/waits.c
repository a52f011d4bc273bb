/* Kinds of waits, looked up. */
#include "wire/waits.h"

#include <string.h>

const struct wire_wait_kind wire_wait_kinds[WIRE_WAITS] = {
#define WAIT_KIND(name, word, title, phrase, phrase_of, traits)                                    \
    [WIRE_WAIT_##name] = {word, title, phrase, phrase_of, traits},
#include "wire/wait_kinds.def"
};

const enum wire_wait wire_log_kinds[WIRE_LOGS] = {
#define WAIT(name, group, kind, words, reason) [WIRE_LOG_##name] = WIRE_WAIT_##kind,
#include "wire/waits.def"
};

static const char *const log_words[WIRE_LOGS] = {
#define WAIT(name, group, kind, words, reason) [WIRE_LOG_##name] = (words),
#include "wire/waits.def"
};

enum wire_wait wire_wait_parse(const char *text, size_t size, size_t *length)
{
    enum wire_wait kind = WIRE_WAIT_NONE;
    *length = 0;
    for (size_t i = WIRE_LOG_NONE + 1; i < WIRE_LOGS; i++) {
        size_t words = strlen(log_words[i]);
        /* The longest match counts: "OpenMP barrier" begins another one as well. */
        if (words <= *length || words > size || memcmp(text, log_words[i], words) != 0 ||
            (words < size && text[words] != ' '))
            continue;
        kind = wire_log_kinds[i];
        *length = words;
    }
    return kind;
}
