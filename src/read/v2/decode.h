/*
 * v2 events on the wire (§5.3): a type byte, then the type's number of uvarints, the first of which
 * is the time since the previous event. There is no length.
 *
 * An event nearly always has at most nine bytes: its numbers then fit into one 64-bit word, and the
 * clear top bits in it mark their ends. On CPUs with BMI2 one instruction gathers a number's bits,
 * so that no branch depends on the length of a number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/varint.h"
#include "wire/wire.h"

struct v2_wire_event {
    uint64_t word, ends; /* packed: the eight bytes after the type; the top bits of last bytes */
    uint64_t ticks;      /* since the previous event */
    uint64_t arg[V2_MAX_ARGS - 1];
    uint8_t type;
};

/* Number of uvarints of a timed event, including its time; 0 for other types. */
extern const uint8_t v2_numbers_of[256];

/*
 * Decodes the event at `at` (at < end), number by number, into ticks and arg. Returns its end, or
 * NULL if it is malformed (see v2_decode_problem).
 */
const uint8_t *v2_decode_any(const uint8_t *at, const uint8_t *end, struct v2_wire_event *event);

/* Writes the reason why the event at `at` is malformed to `message`. */
void v2_decode_problem(const uint8_t *at, const uint8_t *end, char *message, size_t size);

#ifdef __BMI2__
#include <immintrin.h>

#define V2_TOP_BITS UINT64_C(0x8080808080808080)

/* Returns number i of a packed event. */
static inline __attribute__((always_inline)) uint64_t v2_word_number(uint64_t word, uint64_t ends,
                                                                     unsigned i)
{
    uint64_t before = 0;
    for (unsigned k = 0; k < i; k++) {
        before = _blsmsk_u64(ends);
        ends = _blsr_u64(ends);
    }
    return _pext_u64(word, (before ^ _blsmsk_u64(ends)) & ~V2_TOP_BITS);
}

/*
 * Packs a short event at `at`: sets all fields but arg. Returns its end, NULL if it is not short or
 * malformed.
 */
static inline __attribute__((always_inline)) const uint8_t *
v2_decode_packed(const uint8_t *at, const uint8_t *end, struct v2_wire_event *event)
{
    unsigned numbers = v2_numbers_of[*at];
    if (__builtin_expect(end - at < 9, 0))
        return NULL;
    memcpy(&event->word, at + 1, sizeof event->word);
    event->type = *at;
    event->ends = ~event->word & V2_TOP_BITS;
    /* Other types have 0 numbers; the shift by 63 then selects a bit that no word has. */
    uint64_t last = _pdep_u64(UINT64_C(1) << ((numbers - 1) & 63), event->ends);
    if (__builtin_expect(last == 0, 0))
        return NULL;
    event->ticks = v2_word_number(event->word, event->ends, 0);
    return at + 2 + (_tzcnt_u64(last) >> 3);
}
#endif
