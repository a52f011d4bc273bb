/* Walking batches: their contents and positions, and that every byte of a trace is in one. */
#include <stdlib.h>

#include "bytes.h"
#include "read/v1/lex.h"
#include <trail/read.h>

#include "../lib/unit.h"

static struct bytes trace;

/* Delivers the trace like a pipe, a few bytes at a time, so that it is not walked in place. */
static ssize_t trickle(void *context, void *buf, size_t size)
{
    size_t *given = context;
    size_t n = trace.size - *given;
    n = n > 1000 ? 1000 : n;
    n = n > size ? size : n;
    memcpy(buf, trace.data + *given, n);
    *given += n;
    return (ssize_t)n;
}

static size_t given;

static trail_source *open_trace(bool in_place)
{
    trail_error err;
    given = 0;
    trail_source *source = in_place ? trail_source_open_memory(trace.data, trace.size, &err)
                                    : trail_source_open_callback(trickle, &given, &err);
    assert_non_null(source);
    return source;
}

struct want {
    trail_batch_kind kind;
    uint8_t experiment;
    uint64_t generation;
    int64_t thread, proc;
    uint64_t time, header_size, size, records;
};

static void expect_batch(trail_walk *walk, const struct want *want, int64_t *offset)
{
    trail_batch batch;
    assert_int_equal(trail_walk_next(walk, &batch), 1);
    assert_string_equal(trail_batch_kind_name(batch.kind), trail_batch_kind_name(want->kind));
    assert_int_equal(batch.generation, want->generation);
    assert_int_equal(batch.thread, want->thread);
    assert_int_equal(batch.proc, want->proc);
    assert_int_equal(batch.time_ticks, want->time);
    assert_int_equal(batch.offset, *offset);
    assert_int_equal(batch.header_size, want->header_size);
    assert_int_equal(batch.size, want->size);
    assert_int_equal(batch.records, want->records);
    assert_int_equal(batch.experiment, want->experiment);
    const uint8_t *data = trail_walk_data(walk);
    assert_non_null(data);
    *offset += (int64_t)want->header_size;
    assert_memory_equal(data, trace.data + *offset, want->size);
    *offset += (int64_t)want->size;
}

/* Walks the trace in place and through a window; both must yield exactly these batches. */
static void expect_batches(int version, const struct want *want, size_t count)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        trail_error err;
        trail_batch batch;
        int64_t offset = 16;
        trail_source *source = open_trace(in_place);
        trail_walk *walk = trail_walk_open(source, &err);
        assert_non_null(walk);
        assert_int_equal(trail_walk_version(walk), version);
        for (size_t i = 0; i < count; i++)
            expect_batch(walk, &want[i], &offset);
        assert_int_equal(trail_walk_next(walk, &batch), 0);
        assert_int_equal(offset, trace.size);
        trail_walk_close(walk);
        trail_source_close(source);
    }
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

TEST(test_v2_kinds)
{
    bytes_header(&trace, 26);
    bytes_batch(&trace, 1, UINT64_MAX, 100, 3);
    bytes_put(&trace, "\x32\x08\x05", 3); /* Sync, then Frequency 5 */
    bytes_batch(&trace, 1, 7, 101, 2);
    bytes_put(&trace, "\x0b\x01", 2); /* ProcStop dt=1 */
    bytes_batch(&trace, 1, 7, 102, 0);
    bytes_batch(&trace, 1, UINT64_MAX, 103, 1);
    bytes_put(&trace, "\x06", 1);
    bytes_batch(&trace, 1, UINT64_MAX, 104, 1);
    bytes_put(&trace, "\x02", 1);
    bytes_put(&trace, "\x31\x01\x01\x07\x69\x03xyz",
              9); /* ExperimentalBatch 1 gen 1 m 7 time 105 */
    bytes_batch(&trace, 1, UINT64_MAX, 106, 1);
    bytes_put(&trace, "\x04", 1);
    bytes_put(&trace, "\x34", 1);
    const struct want want[] = {
        {TRAIL_BATCH_SYNC, 0, 1, -1, -1, 100, 23, 3, 0},
        {TRAIL_BATCH_EVENTS, 0, 1, 7, -1, 101, 14, 2, 0},
        {TRAIL_BATCH_EVENTS, 0, 1, 7, -1, 102, 14, 0, 0},
        {TRAIL_BATCH_CPU_SAMPLES, 0, 1, -1, -1, 103, 23, 1, 0},
        {TRAIL_BATCH_STACKS, 0, 1, -1, -1, 104, 23, 1, 0},
        {TRAIL_BATCH_EXPERIMENT, 1, 1, 7, -1, 105, 6, 3, 0},
        {TRAIL_BATCH_STRINGS, 0, 1, -1, -1, 106, 23, 1, 0},
        {TRAIL_BATCH_END_GENERATION, 0, 0, -1, -1, 0, 1, 0, 0},
    };
    expect_batches(26, want, COUNT(want));
}

