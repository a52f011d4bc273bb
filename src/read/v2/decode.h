/*
 * v2 events on the wire (§5.3): a type byte, then as many uvarints as the type has, the first of
 * them the time since the event before. No length anywhere.
 *
 * An event is nearly always nine bytes or less: its numbers then lie in one 64-bit word, and the
 * clear top bits in it say where each of them ends. Where the CPU has BMI2, one instruction gathers
 * a number's bits from there, so that no branch depends on the length of a number.
 */
#ifndef TRAIL_READ_V2_DECODE_H
#define TRAIL_READ_V2_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/varint.h"
#include "wire/wire.h"

struct v2_wire_event {
    uint64_t word, ends; /* packed: the eight bytes behind the type; the top bits of last bytes */
    uint64_t ticks;      /* since the event before */
    uint64_t arg[V2_MAX_ARGS - 1];
    uint8_t type;
};

/* Numbers of a timed event, its time included; 0: the type is none of a timed event. */
extern const uint8_t v2_numbers_of[256];

/*
 * Decodes the event at `at`, before `end` (at < end), number by number into ticks and arg. Returns
 * where it ends, or NULL if it is malformed: v2_decode_problem says how.
 */
const uint8_t *v2_decode_any(const uint8_t *at, const uint8_t *end, struct v2_wire_event *event);

/* Why the event at `at` is malformed; writes into `message`. */
void v2_decode_problem(const uint8_t *at, const uint8_t *end, char *message, size_t size);

#ifdef __BMI2__
#include <immintrin.h>

#define V2_TOP_BITS UINT64_C(0x8080808080808080)

/* Number i of a packed event. */
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
 * Packs the event at `at` if it is of the short kind and sets all but arg. Returns where it ends,
 * NULL if it is not or is malformed.
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
    /* No type has 0 numbers and is timed; the shift by 63 then asks for an end that no word has. */
    uint64_t last = _pdep_u64(UINT64_C(1) << ((numbers - 1) & 63), event->ends);
    if (__builtin_expect(last == 0, 0))
        return NULL;
    event->ticks = v2_word_number(event->word, event->ends, 0);
    return at + 2 + (_tzcnt_u64(last) >> 3);
}
#endif

#endif
