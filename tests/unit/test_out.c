/*
 * The buffered writer and Go's quotes. What strconv.Quote gives is from Go's documentation and
 * tests.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/out.h"
#include "base/quote.h"

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

static void test_numbers(void **state)
{
    (void)state;
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

static void test_large_output_is_in_order(void **state)
{
    (void)state;
    static char large[OUT_BUFFER_SIZE + 5];
    struct out out;
    size_t want = 0;
    memset(large, 'x', sizeof large);
    begin(&out, SIZE_MAX);
    for (size_t size = 1; size <= sizeof large; size = size * 3 + 1) {
        out_char(&out, '<');
        out_bytes(&out, large, size);
        out_repeat(&out, '>', 2);
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

static void test_failure_stays(void **state)
{
    (void)state;
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
    out_repeat(&out, 'e', 2 * OUT_BUFFER_SIZE);
    assert_int_equal(out_finish(&out, &err), -1);
    assert_int_equal(err.code, TRAIL_IO);
    assert_string_equal(err.message, "cannot write: No space left on device");
    assert_int_equal(written.size, 3);
    free(written.data);
    written.data = NULL;
}

static void test_quotes(void **state)
{
    (void)state;
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

static void test_what_is_no_literal(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_large_output_is_in_order),
        cmocka_unit_test(test_failure_stays),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_what_is_no_literal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
