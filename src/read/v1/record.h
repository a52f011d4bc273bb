/*
 * v1, lexical level: the extent of a record and its numbers (§1.1, §1.4). Two functions that agree
 * on what a record is:
 *
 *   v1_records_skip   skips ordinary records, with a few machine instructions each; stops at
 *                     records that are not ordinary, malformed or near the end
 *   v1_record_read    decodes and checks one record of any kind, and reports errors
 *
 *   +--------+ . . . . +--------+--------+ . . .      t: the type
 *   |cctttttt|  length | number | number |            c = 0, 1, 2: c + 1 numbers (in 1.5 c + 2)
 *   +--------+ . . . . +--------+--------+ . . .      c = 3: first their length in bytes
 */
#pragma once

#include <stdbool.h>

#ifdef __BMI2__
#include <immintrin.h>
#endif

#include <trail/read.h>

#include "base/varint.h"
#include "wire/wire.h"

/* The form of a type's records in files of one version. */
struct v1_shape {
    bool known;
    bool ordinary;   /* a timed event that the sweep over the file can skip */
    uint8_t args;    /* numbers without time fields and stack ID */
    uint8_t stack;   /* 1: a stack ID comes last */
    uint8_t numbers; /* in total: time fields, args, stack ID */
};

struct v1_format {
    int version;
    bool newer_rules;     /* the rules of Go >= 1.23 (P2 in §3), not of Go <= 1.21 (P1) */
    unsigned time_fields; /* of a timed record: 1, in 1.5 files 2 */
    struct v1_shape shapes[V1_TYPE_MASK + 1];
    /*
     * By first byte: 1 to 4 for an ordinary record with that many numbers; V1_FIRST_PREFIXED plus
     * the number for an ordinary one with a length; 0 for others.
     */
    uint8_t first[256];
};

#define V1_FIRST_PREFIXED 0x80

void v1_format_init(struct v1_format *format, int version, bool newer_rules);

/* Bytes of a trace, beginning at `offset`. */
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
    uint64_t number[V1_MAX_NUMBERS]; /* for a Stack only its ID and count */
    const uint8_t *frames;           /* Stack: the numbers of its frames */
    trail_string text;               /* String, UserLog */
    const uint8_t *end;              /* the next record */
};

/* Reads the record at `at`. Returns -1 with *err (code, message, offset) if it is malformed. */
int v1_record_read(const struct v1_format *format, const struct v1_bytes *bytes, const uint8_t *at,
                   struct v1_record *record, trail_error *err);

#define V1_TOP_BITS UINT64_C(0x8080808080808080)

/*
 * Clears the lowest n - 1 set bits (n is 1 to 4): the lowest that remains is the n-th; 0 if there
 * are fewer. Without a branch, because `n` cannot be predicted.
 */
static inline uint64_t v1_nth_set(uint64_t bits, unsigned n)
{
    bits &= bits - (n > 1);
    bits &= bits - (n > 2);
    return bits & (bits - (n > 3));
}

/* The maximum that v1_records_skip reads: first byte, length, 16 bytes. */
#define V1_RECORD_REACH 18

/* MARK: Up to three numbers in one word */

/* The maximum that v1_word_load and a fourth number read: first byte, length, 8 + 10 bytes. */
#define V1_PACKED_REACH 20

struct v1_word {
    uint64_t word;
    uint64_t ends; /* the top bits of the last byte of each number */
};

/* Loads `numbers` (1 to 3) uvarints from `at`. Returns their end, NULL if they exceed 8 bytes. */
static inline const uint8_t *v1_word_load(struct v1_word *word, const uint8_t *at, unsigned numbers)
{
    word->word = uvarint_load8(at);
    word->ends = ~word->word & V1_TOP_BITS;
    uint64_t last = v1_nth_set(word->ends, numbers);
    if (__builtin_expect(last == 0, 0))
        return NULL;
    return at + (__builtin_ctzll(last) >> 3) + 1;
}

/* Returns number `i` of those loaded; any value if there are fewer. */
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
    /* The mask's lowest bit is the number's lowest; dividing by it shifts the number down. */
    uint64_t bits = mask ? (word->word & mask) >> __builtin_ctzll(mask) : 0;
    bits = (bits & UINT64_C(0x007f007f007f007f)) | (bits & UINT64_C(0x7f007f007f007f00)) >> 1;
    bits = (bits & UINT64_C(0x00003fff00003fff)) | (bits & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (bits & UINT64_C(0x0fffffff)) | (bits & UINT64_C(0x0fffffff00000000)) >> 4;
#endif
}

/*
 * Returns the end of `numbers` (1 to 4) uvarints at `at`, of which 8 bytes can be read; NULL if
 * they do not end within these. The n-th byte with a clear top bit ends the n-th number.
 */
static inline const uint8_t *v1_skip_numbers(const uint8_t *at, unsigned numbers)
{
    uint64_t ends = v1_nth_set(~uvarint_load8(at) & V1_TOP_BITS, numbers);
    if (__builtin_expect(ends == 0, 0))
        return NULL;
    return at + (__builtin_ctzll(ends) >> 3) + 1;
}

/*
 * Returns the end of the `length` bytes at `at` (16 can be read) if they are exactly `numbers`
 * uvarints of at most 9 bytes each; else NULL: v1_record_read must decide.
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
    /* The product's top byte is the sum of the bytes. */
    uint64_t found = ((low >> 7) + (high >> 7)) * UINT64_C(0x0101010101010101) >> 56;
    return found == numbers ? at + length : NULL;
}

/*
 * Skips ordinary records from `at` on and adds their number to *count. Returns the position of the
 * first record for v1_record_read.
 */
static inline const uint8_t *v1_records_skip(const struct v1_format *format, const uint8_t *at,
                                             const uint8_t *end, uint64_t *count)
{
    uint64_t n = 0;
    /* 1.5 has one leading number more; the compiler moves the constant out of the loop. */
    const unsigned leading = format->time_fields;
    while (end - at >= V1_RECORD_REACH) {
        unsigned first = format->first[*at];
        const uint8_t *next;
        if (__builtin_expect((first & V1_FIRST_PREFIXED) != 0, 0))
            next = v1_skip_prefixed(at + 2, at[1], first & ~(unsigned)V1_FIRST_PREFIXED);
        else if (__builtin_expect(first != 0, 1))
            /* The same as `first`, but available a memory access earlier. */
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
