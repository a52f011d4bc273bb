/* v1: finds the ends of records, 64 bytes at a time. */
#include "read/v1/lex.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/varint.h"

static uint8_t class_of(unsigned first, int minor)
{
    unsigned type = first & V1_TYPE_MASK;
    if (type >= V1_TYPES || !v1_types[type].name || v1_types[type].since > minor)
        return V1_LEX_UNKNOWN;
    if (type == V1_String)
        return V1_LEX_STRING;
    if (first >> V1_COUNT_SHIFT == V1_COUNT_LENGTH)
        return type == V1_UserLog ? V1_LEX_LOG : V1_LEX_LENGTH;
    return type == V1_Batch ? V1_LEX_BATCH : V1_LEX_ORDINARY;
}

void v1_lex_init(struct v1_lex *lex, int minor)
{
    lex->minor = minor;
    lex->extra = minor < 7 ? 2 : 1;
    for (unsigned first = 0; first < 256; first++)
        lex->class[first] = class_of(first, minor);
}

/* MARK: The general case */

enum problem {
    FINE,
    CUT,
    BAD_VALUE,
    BAD_TYPE,
    WRONG_LENGTH,
    STRING_ID_0,
    STRING_EMPTY,
    STRING_TOO_LONG,
    LOG_TOO_LONG
};

struct scan {
    const uint8_t *at, *end;
    enum problem problem; /* the first one */
    uint64_t value;       /* of the number read last */
};

static void fail(struct scan *scan, enum problem problem)
{
    if (scan->problem == FINE)
        scan->problem = problem;
}

static void scan_number(struct scan *scan)
{
    if (scan->problem != FINE)
        return;
    const uint8_t *next = uvarint_get(scan->at, scan->end, &scan->value);
    if (next) {
        scan->at = next;
        return;
    }
    fail(scan, scan->end - scan->at < UVARINT_MAX_SIZE ? CUT : BAD_VALUE);
}

static void scan_bytes(struct scan *scan, uint64_t size)
{
    if (scan->problem != FINE)
        return;
    if (size > (uint64_t)(scan->end - scan->at))
        fail(scan, CUT);
    else
        scan->at += size;
}

/* A length and that many bytes, which must be complete numbers. */
static void scan_prefixed(struct scan *scan)
{
    scan_number(scan);
    scan_bytes(scan, scan->value);
    if (scan->problem == FINE && scan->value > 0 && scan->at[-1] >= 0x80)
        fail(scan, WRONG_LENGTH);
}

static void scan_string(struct scan *scan)
{
    scan_number(scan);
    if (scan->problem == FINE && scan->value == 0)
        fail(scan, STRING_ID_0);
    scan_number(scan);
    if (scan->problem == FINE && scan->value == 0)
        fail(scan, STRING_EMPTY);
    if (scan->problem == FINE && scan->value > V1_MAX_STRING)
        fail(scan, STRING_TOO_LONG);
    scan_bytes(scan, scan->value);
}

static void scan_log(struct scan *scan)
{
    scan_prefixed(scan);
    scan_number(scan);
    if (scan->problem == FINE && scan->value > V1_MAX_STRING)
        fail(scan, LOG_TOO_LONG);
    scan_bytes(scan, scan->value);
}

static struct scan scan_record(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end)
{
    struct scan scan = {.at = at + 1, .end = end};
    switch ((enum v1_lex_class)lex->class[*at]) {
    case V1_LEX_STOP:
    case V1_LEX_UNKNOWN:
        fail(&scan, BAD_TYPE);
        break;
    case V1_LEX_STRING:
        scan_string(&scan);
        break;
    case V1_LEX_LOG:
        scan_log(&scan);
        break;
    case V1_LEX_LENGTH:
        scan_prefixed(&scan);
        break;
    case V1_LEX_ORDINARY:
    case V1_LEX_BATCH:
        for (unsigned i = (unsigned)(*at >> V1_COUNT_SHIFT) + lex->extra; i > 0; i--)
            scan_number(&scan);
        break;
    }
    return scan;
}

const uint8_t *v1_lex_slow(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end)
{
    struct scan scan = scan_record(lex, at, end);
    return scan.problem == FINE ? scan.at : NULL;
}

/* MARK: Many records */

#define BLOCK        64
#define CHECKED_SIZE 9 /* a longer record may have a number of more than 64 bits */

/* Returns the top bits of eight bytes; bit 0 belongs to the first byte. */
static inline uint64_t top_bits(uint64_t word)
{
    return (word & 0x8080808080808080) * 0x0002040810204081 >> 56;
}

