/* Why programs did not load the recorder: see missed.def. */
#pragma once

#include <stdint.h>

enum wire_missed {
#define MISSED(name, why, remedy) WIRE_MISSED_##name,
#include "wire/missed.def"
    WIRE_MISSED_REASONS
};

struct wire_missed_words {
    const char *why, *remedy;
};

/* Returns NULL if the reason is not known. */
static inline const struct wire_missed_words *wire_missed_words(uint64_t reason)
{
    static const struct wire_missed_words words[] = {
#define MISSED(name, why, remedy) {why, remedy},
#include "wire/missed.def"
    };
    return reason == WIRE_MISSED_UNKNOWN || reason >= WIRE_MISSED_REASONS ? 0 : &words[reason];
}