/* Batches of maximum size, which take several fillings of any window. */
TEST(test_v2_large_batches)
{
    static uint8_t data[65536];
    struct want want[3];
    bytes_header(&trace, 22);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t size = i == 1 ? 65535 : 60000;
        memset(data, (int)(0x0b + i), sizeof data);
        bytes_batch(&trace, 300, i, 1, size);
        bytes_put(&trace, data, size);
        want[i] = (struct want){TRAIL_BATCH_EVENTS, 0, 300, i, -1, 1, 15, size, 0};
    }
    expect_batches(22, want, 3);
}

TEST(test_v1_footer_is_outside)
{
    bytes_header(&trace, 10);
    bytes_put(&trace, "\x41\x05\x90\x03", 4); /* Batch p=5 ticks=400 */
    bytes_put(&trace, "\x45\x01\x02", 3);     /* ProcStart dt=1 thread=2 */
    bytes_put(&trace, "\x25\x01\x02hi", 5);   /* String 1 "hi" */
    bytes_put(&trace, "\x06\x03", 2);         /* ProcStop dt=3 */
    bytes_byte(&trace, 0x41);                 /* Batch, no P */
    bytes_number(&trace, UINT64_MAX);
    bytes_put(&trace, "\x07", 1);
    bytes_put(&trace, "\x02\x64", 2);                         /* Frequency 100 */
    bytes_put(&trace, "\xc3\x06\x01\x01\x09\x01\x01\x05", 8); /* Stack */
    const struct want want[] = {
        {TRAIL_BATCH_EVENTS, 0, 0, -1, 5, 400, 4, 10, 3},
        {TRAIL_BATCH_EVENTS, 0, 0, -1, -1, 7, 12, 0, 0},
        {TRAIL_BATCH_EVENTS, 0, 0, -1, -1, 0, 0, 10, 2},
    };
    expect_batches(10, want, COUNT(want));
}

TEST(test_v1_1_21_frequency_is_inside)
{
    bytes_header(&trace, 21);
    bytes_put(&trace, "\x41\x00\x07\x02\x64", 5);
    bytes_put(&trace, "\xf0\x04\x01\x00\x01\x00\x02hi",
              9); /* UserLog, message outside its length */
    const struct want want[] = {{TRAIL_BATCH_EVENTS, 0, 0, -1, 0, 7, 3, 11, 2}};
    expect_batches(21, want, COUNT(want));
}

TEST(test_v1_1_5_has_sequence_numbers)
{
    bytes_header(&trace, 5);
    bytes_put(&trace, "\x41\x03\x64\x08", 4);             /* Batch p=3 seq=100 ticks=8 */
    bytes_put(&trace, "\x06\x01\x02", 3);                 /* ProcStop dseq=1 dt=2 */
    bytes_put(&trace, "\x45\x01\x02\x03", 4);             /* ProcStart ... thread=3 */
    bytes_put(&trace, "\xcd\x05\x01\x02\x03\x04\x05", 7); /* GoCreate, with a length */
    bytes_put(&trace, "\x02\x64\x00", 3);                 /* Frequency 100, unused */
    const struct want want[] = {
        {TRAIL_BATCH_EVENTS, 0, 0, -1, 3, 8, 4, 14, 3},
        {TRAIL_BATCH_EVENTS, 0, 0, -1, -1, 0, 0, 3, 1},
    };
    expect_batches(5, want, COUNT(want));
}

/* A complete batch is delivered before its writer writes more, which this one never does. */
static ssize_t give_once(void *context, void *buf, size_t size)
{
    size_t *pieces = context;
    if ((*pieces)++ > 0)
        return -1;
    assert_true(size >= trace.size);
    memcpy(buf, trace.data, trace.size);
    return (ssize_t)trace.size;
}

