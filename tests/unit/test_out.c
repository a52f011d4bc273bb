/*
 * The buffered writer and Go's quotes. The expected results of strconv.Quote are from Go's
 * documentation and tests.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/unit.h"
#include "base/json.h"
#include "base/out.h"
#include "base/plain.h"
#include "base/quote.h"
#include "base/utf8.h"

static struct {
    char *data;
    size_t size, limit;
} written;

static bool keep(void *context, const void *data, size_t size)
{
    (void)context;
    if (written.size + size > written.limit) {
        errno = ENOSPC;
        return false;
    }
    written.data = realloc(written.data, written.size + size);
    memcpy(written.data + written.size, data, size);
    written.size += size;
    return true;
}

static void begin(struct out *out, size_t limit)
{
    free(written.data);
    written.data = NULL;
    written.size = 0;
    written.limit = limit;
    assert_true(out_init(out, keep, NULL));
}

static void expect(struct out *out, const char *want, size_t size)
{
    trail_error err;
    assert_int_equal(out_finish(out, &err), 0);
    assert_int_equal(written.size, size);
    assert_memory_equal(written.data, want, size);
    free(written.data);
    written.data = NULL;
}

static void expect_number(uint64_t value)
{
    struct out out;
    char want[200], put[2 * U64_DIGITS] = "";
    int n =
        snprintf(want, sizeof want, "%" PRIu64 " %" PRId64 " %" PRIx64 " %08" PRIx64 " %09" PRIu64,
                 value, (int64_t)value, value, value, value);
    begin(&out, SIZE_MAX);
    out_u64(&out, value);
    out_char(&out, ' ');
    out_i64(&out, (int64_t)value);
    out_char(&out, ' ');
    out_hex(&out, value, 1);
    out_char(&out, ' ');
    out_hex(&out, value, 8);
    out_char(&out, ' ');
    out_u64_padded(&out, value, 9);
    expect(&out, want, (size_t)n);
    *u64_put(put, value) = '\0';
    assert_memory_equal(put, want, strlen(put));
    assert_int_equal(want[strlen(put)], ' ');
}

TEST(test_numbers)
{
    uint64_t value = 1;
    for (int digits = 0; digits < 20; digits++, value *= 10) {
        expect_number(value - 1);
        expect_number(value);
        expect_number(value + 1);
        expect_number(value / 7 * 9);
        expect_number(-value);
    }
    expect_number(0);
    expect_number(UINT64_MAX);
    expect_number((uint64_t)INT64_MIN);
}

TEST(test_large_output_is_in_order)
{
    static char large[OUT_BUFFER_SIZE + 5];
    struct out out;
    size_t want = 0;
    memset(large, 'x', sizeof large);
    begin(&out, SIZE_MAX);
    for (size_t size = 1; size <= sizeof large; size = size * 3 + 1) {
        out_char(&out, '<');
        out_bytes(&out, large, size);
        out_str(&out, ">>");
        want += size + 3;
    }
    out_bytes(&out, large, sizeof large);
    want += sizeof large;
    trail_error err;
    assert_int_equal(out_finish(&out, &err), 0);
    assert_int_equal(written.size, want);
    for (size_t size = 1, at = 0; size <= sizeof large; at += size + 3, size = size * 3 + 1) {
        assert_int_equal(written.data[at], '<');
        assert_int_equal(written.data[at + 1 + size], '>');
        assert_int_equal(written.data[at + 2 + size], '>');
    }
    free(written.data);
    written.data = NULL;
}

TEST(test_failure_stays)
{
    struct out out;
    trail_error err;
    begin(&out, 3);
    out_str(&out, "abc");
    out_flush(&out);
    assert_false(out.failed);
    out_str(&out, "d");
    out_flush(&out);
    assert_true(out.failed);
    written.limit = SIZE_MAX;
    for (size_t i = 0; i < 2 * OUT_BUFFER_SIZE; i++)
        out_char(&out, 'e');
    assert_int_equal(out_finish(&out, &err), -1);
    assert_int_equal(err.code, TRAIL_IO);
    assert_string_equal(err.message, "cannot write: No space left on device");
    assert_int_equal(written.size, 3);
    free(written.data);
    written.data = NULL;
}

TEST(test_quotes)
{
    static const struct {
        const char *data;
        size_t size;
        const char *want;
    } cases[] = {
        {"", 0, "\"\""},
        {"\a\b\f\r\n\t\v", 7, "\"\\a\\b\\f\\r\\n\\t\\v\""},
        {"\\\"'", 3, "\"\\\\\\\"'\""},
        {"abc\xff"
         "def",
         7, "\"abc\\xffdef\""},
        {"\0\x1f\x7f", 3, "\"\\x00\\x1f\\x7f\""},
        {"\xe2\x98\xba", 3, "\"\xe2\x98\xba\""},    /* U+263A */
        {"\xf4\x8f\xbf\xbf", 4, "\"\\U0010ffff\""}, /* the last character */
        {"\x04", 1, "\"\\x04\""},
        {"\xc2\xa0\xc2\xad", 4, "\"\\u00a0\\u00ad\""}, /* no-break space, soft hyphen */
        {"\xef\xbf\xbd", 3, "\"\xef\xbf\xbd\""},       /* U+FFFD itself */
        {"\xed\xa0\x80", 3, "\"\\xed\\xa0\\x80\""},    /* a surrogate */
        {"\xc0\x80", 2, "\"\\xc0\\x80\""},             /* overlong */
        {"\xf0\x9f\x98", 3, "\"\\xf0\\x9f\\x98\""},    /* cut short */
        {"\xe2\x80\xa8", 3, "\"\\u2028\""},            /* line separator */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct out out;
        char back[64];
        begin(&out, SIZE_MAX);
        out_quote(&out, cases[i].data, cases[i].size);
        expect(&out, cases[i].want, strlen(cases[i].want));
        assert_int_equal(unquote(cases[i].want, strlen(cases[i].want), back), cases[i].size);
        assert_memory_equal(back, cases[i].data, cases[i].size);
    }
}

