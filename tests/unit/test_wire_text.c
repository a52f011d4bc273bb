/*
 * The text form of records: texts with the bytes that they stand for, in both directions, and
 * errors in texts and bytes.
 */
#include <errno.h>
#include <stdlib.h>

#include "bytes.h"
#include <trail/export.h>

#include "../lib/unit.h"

#define NO_THREAD "18446744073709551615"
#define TEN_FF    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"

/* MARK: Sinks and sources */

static struct bytes written;

static bool keep(void *context, const void *data, size_t size)
{
    (void)context;
    assert_true(written.size + size <= sizeof written.data);
    bytes_put(&written, data, size);
    return true;
}

static bool refuse(void *context, const void *data, size_t size)
{
    (void)data;
    (void)size;
    ++*(int *)context;
    errno = ENOSPC;
    return false;
}

static const trail_sink sink = {.write = keep};

static struct {
    const char *data;
    size_t size, given;
} input;

static ssize_t one_byte(void *context, void *buf, size_t size)
{
    (void)context;
    if (size == 0 || input.given == input.size)
        return 0;
    *(char *)buf = input.data[input.given++];
    return 1;
}

static trail_source *open_input(const void *data, size_t size, bool in_place)
{
    trail_error err;
    input.data = data;
    input.size = size;
    input.given = 0;
    trail_source *source = in_place ? trail_source_open_memory(data, size, &err)
                                    : trail_source_open_callback(one_byte, NULL, &err);
    assert_non_null(source);
    return source;
}

static int print(const void *data, size_t size, bool in_place, trail_error *err)
{
    trail_source *source = open_input(data, size, in_place);
    written.size = 0;
    int result = trail_print_wire(source, &sink, err);
    trail_source_close(source);
    return result;
}

static int assemble(const char *text, int version, trail_error *err)
{
    trail_source *source = open_input(text, strlen(text), true);
    written.size = 0;
    int result = trail_assemble(source, version, &sink, err);
    trail_source_close(source);
    return result;
}

static void expect_written(const void *want, size_t size)
{
    assert_int_equal(written.size, size);
    assert_memory_equal(written.data, want, size);
}

/* MARK: Texts and bytes */

struct pair {
    int version;
    const char *text; /* without the first line */
    const char *data; /* after the header */
    size_t size;
};

#define PAIR(version, text, data)                                                                  \
    {                                                                                              \
        version, text, data, sizeof(data) - 1                                                      \
    }

