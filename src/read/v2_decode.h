/*
 * v2 events on the wire (§5.3): a type byte, then as many uvarints as the type has, the first of
 * them the time since the event before. No length anywhere.
 *
 * An event is nearly always nine bytes or less. Those are decoded without a branch on the length of
 * a number where the CPU has BMI2: the eight bytes behind the type are taken as one word, the clear
 * top bits in it say where each number ends, and one instruction gathers a number's bits.
 */
#ifndef TRAIL_READ_V2_DECODE_H
#define TRAIL_READ_V2_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/varint.h"
#include "wire/wire.h"

struct v2_wire_event {
    uint64_t ticks; /* since the event before */
    uint64_t arg[V2_MAX_ARGS - 1];
    uint8_t type;
};

/* Numbers of a timed event, its time included; 0: the type is none of a timed event. */
extern const uint8_t v2_numbers_of[256];

/*
 * A decoder takes the event at `at`, before `end` (at < end). It returns where the event ends, or
 * NULL if it is malformed: v2_decode_problem says how. This one does any event, number by number.
 */
const uint8_t *v2_decode_any(const uint8_t *at, const uint8_t *end, struct v2_wire_event *event);

/* Why the event at `at` is malformed; writes into `message`. */
void v2_decode_problem(const uint8_t *at, const uint8_t *end, char *message, size_t size);

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define V2_DECODE_BMI2 1
#define V2_BMI2        __attribute__((target("bmi,bmi2")))

/*
 * `ends` has a bit at the top of each number's last byte. For number i, `upto` covers the word from
 * its start to there, so that two of them differ in exactly the number's bytes.
 */
V2_BMI2 static inline __attribute__((always_inline)) const uint8_t *
v2_decode_bmi2(const uint8_t *at, const uint8_t *end, struct v2_wire_event *event)
{
    const uint64_t top_bits = UINT64_C(0x8080808080808080);
    uint64_t word;
    unsigned numbers = v2_numbers_of[*at];
    if (__builtin_expect(end - at < 9 || numbers == 0, 0))
        return v2_decode_any(at, end, event);
    memcpy(&word, at + 1, sizeof word);
    uint64_t ends = ~word & top_bits;
    uint64_t last = _pdep_u64(UINT64_C(1) << (numbers - 1), ends);
    if (__builtin_expect(last == 0, 0))
        return v2_decode_any(at, end, event);
    uint64_t upto = _blsmsk_u64(ends);
    event->type = *at;
    event->ticks = _pext_u64(word, upto & ~top_bits);
    for (unsigned i = 0; i < 3; i++) {
        ends = _blsr_u64(ends);
        uint64_t next = _blsmsk_u64(ends);
        event->arg[i] = _pext_u64(word, (upto ^ next) & ~top_bits);
        upto = next;
    }
    if (__builtin_expect(numbers == V2_MAX_ARGS, 0))
        event->arg[3] = _pext_u64(word, (upto ^ _blsmsk_u64(_blsr_u64(ends))) & ~top_bits);
    return at + 2 + (_tzcnt_u64(last) >> 3);
}
#endif

#endif