/* The first and last character of each length, and their neighbours (RFC 3629, section 4). */
TEST(test_utf8)
{
    static const struct {
        const char *bytes;
        uint32_t rune; /* NONE: it is not UTF-8 */
    } cases[] = {
#define NONE UINT32_MAX
        {"\x01", 1},
        {"\x7f", 0x7f},
        {"\x80", NONE},
        {"\xbf", NONE},
        {"\xc0\x80", NONE}, /* overlong, like all up to the next valid one */
        {"\xc0\xaf", NONE},
        {"\xc1\xbf", NONE},
        {"\xc2\x80", 0x80},
        {"\xdf\xbf", 0x7ff},
        {"\xe0\x80\xaf", NONE},
        {"\xe0\x9f\xbf", NONE},
        {"\xe0\xa0\x80", 0x800},
        {"\xed\x9f\xbf", 0xd7ff},
        {"\xed\xa0\x80", NONE}, /* surrogates */
        {"\xed\xbf\xbf", NONE},
        {"\xee\x80\x80", 0xe000},
        {"\xef\xbf\xbf", 0xffff},
        {"\xf0\x80\x80\xaf", NONE},
        {"\xf0\x8f\xbf\xbf", NONE},
        {"\xf0\x90\x80\x80", 0x10000},
        {"\xf4\x8f\xbf\xbf", 0x10ffff},
        {"\xf4\x90\x80\x80", NONE}, /* too large */
        {"\xf5\x80\x80\x80", NONE},
        {"\xf7\xbf\xbf\xbf", NONE},
        {"\xf8\x88\x80\x80\x80", NONE}, /* five bytes, as in the original definition of UTF-8 */
        {"\xff", NONE},
        {"\xc2\x7f", NONE}, /* not a continuation byte */
        {"\xc2\xc0", NONE},
        {"\xe2\x98\x7f", NONE},
        {"\xe2\xc0\xba", NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint8_t *bytes = (const uint8_t *)cases[i].bytes;
        size_t size = strlen(cases[i].bytes);
        uint32_t rune = NONE;
        uint8_t back[4];
        assert_int_equal(utf8_decode(bytes, bytes + size, &rune), cases[i].rune == NONE ? 0 : size);
        assert_int_equal(rune, cases[i].rune);
        if (rune == NONE)
            continue;
        assert_int_equal(utf8_encode(back, rune), size);
        assert_memory_equal(back, bytes, size);
        for (size_t cut = 1; cut < size; cut++)
            assert_int_equal(utf8_decode(bytes, bytes + cut, &rune), 0);
    }
    uint8_t lost[4];
    static const uint32_t runes[] = {0xd800, 0xdfff, 0x110000, NONE};
    for (size_t i = 0; i < sizeof runes / sizeof *runes; i++) {
        assert_int_equal(utf8_encode(lost, runes[i]), 3);
        assert_memory_equal(lost, "\xef\xbf\xbd", 3);
    }
#undef NONE
}

TEST(test_what_is_no_literal)
{
    static const char *const cases[] = {
        "",         "\"",       "abc",       "\"a`",        "\"a\"b\"",        "\"\\\"",
        "\"\\q\"",  "\"\\x1\"", "\"\\u12\"", "\"\\ud800\"", "\"\\U00110000\"", "\"\\400\"",
        "\"a\nb\"", "`a`b`",    "'a'",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char back[64];
        assert_int_equal(unquote(cases[i], strlen(cases[i]), back), -1);
    }
}

/* MARK: Plain */

/* C0, DEL, C1 and Unicode's direction marks (UAX #9). */
static bool steers(uint32_t rune)
{
    return rune < 0x20 || (rune >= 0x7f && rune < 0xa0) || rune == 0x61c || rune == 0x200e ||
           rune == 0x200f || (rune >= 0x202a && rune <= 0x202e) ||
           (rune >= 0x2066 && rune <= 0x2069);
}

TEST(test_what_steers_a_terminal_is_escaped)
{
    for (uint32_t rune = 0; rune <= 0x10ffff; rune++) {
        uint8_t bytes[4];
        char shown[PLAIN_MOST];
        unsigned size = utf8_encode(bytes, rune), length;
        assert_int_equal(plain_step(bytes, bytes + size, shown, &length), size);
        assert_in_range(length, 1, PLAIN_MOST);
        bool same = length == size && memcmp(shown, bytes, size) == 0;
        assert_false(steers(rune) && same);
        assert_true(same || rune < 0x20 || rune >= 0x7f);
        for (unsigned i = 0; i < length && !same; i++)
            assert_true(shown[i] > ' ' && shown[i] < 0x7f);
    }
    for (unsigned byte = 0x80; byte <= 0xff; byte++) {
        uint8_t bytes[] = {(uint8_t)byte};
        char shown[PLAIN_MOST], right[8];
        unsigned length;
        assert_int_equal(plain_step(bytes, bytes + 1, shown, &length), 1);
        (void)snprintf(right, sizeof right, "\\x%02x", byte);
        assert_int_equal(length, 4);
        assert_memory_equal(shown, right, 4);
    }
}

TEST(test_plain_text)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"", ""},
        {"main.(*T).run \\ \"x\"", "main.(*T).run \\ \"x\""},
        {"\x1b[31m", "\\x1b[31m"},
        {"a\nb\tc\rd\ae\bf\vg\fh\x7f", "a\\nb\\tc\\rd\\ae\\bf\\vg\\fh\\x7f"},
        {"\x9b", "\\x9b"},
        {"\xc2\x9b", "\\u009b"},
        {"\xe2\x80\xae", "\\u202e"},
        {"\xe2\x80", "\\xe2\\x80"},
        {"\xf3\xa0\x80\x81", "\\U000e0001"},
        {"\xc3\xa9\xe2\x96\x88\xf0\x9f\x99\x82", "\xc3\xa9\xe2\x96\x88\xf0\x9f\x99\x82"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size = strlen(cases[i].text), length = strlen(cases[i].shown);
        char buf[64], *text = plain_new(cases[i].text, size);
        assert_string_equal(text, cases[i].shown);
        free(text);
        for (size_t room = 1; room <= sizeof buf; room++) {
            /* Truncated text is a prefix that ends between characters. */
            size_t used = plain_copy(buf, room, cases[i].text, size);
            assert_true(used < room && strlen(buf) == used);
            assert_memory_equal(buf, cases[i].shown, used);
            assert_true(room <= length || used == length);
        }
        memcpy(buf, cases[i].text, size + 1);
        assert_string_equal(plain_inside(buf, sizeof buf), cases[i].shown);
    }
}