static const struct pair pairs[] = {
    PAIR(22, "EventBatch gen=1 m=" NO_THREAD " time=300 size=3\nFrequency freq=1000\n",
         "\x01\x01" TEN_FF "\xac\x02\x03"
         "\x08\xe8\x07"),
    PAIR(22, "EventBatch gen=1 m=2 time=3 size=0\n", "\x01\x01\x02\x03\x00"),
    PAIR(22,
         "EventBatch gen=1 m=2 time=3 size=10\n"
         "Strings\n"
         "String id=1\n"
         "\tdata=\"a\\n\\x00\\\"\xc3\xa9\"\n",
         "\x01\x01\x02\x03\x0a\x04\x05\x01\x06"
         "a\n\0\"\xc3\xa9"),
    PAIR(22,
         "EventBatch gen=1 m=2 time=3 size=4\n"
         "Strings\n"
         "String id=1\n",
         "\x01\x01\x02\x03\x04\x04\x05\x01\x00"),
    PAIR(22,
         "EventBatch gen=1 m=2 time=3 size=13\n"
         "Stacks\n"
         "Stack id=7 nframes=2\n"
         "\tpc=128 func=1 file=2 line=3\n"
         "\tpc=4 func=5 file=6 line=7\n",
         "\x01\x01\x02\x03\x0d\x02\x03\x07\x02\x80\x01\x01\x02\x03\x04\x05\x06\x07"),
    PAIR(22,
         "EventBatch gen=1 m=2 time=3 size=4\n"
         "Stacks\n"
         "Stack id=7 nframes=0\n",
         "\x01\x01\x02\x03\x04\x02\x03\x07\x00"),
    PAIR(22,
         "EventBatch gen=1 m=2 time=3 size=7\n"
         "CPUSamples\n"
         "CPUSample time=1 m=2 p=3 g=4 stack=5\n",
         "\x01\x01\x02\x03\x07\x06\x07\x01\x02\x03\x04\x05"),
    /* An experiment and its events, at which Go's printer stops. */
    PAIR(23,
         "EventBatch gen=1 m=2 time=3 size=5\n"
         "SpanAlloc dt=1 id=2 npages_value=3 kindclass=4\n"
         "ExperimentalBatch exp=1 gen=1 m=2 time=3\n"
         "\tdata=\"\\x01xyz\"\n",
         "\x01\x01\x02\x03\x05\x81\x01\x02\x03\x04"
         "\x31\x01\x01\x02\x03\x04\x01xyz"),
    PAIR(26,
         "EventBatch gen=1 m=2 time=3 size=3\n"
         "ProcStop dt=200\n"
         "EndOfGeneration\n",
         "\x01\x01\x02\x03\x03\x0b\xc8\x01\x34"),
    PAIR(25,
         "EventBatch gen=1 m=2 time=3 size=8\n"
         "Sync\n"
         "Frequency freq=1\n"
         "ClockSnapshot dt=1 mono=2 sec=3 nsec=4\n",
         "\x01\x01\x02\x03\x08\x32\x08\x01\x33\x01\x02\x03\x04"),
    /* Before 1.22. */
    PAIR(5,
         "Batch p=1 seq=2 ticks=3\n"
         "ProcStop dseq=1 dt=2\n"
         "GoStart dseq=1 dt=2 g=3\n"
         "GoCreate dseq=1 dt=2 g=3 pc=4 stk=5\n"
         "Stack id=9 siz=2\n"
         "\tpc=8\n"
         "\tpc=7\n"
         "Frequency freq=6 unused=0\n",
         "\x41\x01\x02\x03\x06\x01\x02\x4e\x01\x02\x03"
         "\xcd\x05\x01\x02\x03\x04\x05\xc3\x04\x09\x02\x08\x07\x02\x06\x00"),
    PAIR(7,
         "Batch p=0 ticks=9\n"
         "GCStart dt=1 seq=2 stk=3\n"
         "GCSweepDone dt=1\n"
         "STWStart dt=1\n",
         "\x41\x00\x09\x87\x01\x02\x03\x0c\x01\x09\x01"),
    PAIR(10,
         "Batch p=0 ticks=9\n"
         "STWStart dt=1 kindid=0\n"
         "TimerGoroutine g=4\n",
         "\x41\x00\x09\x49\x01\x00\x23\x04"),
    PAIR(21,
         "Batch p=" NO_THREAD " ticks=9\n"
         "GoUnblock dt=1 g=2 seq=3 stk=4\n"
         "UserLog dt=1 id=2 keyid=3 stk=4\n"
         "\tdata=\"hi\"\n"
         "UserLog dt=1 id=2 keyid=3 stk=4\n"
         "String id=5\n"
         "\tdata=\"x\"\n"
         "Stack id=1 siz=1\n"
         "\tpc=1 func=2 file=3 line=4\n",
         "\x41" TEN_FF "\x09\xd5\x04\x01\x02\x03\x04"
         "\xf0\x04\x01\x02\x03\x04\x02hi\xf0\x04\x01\x02\x03\x04\x00"
         "\x25\x05\x01x\xc3\x06\x01\x01\x01\x02\x03\x04"),
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct bytes trace;

static void make_trace(const struct pair *pair)
{
    bytes_header(&trace, pair->version);
    bytes_put(&trace, pair->data, pair->size);
}

TEST(test_bytes_to_text)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        char first[30] = "", want[1100];
        trail_error err;
        if (pairs[i].version < 22) /* Go's printer has no such line for other versions */
            (void)snprintf(first, sizeof first, "Trace Go1.%d\n", pairs[i].version);
        (void)snprintf(want, sizeof want, "%s%s", first, pairs[i].text);
        make_trace(&pairs[i]);
        for (int in_place = 0; in_place < 2; in_place++) {
            assert_int_equal(print(trace.data, trace.size, in_place, &err), 0);
            expect_written(want, strlen(want));
        }
    }
}

