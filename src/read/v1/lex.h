/*
 * Lexing v1 records: finds the end of each without interpreting it (§1.1, §1.4). One lexer serves
 * the decoder and everything that only counts or cuts.
 *
 *     ordinary      | code:2 type:6 | uvarint x (code + 1), or x (code + 2) in 1.5 files
 *     with length   | 3:2 type:6    | uvarint L | L bytes of uvarints
 *     String        | 0x25          | uvarint id | uvarint n | n bytes
 *     UserLog       | 0xf0          | uvarint L | L bytes of uvarints | uvarint n | n bytes
 *
 * The hot path loads eight bytes, keeps the top bit of those after the first that end a uvarint,
 * and takes the position of the n-th, without a loop or a branch on data. Other cases (specials,
 * long records, the last bytes of the input) go to v1_lex_slow.
 */
#pragma once

#include <trail/error.h>

#include "base/varint.h"
#include "wire/wire.h"

enum v1_lex_class {
    V1_LEX_ORDINARY,
    V1_LEX_BATCH, /* ordinary too; separate because users stop there */
    V1_LEX_LENGTH,
    V1_LEX_STRING,
    V1_LEX_LOG,
    V1_LEX_UNKNOWN, /* no such type in this version */
    V1_LEX_STOP     /* set by users of v1_lex_run, which ends before such a record */
};

/* The classes of first bytes in files of one version. */
struct v1_lex {
    int minor;
    unsigned extra; /* uvarints of an ordinary record in addition to its code: 1, in 1.5 files 2 */
    uint8_t class[256];
};

void v1_lex_init(struct v1_lex *lex, int minor);

/*
 * Returns the end of the record at `at` (which is before `end`), or NULL if it is damaged or
 * incomplete (see v1_lex_error). Arguments inside a length prefix are not checked except for the
 * last byte.
 */
const uint8_t *v1_lex_slow(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end);

/*
 * Skips records up to the first that is a V1_LEX_STOP, damaged or incomplete, or to the end.
 * Returns its position and adds the number of records to *count. About 3.7 ns per record of 3
 * bytes.
 */
const uint8_t *v1_lex_run(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end,
                          uint64_t *count);

/*
 * Sets *err to the reason why v1_lex_skip(lex, at, end) is NULL; `offset` is that of `at` in the
 * file. Returns -1.
 */
int v1_lex_error(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end, int64_t offset,
                 trail_error *err);

/* Same result as v1_lex_slow. */
static inline const uint8_t *v1_lex_skip(const struct v1_lex *lex, const uint8_t *at,
                                         const uint8_t *end)
{
    if (__builtin_expect(end - at >= 8 && lex->class[*at] <= V1_LEX_BATCH, 1)) {
        uint64_t word = uvarint_load8(at);
        unsigned more = (unsigned)(word >> V1_COUNT_SHIFT & 3) + lex->extra - 1; /* 0 to 3 */
        uint64_t ends = ~word & 0x8080808080808000;
        uint64_t second = ends & (ends - 1), third = second & (second - 1);
        uint64_t fourth = third & (third - 1);
        uint64_t low = more & 1 ? second : ends, high = more & 1 ? fourth : third;
        uint64_t last = more & 2 ? high : low;
        if (__builtin_expect(last != 0, 1))
            return at + (__builtin_ctzll(last) >> 3) + 1;
    }
    return v1_lex_slow(lex, at, end);
}