/* MARK: JSON */

/* RFC 8259: which characters must be escaped, and how those outside the basic plane are. */
TEST(test_json_values)
{
    static const struct {
        const char *text, *want;
        bool valid;
    } cases[] = {
        {"", "\"\"", true},
        {"a\"b\\c/", "\"a\\\"b\\\\c/\"", true},
        {"\n\r\t\b\x1b\x7f", "\"\\n\\r\\t\\u0008\\u001b\\u007f\"", true},
        {"\xc3\xa9\xe2\x80\xae", "\"\xc3\xa9\\u202e\"", true},
        {"\xf3\xa0\x80\x81", "\"\\udb40\\udc01\"", true},
        {"a\xff\xe2\x96", "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", false},
    };
    static const struct {
        int64_t value;
        const char *want;
    } numbers[] = {
        {0, "0"},
        {-1, "-1"},
        {9007199254740992, "9007199254740992"},
        {9007199254740993, "\"9007199254740993\""},
        {-9007199254740992, "-9007199254740992"},
        {-9007199254740993, "\"-9007199254740993\""},
    };
    struct out out;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trail_string text = {cases[i].text, strlen(cases[i].text)};
        begin(&out, SIZE_MAX);
        assert_int_equal(json_put_text(&out, text), cases[i].valid);
        expect(&out, cases[i].want, strlen(cases[i].want));
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        begin(&out, SIZE_MAX);
        json_put_i64(&out, numbers[i].value);
        expect(&out, numbers[i].want, strlen(numbers[i].want));
    }
    begin(&out, SIZE_MAX);
    json_put_u64(&out, UINT64_MAX);
    expect(&out, "\"18446744073709551615\"", 22);
}