TEST(test_text_to_bytes)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        char text[1100];
        trail_error err;
        make_trace(&pairs[i]);
        assert_int_equal(assemble(pairs[i].text, pairs[i].version, &err), 0);
        expect_written(trace.data, trace.size);
        (void)snprintf(text, sizeof text, "Trace Go1.%d\n%s", pairs[i].version, pairs[i].text);
        assert_int_equal(assemble(text, 0, &err), 0);
        expect_written(trace.data, trace.size);
    }
}

TEST(test_padded_numbers_are_read)
{
    trail_error err;
    bytes_header(&trace, 21);
    bytes_byte(&trace, 0xc3);
    bytes_padded(&trace, 6);
    bytes_put(&trace, "\x01\x01\x01\x02\x03\x04", 6);
    const char *want = "Trace Go1.21\n"
                       "Stack id=1 siz=1\n"
                       "\tpc=1 func=2 file=3 line=4\n";
    assert_int_equal(print(trace.data, trace.size, true, &err), 0);
    expect_written(want, strlen(want));
}

/* MARK: What texts may look like */

TEST(test_comments_and_blanks)
{
    trail_error err;
    const char *text = "# a trace\r\n"
                       "\r\n"
                       "  Trace\tGo1.22 # of that version\r\n"
                       "EventBatch  gen=1 m=2\ttime=3 size=1#\n"
                       "\n"
                       " \n"
                       "# and\n"
                       " Strings \n";
    assert_int_equal(assemble(text, 0, &err), 0);
    bytes_header(&trace, 22);
    bytes_put(&trace, "\x01\x01\x02\x03\x01\x04", 6);
    expect_written(trace.data, trace.size);
}

TEST(test_archive)
{
    trail_error err;
    const char *text = "-- expect --\n"
                       "SUCCESS\n"
                       "-- trace --\n"
                       "Trace Go1.22\n"
                       "EventBatch gen=1 m=2 time=3 size=0\n"
                       "-- other --\n"
                       "nothing\n";
    assert_int_equal(assemble(text, 0, &err), 0);
    bytes_header(&trace, 22);
    bytes_put(&trace, "\x01\x01\x02\x03\x00", 5);
    expect_written(trace.data, trace.size);
}

static void expect_size(const char *batch, unsigned want, const char *records, size_t size)
{
    char text[300];
    trail_error err;
    (void)snprintf(text, sizeof text, "EventBatch gen=1 m=2 time=3 size=%s", batch);
    assert_int_equal(assemble(text, 22, &err), 0);
    bytes_header(&trace, 22);
    bytes_put(&trace, "\x01\x01\x02\x03", 4);
    bytes_byte(&trace, want);
    bytes_put(&trace, records, size);
    expect_written(trace.data, trace.size);
}

TEST(test_sizes)
{
    expect_size("2\nProcStop dt=1\n", 2, "\x0b\x01", 2);
    expect_size("9\nProcStop dt=1\n", 2, "\x0b\x01", 2);
    expect_size("auto\nProcStop dt=1\n", 2, "\x0b\x01", 2);
    expect_size("auto\n", 0, "", 0);
    expect_size("50\n", 50, "", 0); /* a damaged batch */
    expect_size("50\n"
                "EventBatch gen=1 m=2 time=3 size=auto\n"
                "ProcStop dt=1\n",
                50, "\x01\x01\x02\x03\x02\x0b\x01", 7);
}

TEST(test_raw_quotes_and_escapes)
{
    expect_size("auto\n"
                "String id=1\n"
                " data = `a\\n#b`\n",
                8,
                "\x05\x01\x05"
                "a\\n#b",
                8);
    expect_size("auto\n"
                "String id=1\n"
                "data=\"\\u00e9\\U0001F600\\101#\"\n",
                11,
                "\x05\x01\x08\xc3\xa9\xf0\x9f\x98\x80"
                "A#",
                11);
}