TEST(test_batches_come_as_they_arrive)
{
    trail_error err;
    trail_batch batch;
    size_t pieces = 0;
    bytes_header(&trace, 26);
    bytes_put(&trace, "\x01\x01\x07\x01\x02\x0b\x01\x34", 8);
    trail_source *source = trail_source_open_callback(give_once, &pieces, &err);
    trail_walk *walk = trail_walk_open(source, &err);
    assert_non_null(walk);
    assert_int_equal(trail_walk_next(walk, &batch), 1);
    assert_int_equal(batch.size, 2);
    assert_int_equal(trail_walk_next(walk, &batch), 1);
    assert_int_equal(batch.kind, TRAIL_BATCH_END_GENERATION);
    assert_int_equal(trail_walk_next(walk, &batch), -1);
    assert_int_equal(trail_walk_error(walk)->code, TRAIL_IO);
    trail_walk_close(walk);
    trail_source_close(source);
}

/* MARK: Errors */

struct bad {
    int version;
    trail_code code;
    const char *data; /* after the header */
    size_t size;
    int64_t offset;
    int batches; /* before the error */
    const char *message;
};

static void expect_error(const struct bad *bad, bool in_place)
{
    trail_error err;
    trail_batch batch;
    bytes_header(&trace, bad->version);
    bytes_put(&trace, bad->data, bad->size);
    trail_source *source = open_trace(in_place);
    trail_walk *walk = trail_walk_open(source, &err);
    assert_non_null(walk);
    for (int i = 0; i < bad->batches; i++)
        assert_int_equal(trail_walk_next(walk, &batch), 1);
    for (int i = 0; i < 2; i++) { /* and it stays */
        assert_int_equal(trail_walk_next(walk, &batch), -1);
        assert_string_equal(trail_walk_error(walk)->message, bad->message);
        assert_int_equal(trail_walk_error(walk)->code, bad->code);
        assert_int_equal(trail_walk_error(walk)->offset, bad->offset);
        assert_null(trail_walk_data(walk));
    }
    trail_walk_close(walk);
    trail_source_close(source);
}

TEST(test_errors)
{
    static const struct bad bads[] = {
        {22, TRAIL_CORRUPT, "\x01\x01\x01\x01\x00\x34", 6, 21, 1, "invalid generation number 0"},
        {22, TRAIL_CORRUPT, "\x30\x01\x01\x01\x01\x00", 6, 16, 0,
         "expected batch event, got event 48"},
        {23, TRAIL_TRUNCATED, "\x31", 1, 16, 0,
         "error reading batch experiment: unexpected end of the trace"},
        {26, TRAIL_TRUNCATED, "\x01", 1, 16, 0,
         "error reading batch gen: unexpected end of the trace"},
        {26, TRAIL_TRUNCATED, "\x01\x01\x80", 3, 16, 0,
         "error reading batch M ID: unexpected end of the trace"},
        {26, TRAIL_CORRUPT, "\x01\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 13, 16, 0,
         "error reading batch timestamp: number overflows 64 bits"},
        {26, TRAIL_TRUNCATED, "\x01\x01\x01\x01", 4, 16, 0,
         "error reading batch size: unexpected end of the trace"},
        {26, TRAIL_CORRUPT, "\x01\x01\x01\x01\x81\x80\x04", 7, 16, 0,
         "invalid batch size 65537, maximum is 65536"},
        {26, TRAIL_TRUNCATED, "\x01\x01\x01\x01\x05\x0b\x01", 7, 16, 0,
         "failed to read full batch: read 2 but wanted 5"},
        {21, TRAIL_CORRUPT, "\x41\x00\x07\x00", 4, 19, 0, "unknown event type 0 at offset 0x13"},
        {10, TRAIL_CORRUPT, "\x41\x00\x07\x2d\x01", 5, 19, 0,
         "unknown event type 45 at offset 0x13"},
        {21, TRAIL_TRUNCATED, "\x41\x00\x07\x06", 4, 19, 0,
         "the trace ends inside a record of type ProcStop at offset 0x13"},
        {21, TRAIL_CORRUPT, "\x41\x00\x07\x06\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 15, 19,
         0, "bad value at offset 0x14"},
        {21, TRAIL_CORRUPT, "\x01\x00", 2, 16, 0,
         "EvBatch has wrong number of arguments: got 1, want 2"},
        {21, TRAIL_CORRUPT, "\x41\x80\x80\x80\x80\x08\x01", 7, 16, 0,
         "processor ID 2147483648 is larger than maximum of 2147483647"},
        {21, TRAIL_CORRUPT, "\x41\x00\x07\x25\x00\x01z", 7, 19, 0,
         "string at offset 19 has invalid id 0"},
        {21, TRAIL_CORRUPT, "\x41\x00\x07\x25\x01\x00", 6, 19, 0,
         "string at offset 19 has invalid length 0"},
        {21, TRAIL_CORRUPT, "\x41\x00\x07\x25\x01\xc1\x84\x3d", 8, 19, 0,
         "string at offset 19 has too large length 1000001"},
        {21, TRAIL_CORRUPT, "\x41\x00\x07\xc3\x02\x01\x81", 7, 19, 0,
         "event has wrong length at offset 0x13: its last argument exceeds it"},
    };
    for (size_t i = 0; i < COUNT(bads); i++)
        for (int in_place = 0; in_place < 2; in_place++)
            expect_error(&bads[i], in_place);
}

