/* Kinds of waits, looked up. */
#include "wire/waits.h"

#include <string.h>

const struct wire_wait_kind wire_wait_kinds[WIRE_WAITS] = {
#define WAIT_KIND(name, word, title, phrase, phrase_of, traits)                                    \
    [WIRE_WAIT_##name] = {word, title, phrase, phrase_of, traits},
#include "wire/wait_kinds.def"
#undef WAIT_KIND
};

static const struct {
    const char *words;
    enum wire_wait kind;
} rows[] = {
#define WAIT(name, group, kind, words, reason) {words, WIRE_WAIT_##kind},
#include "wire/waits.def"
#undef WAIT
};

enum wire_wait wire_wait_parse(const char *text, size_t size, size_t *length)
{
    enum wire_wait kind = WIRE_WAIT_NONE;
    *length = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t words = strlen(rows[i].words);
        /* The longest: "OpenMP barrier" begins another one as well. */
        if (words <= *length || words > size || memcmp(text, rows[i].words, words) != 0 ||
            (words < size && text[words] != ' '))
            continue;
        kind = rows[i].kind;
        *length = words;
    }
    return kind;
}