/* The upper two bits of 64 bytes as masks: `more` has bit 7, `low` bit 6. */
static inline void block_masks(const uint8_t *at, uint64_t *more, uint64_t *low)
{
    *more = *low = 0;
    for (unsigned i = 0; i < BLOCK; i += 8) {
        uint64_t word = uvarint_load8(at + i);
        *more |= top_bits(word) << i;
        *low |= top_bits(word << 1) << i;
    }
}

/*
 * Counts the records that begin and end in the block at `at`. Returns the bytes they take.
 *
 * `ends` has a bit for each byte from the record on without a continuation bit. A first byte of
 * code 0 or 1 is such a byte, one of code 2 is not: the last byte of a record of code 0 is
 * therefore the second bit, that of code 1 and of code 2 the third (in 1.5 files one more). The
 * position of the next record thus depends on masks in registers and on no load; this dependency
 * chain determines the speed.
 */
static inline __attribute__((always_inline)) unsigned
run_block(const struct v1_lex *lex, unsigned extra, const uint8_t *at, uint64_t *count)
{
    uint64_t more, low, records = 0;
    unsigned place = 0;
    block_masks(at, &more, &low);
    uint64_t ends = ~more, coded = more | low, here = 1;
    while (here) {
        unsigned class = lex->class[at[place]];
        if (__builtin_expect(class <= V1_LEX_BATCH, 1)) {
            uint64_t second = ends & (ends - 1);
            if (extra == 2)
                second &= second - 1;
            uint64_t third = second & (second - 1);
            uint64_t last = coded & here ? third : second;
            if (!last)
                break;
            unsigned next = (unsigned)__builtin_ctzll(last) + 1;
            if (__builtin_expect(next - place > CHECKED_SIZE, 0))
                break;
            place = next;
            here = (last & -last) << 1;
            ends = last & (last - 1);
        } else if (class == V1_LEX_LENGTH && place < BLOCK - 1) {
            unsigned next = place + 2 + at[place + 1];
            if (next >= BLOCK || more >> (next - 1) & 1)
                break;
            place = next;
            here = (uint64_t)1 << place;
            ends = ~more & -here;
        } else {
            break;
        }
        records++;
    }
    *count += records;
    return place;
}

const uint8_t *v1_lex_run(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end,
                          uint64_t *count)
{
    while (at < end) {
        if (end - at >= BLOCK) {
            unsigned size =
                lex->extra == 1 ? run_block(lex, 1, at, count) : run_block(lex, 2, at, count);
            at += size;
            if (size > 0)
                continue;
        }
        const uint8_t *next = lex->class[*at] < V1_LEX_UNKNOWN ? v1_lex_skip(lex, at, end) : NULL;
        if (!next)
            break;
        at = next;
        (*count)++;
    }
    return at;
}

/* MARK: Errors */

int v1_lex_error(const struct v1_lex *lex, const uint8_t *at, const uint8_t *end, int64_t offset,
                 trail_error *err)
{
    unsigned type = *at & V1_TYPE_MASK;
    struct scan scan = scan_record(lex, at, end);
    switch (scan.problem) {
    case FINE:
        return 0;
    case CUT:
        error_set(err, TRAIL_TRUNCATED,
                  "the trace ends inside a record of type %s at offset 0x%" PRIx64,
                  v1_types[type].name, offset);
        break;
    case BAD_VALUE:
        error_set(err, TRAIL_CORRUPT, "bad value at offset 0x%" PRIx64, offset + (scan.at - at));
        break;
    case BAD_TYPE:
        error_set(err, TRAIL_CORRUPT, "unknown event type %u at offset 0x%" PRIx64, type, offset);
        break;
    case WRONG_LENGTH:
        error_set(err, TRAIL_CORRUPT,
                  "event has wrong length at offset 0x%" PRIx64 ": its last argument exceeds it",
                  offset);
        break;
    case STRING_ID_0:
        error_set(err, TRAIL_CORRUPT, "string at offset %" PRId64 " has invalid id 0", offset);
        break;
    case STRING_EMPTY:
        error_set(err, TRAIL_CORRUPT, "string at offset %" PRId64 " has invalid length 0", offset);
        break;
    case STRING_TOO_LONG:
        error_set(err, TRAIL_CORRUPT, "string at offset %" PRId64 " has too large length %" PRIu64,
                  offset, scan.value);
        break;
    case LOG_TOO_LONG:
        error_set(err, TRAIL_CORRUPT, "string at offset %" PRId64 " is too large (len=%" PRIu64 ")",
                  offset, scan.value);
        break;
    }
    if (err)
        err->offset = offset;
    return -1;
}