TEST(test_no_trace)
{
    trail_error err;
    bytes_header(&trace, 22);
    trace.data[0] = 'G';
    trail_source *source = open_trace(true);
    assert_null(trail_walk_open(source, &err));
    assert_int_equal(err.code, TRAIL_NOT_A_TRACE);
    trail_source_close(source);
}

/* MARK: The lexer */

/* Computes the size of a record from its description (§1.1), byte by byte; 0 if it is truncated or
 * malformed. */
static size_t plain_number(const uint8_t *at, size_t size, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < size && i < 10; i++) {
        if (i == 9 && at[i] > 1)
            return 0;
        *value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80)
            return i + 1;
    }
    return 0;
}

static size_t plain_counted(const uint8_t *at, size_t size, uint64_t limit, bool numbers)
{
    uint64_t length;
    size_t n = plain_number(at, size, &length);
    if (n == 0 || length > limit || length > size - n)
        return 0;
    return numbers && length > 0 && at[n + length - 1] >= 0x80 ? 0 : n + length;
}

static size_t plain_record(const uint8_t *at, size_t size, unsigned extra)
{
    unsigned type = at[0] & 0x3f, code = at[0] >> 6;
    size_t n = 1, more;
    uint64_t value;
    if (type == 0 || type > 49 || (extra == 2 && type > 36))
        return 0;
    if (type == 37) {
        more = plain_number(at + n, size - n, &value);
        if (more == 0 || value == 0)
            return 0;
        n += more;
        if (plain_number(at + n, size - n, &value) == 0 || value == 0)
            return 0;
        more = plain_counted(at + n, size - n, 1000000, false);
        return more ? n + more : 0;
    }
    if (code == 3) {
        more = plain_counted(at + n, size - n, UINT64_MAX, true);
        if (more == 0 || type != 48)
            return more ? n + more : 0;
        n += more;
        more = plain_counted(at + n, size - n, 1000000, false);
        return more ? n + more : 0;
    }
    for (unsigned i = 0; i < code + extra; i++) {
        more = plain_number(at + n, size - n, &value);
        if (more == 0)
            return 0;
        n += more;
    }
    return n;
}

static uint32_t random_state = 12345;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % limit;
}

/* Fills in bytes that are mostly records, with numbers of all sizes, and sometimes random. */
static void random_records(uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint32_t kind = random_below(16);
        data[i] = (uint8_t)(kind < 9    ? 1 + random_below(36) + (random_below(3) << 6)
                            : kind < 12 ? random_below(16)
                            : kind < 15 ? 0x80 + random_below(128)
                                        : random_below(256));
    }
}

TEST(test_lexer_agrees_with_the_description)
{
    enum { SIZE = 600, TRIES = 3000 };
    size_t longest = 0;
    for (int minor = 5; minor <= 21; minor += 16) {
        struct v1_lex lex;
        v1_lex_init(&lex, minor);
        for (int try = 0; try < TRIES; try++) {
            uint8_t *data =
                malloc(SIZE); /* a separate block, so that tools detect reads past its end */
            random_records(data, SIZE);
            size_t at = 0, step, count = 0;
            while (at < SIZE && (step = plain_record(data + at, SIZE - at, minor == 5 ? 2 : 1))) {
                assert_ptr_equal(v1_lex_skip(&lex, data + at, data + SIZE), data + at + step);
                assert_int_equal(v1_lex_error(&lex, data + at, data + SIZE, 0, NULL), 0);
                at += step;
                count++;
            }
            uint64_t counted = 0;
            assert_ptr_equal(v1_lex_run(&lex, data, data + SIZE, &counted), data + at);
            assert_int_equal(counted, count);
            if (at < SIZE) {
                assert_null(v1_lex_skip(&lex, data + at, data + SIZE));
                assert_int_equal(v1_lex_error(&lex, data + at, data + SIZE, 0, NULL), -1);
            }
            longest = at > longest ? at : longest;
            free(data);
        }
    }
    assert_int_equal(longest, SIZE); /* some inputs consisted of records only */
}