/* MARK: Errors */

static void expect_text_error(const char *text, int version, trail_code code, const char *message)
{
    trail_error err;
    assert_int_equal(assemble(text, version, &err), -1);
    assert_string_equal(err.message, message);
    assert_int_equal(err.code, code);
    assert_int_equal(assemble(text, version, NULL), -1);
}

TEST(test_text_errors)
{
    expect_text_error("", 0, TRAIL_CORRUPT,
                      "failed to parse header: no line \"Trace Go1.NN\", and no version "
                      "given");
    expect_text_error("Trace Go2.1\n", 0, TRAIL_CORRUPT,
                      "line 1: failed to parse header Go version");
    expect_text_error("Trace Go1.x\n", 0, TRAIL_CORRUPT,
                      "line 1: failed to parse header Go version");
    expect_text_error("Trace Go1.24\n", 0, TRAIL_UNSUPPORTED,
                      "line 1: unknown or unsupported Go version 1.24");
    expect_text_error("\nTrace Go1.22\n", 23, TRAIL_USAGE,
                      "line 2: the text is of format 1.22, not 1.23");
    expect_text_error("Sync\n", 24, TRAIL_USAGE, "there is no trace format 1.24");
    expect_text_error("Sync\n", -22, TRAIL_USAGE, "there is no trace format 1.-22");
    expect_text_error("Sync\n", 23, TRAIL_CORRUPT, "line 1: unidentified event: Sync");
    expect_text_error("\nSpan dt=1\n", 22, TRAIL_CORRUPT, "line 2: unidentified event: Span");
    expect_text_error("GoStart dt=1 g=2\n", 22, TRAIL_CORRUPT,
                      "line 1: no argument: \"g_seq\" is missing");
    expect_text_error("GoStart dt=1 m=2\n", 22, TRAIL_CORRUPT,
                      "line 1: expected argument \"g\", but got \"m\"");
    expect_text_error("ProcStop 1\n", 22, TRAIL_CORRUPT, "line 1: malformed argument: \"1\"");
    expect_text_error("ProcStop dt=-1\n", 22, TRAIL_CORRUPT,
                      "line 1: failed to parse argument value \"-1\" for arg \"dt\"");
    expect_text_error("ProcStop dt=18446744073709551616\n", 22, TRAIL_CORRUPT,
                      "line 1: failed to parse argument value \"18446744073709551616\" for arg "
                      "\"dt\"");
    expect_text_error("ProcStop dt=auto\n", 22, TRAIL_CORRUPT,
                      "line 1: failed to parse argument value \"auto\" for arg \"dt\"");
    expect_text_error("ProcStop dt=1 g=1\n", 22, TRAIL_CORRUPT,
                      "line 1: encountered unexpected non-space at the end of an event: \"g=1\"");
    expect_text_error("String id=1\n\tdata:\"x\"\n", 22, TRAIL_CORRUPT,
                      "line 2: malformed data: \"data:\"x\"\"");
    expect_text_error("String id=1\n\tdata=\"x\n", 22, TRAIL_CORRUPT,
                      "line 2: failed to parse data: \"data=\"x\"");
    expect_text_error("Stack id=1 nframes=2\npc=1 func=1 file=1 line=1\n", 22, TRAIL_CORRUPT,
                      "line 2: unexpected EOF while reading a stack");
    expect_text_error("Stack id=1 nframes=1\npc=1 func=1 line=1\n", 22, TRAIL_CORRUPT,
                      "line 2: expected argument \"file\", but got \"line\"");
    expect_text_error("data=\"x\"\n", 22, TRAIL_CORRUPT, "line 1: unidentified event: data=\"x\"");
}

struct bad {
    int version;
    trail_code code;
    const char *data;
    size_t size;
    int64_t offset;
    const char *text, *message;
};