/* If not shared, it does not flush; if bare, no number is in quotes. */
TEST(test_json_bare_numbers)
{
    static const char want[] = "[9007199254740993,-9007199254740993,0.33]";
    struct out out;
    struct json json = {.out = &out, .bare = true};
    begin(&out, SIZE_MAX);
    json_open(&json, NULL, '[');
    json_number(&json, NULL, 9007199254740993);
    json_signed(&json, NULL, -9007199254740993);
    json_rounded(&json, NULL, 0.333, 2);
    json_close(&json, ']');
    assert_int_equal(written.size, 0);
    expect(&out, want, sizeof want - 1);
}

TEST(test_json_writer)
{
    static const char want[] =
        "{\"a\":1,\"b\":[\"x\\u000ay\",-2,{},null,null],\"\\u000a\":0.5,\"c\":true,"
        "\"d\":[1]}[false]";
    struct out out;
    struct json json = {.out = &out, .shared = true};
    begin(&out, SIZE_MAX);
    json_open(&json, NULL, '{');
    json_number(&json, "a", 1);
    json_open(&json, "b", '[');
    json_string(&json, NULL, "x\ny");
    json_signed(&json, NULL, -2);
    json_open(&json, NULL, '{');
    json_close(&json, '}');
    json_real(&json, NULL, NAN);
    json_null(&json, NULL);
    json_close(&json, ']');
    json_key(&json, (trail_string){"\n", 1});
    json_real(&json, NULL, 0.5);
    json_bool(&json, "c", true);
    json_bare(&json, "d", (trail_string){"[1]", 3});
    json_close(&json, '}');
    assert_int_equal(written.size,
                     strlen("{\"a\":1,\"b\":[\"x\\u000ay\",-2,{},null,null],\"\\u000a\":0.5,"
                            "\"c\":true,\"d\":[1]}")); /* without a flush */
    json = (struct json){.out = &out};
    json_open(&json, NULL, '[');
    json_bool(&json, NULL, false);
    json_close(&json, ']');
    expect(&out, want, strlen(want));
}

TEST(test_a_buffer_of_the_callers)
{
    static char large[1000];
    char buffer[64];
    struct out out = {.at = buffer, .end = buffer + sizeof buffer, .buffer = buffer, .write = keep};
    memset(large, 'x', sizeof large);
    written.size = 0;
    written.limit = SIZE_MAX;
    out_str(&out, "<");
    out_bytes(&out, large, sizeof large); /* which is not to be waited for until it fits */
    out_str(&out, ">");
    out_flush(&out);
    assert_int_equal(written.size, sizeof large + 2);
    assert_int_equal(written.data[0], '<');
    assert_int_equal(written.data[sizeof large + 1], '>');
    free(written.data);
    written.data = NULL;
}
