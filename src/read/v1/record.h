/*
 * v1, lexical level: where a record begins and ends and which numbers it holds (§1.1, §1.4). Two
 * ways through the same bytes, which agree on what is a record:
 *
 *   v1_records_skip  steps over ordinary records, a few machine instructions each; it stops at
 *                    whatever is not ordinary, looks odd or comes near the end
 *   v1_record_read   takes one record of any kind apart, checks all of it, and has the words for
 *                    what is wrong
 *
 *   +--------+ . . . . +--------+--------+ . . .   t: the type
 *   |cctttttt| length  | number | number |         c = 0, 1, 2: c + 1 numbers (in 1.5 c + 2)
 *   +--------+ . . . . +--------+--------+ . . .   c = 3: first their length in bytes
 */
#ifndef TRAIL_READ_V1_RECORD_H
#define TRAIL_READ_V1_RECORD_H

#include <stdbool.h>
#include <string.h>

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include <trail/read.h>

#include "base/varint.h"
#include "wire/wire.h"

/* What a type's record is, in a file of one version. */
struct v1_shape {
    bool known;
    bool ordinary;   /* a timed event that the sweep over the file need not look into */
    uint8_t args;    /* numbers without time fields and stack ID */
    uint8_t stack;   /* 1: a stack ID comes last */
    uint8_t numbers; /* all: time fields, args, stack ID */
};

struct v1_format {
    int version;
    bool newer_rules;     /* those of Go >= 1.23 (P2 in §3) rather than of Go <= 1.21 (P1) */
    unsigned time_fields; /* of a timed record: 1, in 1.5 files 2 */
    struct v1_shape shapes[V1_TYPE_MASK + 1];
    /* By first byte: 1..4 for an ordinary record of as many numbers; V1_FIRST_PREFIXED plus how
     * many for an ordinary one behind a length; 0 for all else. */
    uint8_t first[256];
};

#define V1_FIRST_PREFIXED 0x80

void v1_format_init(struct v1_format *format, int version, bool newer_rules);

/* Bytes of a trace, of which the first is at `offset`. */
struct v1_bytes {
    const uint8_t *data;
    size_t size;
    uint64_t offset;
};

static inline uint64_t v1_offset(const struct v1_bytes *bytes, const uint8_t *at)
{
    return bytes->offset + (uint64_t)(at - bytes->data);
}

#define V1_MAX_NUMBERS 8

struct v1_record {
    unsigned type;
    unsigned numbers;
    uint64_t number[V1_MAX_NUMBERS]; /* of a Stack: its ID and count only */
    const uint8_t *frames;           /* Stack: where the numbers of its frames begin */
    trail_string text;               /* String, UserLog */
    const uint8_t *end;              /* where the next record begins */
};

/* Reads the record at `at`. Returns -1 and sets *err (code, message, offset) if it is none. */
int v1_record_read(const struct v1_format *format, const struct v1_bytes *bytes, const uint8_t *at,
                   struct v1_record *record, trail_error *err);

#define V1_TOP_BITS UINT64_C(0x8080808080808080)

/*
 * Of a word's bits the n-th that is set (1..4) and those above; 0 if there are fewer. Without a
 * branch: nobody can foresee `n`.
 */
static inline uint64_t v1_nth_set(uint64_t bits, unsigned n)
{
    bits &= bits - (n > 1);
    bits &= bits - (n > 2);
    return bits & (bits - (n > 3));
}

/* The furthest that v1_records_skip looks: first byte, length, 16 bytes. */
#define V1_RECORD_REACH 18

/* MARK: Up to three numbers in one word */

/* The furthest that v1_word_load and a fourth number look: first byte, length, 8 + 10 bytes. */
#define V1_PACKED_REACH 20

struct v1_word {
    uint64_t word;
    uint64_t ends; /* the top bits of the bytes that end a number */
};

/* Loads `numbers` (1..3) uvarints from `at`. Returns where they end, NULL if not in 8 bytes. */
static inline const uint8_t *v1_word_load(struct v1_word *word, const uint8_t *at, unsigned numbers)
{
    word->word = uvarint_load8(at);
    word->ends = ~word->word & V1_TOP_BITS;
    uint64_t last = v1_nth_set(word->ends, numbers);
    if (__builtin_expect(last == 0, 0))
        return NULL;
    return at + (__builtin_ctzll(last) >> 3) + 1;
}