TEST(test_byte_errors)
{
    static const struct bad bads[] = {
        {22, TRAIL_CORRUPT, "\x0b\x01\x30", 3, 18, "ProcStop dt=1\n", "invalid event type: 48"},
        {22, TRAIL_CORRUPT, "\x81", 1, 16, "", "invalid event type: 129"},
        {26, TRAIL_CORRUPT, "\x7f", 1, 16, "", "invalid event type: 127"},
        {26, TRAIL_CORRUPT, "\x00", 1, 16, "", "invalid event type: 0"},
        {26, TRAIL_CORRUPT, "\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, 16, "",
         "binary: varint overflows a 64-bit integer"},
        {26, TRAIL_TRUNCATED, "\x0b", 1, 16, "",
         "the trace ends inside a record of type ProcStop at offset 0x10"},
        {26, TRAIL_TRUNCATED, "\x03\x01" TEN_FF "\x01", 13, 16, "",
         "the trace ends inside a record of type Stack at offset 0x10"},
        {26, TRAIL_TRUNCATED, "\x05\x01\x05xyz", 6, 16, "",
         "the trace ends inside a record of type String at offset 0x10"},
        {21, TRAIL_CORRUPT, "\x46\x01\x01", 3, 16, "Trace Go1.21\n",
         "ProcStop has wrong number of arguments at offset 0x10: want 1, got 2"},
        {21, TRAIL_CORRUPT, "\xc3\x03\x01\x02\x09", 5, 16, "Trace Go1.21\n",
         "Stack has wrong number of arguments at offset 0x10: want 10, got 3"},
        {21, TRAIL_TRUNCATED, "\x41\x00\x01\x06", 4, 19, "Trace Go1.21\nBatch p=0 ticks=1\n",
         "the trace ends inside a record of type ProcStop at offset 0x13"},
        {5, TRAIL_CORRUPT, "\x25\x01\x01x", 4, 16, "Trace Go1.5\n",
         "unknown event type 37 at offset 0x10"},
    };
    for (size_t i = 0; i < COUNT(bads); i++) {
        const struct bad *bad = &bads[i];
        bytes_header(&trace, bad->version);
        bytes_put(&trace, bad->data, bad->size);
        for (int in_place = 0; in_place < 2; in_place++) {
            trail_error err;
            assert_int_equal(print(trace.data, trace.size, in_place, &err), -1);
            assert_string_equal(err.message, bad->message);
            assert_int_equal(err.code, bad->code);
            assert_int_equal(err.offset, bad->offset);
            expect_written(bad->text, strlen(bad->text));
        }
    }
}

TEST(test_sink_that_refuses)
{
    int calls = 0;
    trail_error err;
    const trail_sink full = {.write = refuse, .context = &calls};
    make_trace(&pairs[0]);
    trail_source *source = open_input(trace.data, trace.size, true);
    assert_int_equal(trail_print_wire(source, &full, &err), -1);
    assert_int_equal(err.code, TRAIL_IO);
    assert_string_equal(err.message, "cannot write: No space left on device");
    trail_source_close(source);
    source = open_input(pairs[0].text, strlen(pairs[0].text), true);
    assert_int_equal(trail_assemble(source, 22, &full, &err), -1);
    assert_int_equal(err.code, TRAIL_IO);
    trail_source_close(source);
    assert_int_equal(calls, 2); /* once each, and not again after the refusal */
}

/* A record far larger than any window, from a source that delivers one byte at a time. */
TEST(test_large_record)
{
    trail_error err;
    enum { SIZE = 150000 };
    static char want[SIZE + 100];
    bytes_header(&trace, 22);
    bytes_put(&trace, "\x05\x01", 2);
    bytes_number(&trace, SIZE);
    memset(trace.data + trace.size, 'x', SIZE);
    trace.size += SIZE;
    size_t n = (size_t)snprintf(want, sizeof want, "String id=1\n\tdata=\"");
    memset(want + n, 'x', SIZE);
    want[n + SIZE] = '"';
    want[n + SIZE + 1] = '\n';
    assert_int_equal(print(trace.data, trace.size, false, &err), 0);
    expect_written(want, n + SIZE + 2);
}
