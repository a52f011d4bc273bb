#include "read/v1_lex.h"

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

/* MARK: The careful way */

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
    const uint8_t *byte = scan->at;
    while (byte < scan->end && byte < scan->at + UVARINT_MAX_SIZE && *byte >= 0x80)
        byte++;
    fail(scan, byte == scan->end ? CUT : BAD_VALUE);
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

/* A length and so many bytes, which must be whole numbers. */
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