/* Number `i` of those that were loaded; any value if there are not as many. */
static inline uint64_t v1_word_number(const struct v1_word *word, unsigned i)
{
    uint64_t ends = word->ends, before = 0;
    for (unsigned k = 0; k < i; k++) {
        before = ends ^ (ends - 1);
        ends &= ends - 1;
    }
    uint64_t mask = (before ^ ends ^ (ends - 1)) & ~V1_TOP_BITS;
#ifdef __BMI2__
    return _pext_u64(word->word, mask);
#else
    /* The lowest bit of the mask is the number's; what lies below is gone: divide by that bit. */
    uint64_t bits = mask ? (word->word & mask) >> __builtin_ctzll(mask) : 0;
    bits = (bits & UINT64_C(0x007f007f007f007f)) | (bits & UINT64_C(0x7f007f007f007f00)) >> 1;
    bits = (bits & UINT64_C(0x00003fff00003fff)) | (bits & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (bits & UINT64_C(0x0fffffff)) | (bits & UINT64_C(0x0fffffff00000000)) >> 4;
#endif
}

/*
 * The end of `numbers` (1..4) uvarints from `at` on, of which 8 bytes can be read; NULL if they do
 * not end within these. The top bit of each byte tells whether its number goes on: the n-th clear
 * one ends it.
 */
static inline const uint8_t *v1_skip_numbers(const uint8_t *at, unsigned numbers)
{
    uint64_t ends = v1_nth_set(~uvarint_load8(at) & V1_TOP_BITS, numbers);
    if (__builtin_expect(ends == 0, 0))
        return NULL;
    return at + (__builtin_ctzll(ends) >> 3) + 1;
}

/*
 * The end of the `length` bytes at `at` (16 can be read) if they are exactly `numbers` uvarints of
 * at most 9 bytes each, else NULL: that is to be looked at closely.
 */
static inline const uint8_t *v1_skip_prefixed(const uint8_t *at, unsigned length, unsigned numbers)
{
    if (length == 0 || length > 16 || length > numbers + 8 || at[length - 1] >= 0x80)
        return NULL;
    uint64_t low = ~uvarint_load8(at) & V1_TOP_BITS;
    uint64_t high = ~uvarint_load8(at + 8) & V1_TOP_BITS;
    if (length <= 8) {
        low &= UINT64_MAX >> (64 - 8 * length);
        high = 0;
    } else {
        high &= UINT64_MAX >> (128 - 8 * length);
    }
    /* Counted by adding up the bytes of the product's last column. */
    uint64_t found = ((low >> 7) + (high >> 7)) * UINT64_C(0x0101010101010101) >> 56;
    return found == numbers ? at + length : NULL;
}

/*
 * Steps over ordinary records from `at` on and adds their number to *count. Returns where it
 * stopped: at a record that is for v1_record_read.
 */
static inline const uint8_t *v1_records_skip(const struct v1_format *format, const uint8_t *at,
                                             const uint8_t *end, uint64_t *count)
{
    uint64_t n = 0;
    /* 1.5 has one leading number more; the constant is moved out of the loop by the compiler. */
    const unsigned leading = format->time_fields;
    while (end - at >= V1_RECORD_REACH) {
        unsigned first = format->first[*at];
        const uint8_t *next;
        if (__builtin_expect((first & V1_FIRST_PREFIXED) != 0, 0))
            next = v1_skip_prefixed(at + 2, at[1], first & ~(unsigned)V1_FIRST_PREFIXED);
        else if (__builtin_expect(first != 0, 1))
            /* The same as `first`, but known a memory access earlier. */
            next = v1_skip_numbers(at + 1, (*at >> V1_COUNT_SHIFT) + leading);
        else
            break;
        if (__builtin_expect(!next, 0))
            break;
        at = next;
        n++;
    }
    *count += n;
    return at;
}

#endif
