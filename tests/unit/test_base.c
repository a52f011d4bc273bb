/*
 * The base: numbers on the wire, the ID map, the arena, and tables of a reader.
 */
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "base/arena.h"
#include "base/duration.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/objects.h"
#include "base/search.h"
#include "base/share.h"
#include "base/show.h"
#include "base/small_file.h"
#include "base/utf8.h"
#include "base/varint.h"
#include "base/whole.h"
#include "read/tables.h"
#include "wire/wire.h"

TEST(numbers_come_back_as_they_went)
{
    for (unsigned bits = 0; bits <= 64; bits++) {
        uint64_t value = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - (bits > 0), back;
        uint8_t wire[UVARINT_MAX_SIZE];
        size_t size = uvarint_put(wire, value);
        assert_int_equal(size, uvarint_size(value));
        assert_ptr_equal(uvarint_get(wire, wire + size, &back), wire + size);
        assert_true(back == value);
        assert_null(uvarint_get(wire, wire + size - 1, &back));
    }
}

TEST(padded_numbers_are_legal_and_overlong_ones_are_not)
{
    uint64_t value;
    const uint8_t padded[] = {0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    assert_ptr_equal(uvarint_get(padded, padded + 10, &value), padded + 10);
    assert_int_equal(value, 5);
    const uint8_t too_big[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    assert_null(uvarint_get(too_big, too_big + 10, &value));
    const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    assert_null(uvarint_get(eleven, eleven + 11, &value));
}

/* A million insertions and removals, with a plain array as the model. */
TEST(the_id_map_forgets_what_is_removed)
{
    static char present[512];
    struct idmap map = {0};
    uint64_t random = 1;
    memset(present, 0, sizeof present);
    for (int i = 0; i < 1000000; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        unsigned index = (unsigned)(random >> 40) % 512;
        uint64_t id = index % 3 ? index : (uint64_t)index << 50;
        if (random >> 63) {
            assert_true(idmap_put(&map, id, &present[index]));
            present[index] = 1;
        } else {
            assert_ptr_equal(idmap_remove(&map, id), present[index] ? &present[index] : NULL);
            present[index] = 0;
        }
        assert_ptr_equal(idmap_find(&map, id), present[index] ? &present[index] : NULL);
    }
    size_t count = 0;
    for (unsigned i = 0; i < 512; i++)
        count += (size_t)present[i];
    assert_int_equal(map.count, count);
    assert_true(map.mask < 4UL * 512);
    idmap_free(&map);
}

/* The inverse of an odd number modulo 2^64, by Newton's method. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;
    for (int i = 0; i < 6; i++)
        x *= 2 - odd * x;
    return x;
}

/* Returns the longest run of used slots. */
static size_t longest_run(const struct idmap *map)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i <= map->mask; i++) {
        run = map->slots[i].value ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* Inserts IDs whose products with the initial multiplier are multiples of `step`. */
static void assert_spread(uint64_t step)
{
    const size_t count = 100000;
    struct idmap map = {0};
    uint64_t one = inverse(HASH_TIMES);
    assert_int_equal(one * HASH_TIMES, 1);
    for (size_t i = 1; i <= count; i++)
        assert_true(idmap_put(&map, one * (i * step), &map));
    for (size_t i = 1; i <= count; i++)
        assert_non_null(idmap_find(&map, one * (i * step)));
    assert_int_equal(map.count, count);
    /* A random multiplier gives a longer run in only one of about 10,000 draws. */
    assert_in_range(longest_run(&map), 1, count / 4);
    idmap_free(&map);
}

/*
 * IDs whose initial homes form groups of 200 with free slots between them, at every size of the
 * map: no run is longer than chance would make it, but each look-up would take 100 steps.
 */
static void assert_groups_are_spread(void)
{
    const uint64_t count = 100000, group = 200;
    struct idmap map = {0};
    uint64_t one = inverse(HASH_TIMES);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t place = 0;
        for (unsigned bit = 0; bit < 16; bit++)
            place |= (i / group >> bit & 1) << (63 - bit);
        assert_true(idmap_put(&map, one * (place + i % group + 1), &map));
    }
    assert_int_equal(map.count, count);
    assert_in_range(longest_run(&map), 1, group - 1);
    idmap_free(&map);
}

TEST(entries_come_by_id_whatever_the_hash)
{
    struct idmap map = {0};
    for (uint64_t id = 1000; id > 0; id--)
        assert_true(idmap_put(&map, id * UINT64_C(0x123456789abcdef1), &map));
    struct idmap_slot *all = idmap_sorted(&map);
    assert_non_null(all);
    for (size_t i = 1; i < map.count; i++)
        assert_true(all[i - 1].id < all[i].id);
    free(all);
    idmap_free(&map);
}

TEST(chosen_ids_are_spread_as_others)
{
    assert_groups_are_spread();
    assert_spread(1);                 /* all in the first slot */
    assert_spread(UINT64_C(1) << 46); /* consecutive slots, in 2^18 slots */
}

TEST(an_id_has_one_object_until_it_is_dropped)
{
    struct objects objects = OBJECTS_OF(int);
    int *one = objects_get(&objects, 1), *two = objects_get(&objects, 2);
    assert_non_null(one);
    assert_non_null(two);
    assert_ptr_not_equal(one, two);
    *one = 5;
    assert_ptr_equal(objects_get(&objects, 1), one);
    assert_ptr_equal(objects_find(&objects, 1), one);
    objects_drop(&objects, 1);
    objects_drop(&objects, 3);
    assert_null(objects_find(&objects, 1));
    one = objects_get(&objects, 1);
    assert_int_equal(*one, 0);
    *one = 6;
    objects_clear(&objects);
    assert_null(objects_find(&objects, 1));
    assert_null(objects_find(&objects, 2));
    assert_int_equal(*(int *)objects_get(&objects, 2), 0);
    objects_free(&objects);
}

TEST(grown_elements_are_zero)
{
    uint32_t *numbers = NULL;
    size_t capacity = 0;
    for (size_t wanted = 1; wanted < 1000; wanted = 3 * capacity) {
        size_t had = capacity;
        assert_true(GROW_ZEROED(numbers, capacity, wanted));
        for (size_t i = 0; i < capacity; i++) {
            assert_int_equal(numbers[i], i < had ? 7 : 0);
            numbers[i] = 7;
        }
    }
    free(numbers);
}

TEST(files_of_the_kernel_are_read_by_lines_and_numbers)
{
    char name[16], text[32];
    int pid = 0;
    bool is_self = false;
    SMALL_FILE_LINES(lines, "/proc/%s/status", "self") {
        assert_null(strchr(lines.text, '\n'));
        if (sscanf(lines.text, "Name:\t%15s", name) == 1)
            continue;
        if (sscanf(lines.text, "Pid:\t%d", &pid) == 1)
            break;
    }
    assert_int_equal(pid, getpid());
    SMALL_FILE_NUMBERS(process, "/proc")
        is_self |= process.at == pid;
    assert_true(is_self);
    assert_true(small_file_text(text, sizeof text, "/proc/%d/comm", pid));
    assert_string_equal(text, name);
    SMALL_FILE_LINES(none, "/proc/self/none")
        fail();
    SMALL_FILE_NUMBERS(none, "/proc/self/none")
        fail();
}

TEST(an_arena_gives_aligned_memory_that_stays)
{
    struct arena arena = {0};
    unsigned char *blocks[200];
    for (unsigned i = 0; i < 200; i++) {
        blocks[i] = arena_alloc(&arena, i * i + 1);
        assert_int_equal((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        memset(blocks[i], (int)i, i * i + 1);
    }
    for (unsigned i = 0; i < 200; i++)
        for (unsigned k = 0; k <= i * i; k++)
            assert_int_equal(blocks[i][k], i);
    assert_null(arena_alloc(&arena, SIZE_MAX - 4));
    arena_free(&arena);
}

static trail_string text(const char *s)
{
    return (trail_string){s, strlen(s)};
}

TEST(tables_take_dense_and_far_ids)
{
    struct tables tables = {0};
    uint32_t handle;
    for (int generation = 0; generation < 2; generation++) {
        assert_true(tables_reset(&tables));
        assert_int_equal(tables_add_string(&tables, 0, text("zero")), TABLE_DUPLICATE);
        for (uint64_t id = 1; id < 5000; id++)
            assert_int_equal(tables_add_string(&tables, id * 3, text("dense")), TABLE_OK);
        assert_int_equal(tables_add_string(&tables, UINT64_MAX, text("far")), TABLE_OK);
        assert_int_equal(tables_add_string(&tables, UINT64_MAX, text("again")), TABLE_DUPLICATE);
        assert_int_equal(tables_add_string(&tables, 3, text("again")), TABLE_DUPLICATE);
        assert_true(tables_string(&tables, UINT64_MAX, &handle));
        assert_memory_equal(tables.strings[handle].data, "far", 3);
        assert_false(tables_string(&tables, 4, &handle));
        assert_int_equal(handle, 0);
        assert_true(tables_string(&tables, 0, &handle));
        assert_int_equal(tables.strings[handle].size, 0);
    }
    tables_free(&tables);
}

TEST(the_first_frame_of_a_pc_stands_for_all)
{
    struct tables tables = {0};
    uint64_t stack, string;
    bool is_file;
    const uint64_t first[] = {0x10, 1, 2, 7, 0x20, 2, 1, 8}, second[] = {0x10, 2, 2, 9};
    assert_true(tables_reset(&tables));
    assert_int_equal(tables_add_stack(&tables, 5, first, 2), TABLE_OK);
    assert_int_equal(tables_add_stack(&tables, 6, second, 1), TABLE_OK);
    assert_int_equal(tables_add_string(&tables, 1, text("f")), TABLE_OK);
    assert_int_equal(tables_add_string(&tables, 2, text("g")), TABLE_OK);
    assert_true(tables_resolve_frames(&tables, &stack, &string, &is_file));
    uint32_t handle;
    assert_true(tables_stack(&tables, 6, &handle));
    const trail_frame *frame = &tables.frames[tables.stacks[handle].first];
    assert_int_equal(frame->line, 7);
    assert_memory_equal(tables.strings[frame->function].data, "f", 1);
    tables_free(&tables);
}

TEST(equal_bytes_get_equal_numbers)
{
    struct intern intern = {0};
    char key[5000] = {0};
    bool fresh;
    /* Zeros of every length, including 0. */
    for (unsigned size = 0; size < sizeof key; size++) {
        assert_int_equal(intern_put(&intern, key, size, &fresh), size + 1);
        assert_true(fresh);
    }
    for (unsigned size = 0; size < sizeof key; size++) {
        assert_int_equal(intern_put(&intern, key, size, &fresh), size + 1);
        assert_false(fresh);
    }
    key[16] = 1; /* copied: later changes of the key have no effect */
    assert_int_equal(intern_put(&intern, key, 17, &fresh), sizeof key + 1);
    intern_clear(&intern);
    assert_int_equal(intern_put(&intern, key, 17, &fresh), 1);
    assert_true(fresh);
    intern_free(&intern);
}

TEST(bytes_of_equal_hash_are_told_apart)
{
    /* Two words with the same unkeyed hash, found by a search of 5,000,000,000 steps. */
    const uint64_t words[] = {UINT64_C(0x64e26de7e90ad22d), UINT64_C(0xf8797fa24a246ddc)};
    struct intern intern = {0};
    bool fresh;
    assert_int_equal(hash_bytes(&words[0], 8), hash_bytes(&words[1], 8));
    uint64_t hashes[] = {hash_keyed_bytes(0, &words[0], 8), hash_keyed_bytes(0, &words[1], 8)};
    assert_int_not_equal(hashes[0], hashes[1]);
    assert_int_equal(intern_put(&intern, &words[0], sizeof words[0], &fresh), 1);
    /* Makes both words have the same hash. */
    assert_true(idmap_put(&intern.map, hashes[1], idmap_find(&intern.map, hashes[0])));
    assert_int_equal(intern_put(&intern, &words[1], sizeof words[1], &fresh), 2);
    assert_true(fresh);
    assert_int_equal(intern_put(&intern, &words[0], sizeof words[0], &fresh), 1);
    assert_int_equal(intern_put(&intern, &words[1], sizeof words[1], &fresh), 2);
    assert_false(fresh);
    intern_free(&intern);
}

/* (hash ^ word) is 0 for equal words, whatever it is multiplied by. */
TEST(pairs_of_equal_words_have_different_hashes)
{
    struct idmap map = {0};
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(idmap_put(&map, hash_keyed_mix(hash_keyed_mix(0, i), i), &map));
    assert_int_equal(map.count, 1000);
    idmap_free(&map);
}

/* 2^63 is the first value out of range; the double before it is 2^63 - 1024. */
TEST(every_real_number_has_a_whole_one)
{
    const struct {
        double value;
        int64_t whole;
    } cases[] = {
        {0, 0},
        {-0.0, 0},
        {0.999, 0},
        {-0.999, 0},
        {1e9 + 0.5, 1000000000},
        {0x1p63 - 1024, INT64_MAX - 1023},
        {0x1p63, INT64_MAX},
        {-0x1p63, INT64_MIN},
        {-0x1p63 - 2048, INT64_MIN},
        {9e27, INT64_MAX},
        {INFINITY, INT64_MAX},
        {-INFINITY, INT64_MIN},
        {NAN, 0},
        {-NAN, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(whole_of(cases[i].value) == cases[i].whole);
    assert_int_equal(whole_within(NAN, 3, 8), 3);
    assert_int_equal(whole_within(INFINITY, 3, 8), 8);
    assert_int_equal(whole_within(5.9, 3, 8), 5);
}

TEST(headers_name_a_version_or_none)
{
    static const struct {
        const char *header;
        int version;
    } cases[] = {
        {"go 1.5 trace\0\0\0\0", 5},  {"go 1.10 trace\0\0\0", 10},  {"go 1.26 trace\0\0\0", 26},
        {"go 1.27 trace\0\0\0", -27}, {"go 1.6 trace\0\0\0\0", -6}, {"go 1.234 trace\0\0", -234},
        {"go 1.2345 trace\0", 0},     {"go 0.0 trace\0\0\0\0", 0},  {"go a.b trace\0\0\0\0", 0},
        {"go 1.05 trace\0\0\0", 0},   {"go 1.26 trace\0\0x", 0},    {"gotrace\0\x02\x30xxxxxx", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(wire_header_parse((const uint8_t *)cases[i].header), cases[i].version);
}

/* Expected: one U+FFFD (ef bf bd) for each byte that is not part of a character, RFC 3629. */
TEST(bytes_that_are_no_character_are_replaced)
{
    static const struct {
        const char *text;
        size_t size;
        bool valid;
        const char *kept, *replaced; /* with NUL unchanged, and with NUL replaced */
        int columns;
    } cases[] = {
        {"", 0, true, "", "", 0},
        {"abc", 3, true, "abc", "abc", 3},
        {"\xc3\xa9\xe2\x96\x88\xf0\x9f\x99\x82", 9, true, "\xc3\xa9\xe2\x96\x88\xf0\x9f\x99\x82",
         "\xc3\xa9\xe2\x96\x88\xf0\x9f\x99\x82", 4}, /* the emoji has two */
        {"a\xff"
         "b",
         3, false,
         "a\xef\xbf\xbd"
         "b",
         "a\xef\xbf\xbd"
         "b",
         3},
        {"\xe2\x96", 2, false, "\xef\xbf\xbd\xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd", 1},
        {"a\0", 2, true, "a", "a\xef\xbf\xbd", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trail_string text = {cases[i].text, cases[i].size};
        uint8_t fixed[64] = {0};
        assert_int_equal(utf8_valid(text), cases[i].valid);
        size_t nul = cases[i].size > 0 && cases[i].text[cases[i].size - 1] == '\0';
        assert_int_equal(utf8_repair(fixed, text, UTF8_NUL_KEPT), strlen(cases[i].kept) + nul);
        assert_string_equal((char *)fixed, cases[i].kept);
        memset(fixed, 0, sizeof fixed);
        assert_int_equal(utf8_repair(fixed, text, UTF8_NUL_REPLACED), strlen(cases[i].replaced));
        assert_string_equal((char *)fixed, cases[i].replaced);
        assert_int_equal(utf8_columns(cases[i].text), cases[i].columns);
    }
}

TEST(columns_of_wide_and_combining_characters)
{
    static const struct {
        const char *text;
        int columns;
    } cases[] = {
        {"abc", 3},
        {"\xc3\xa9", 1},                 /* e with acute */
        {"e\xcc\x81", 1},                /* the same: e and a combining acute */
        {"\xe4\xb8\xad\xe6\x96\x87", 4}, /* two Han characters */
        {"\xed\x95\x9c", 2},             /* Hangul */
        {"\xf0\x9f\x98\x80", 2},         /* a face */
        {"\xef\xbd\xb1", 1},             /* half-width katakana */
        {"\xe2\x80\x8b", 0},             /* zero width space */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(utf8_columns(cases[i].text), cases[i].columns);
    /* "a", Han, "b": the Han character fits completely or not at all. */
    assert_int_equal(utf8_fits("a\xe4\xb8\xad"
                               "b",
                               2),
                     1);
    assert_int_equal(utf8_fits("a\xe4\xb8\xad"
                               "b",
                               3),
                     4);
    assert_int_equal(utf8_fits_end("a\xe4\xb8\xad"
                                   "b",
                                   2),
                     1);
    assert_int_equal(utf8_fits_end("a\xe4\xb8\xad"
                                   "b",
                                   3),
                     4);
    assert_int_equal(utf8_fits("ab", 9), 2);
    assert_int_equal(utf8_fits_end("ab", 9), 2);
}

TEST(texts_are_cut_between_characters)
{
    static const struct {
        size_t most, first, last; /* "a", characters of two and three bytes, "b" */
    } cases[] = {{0, 0, 0}, {1, 1, 1}, {2, 1, 1}, {3, 3, 1}, {4, 3, 4},
                 {5, 3, 4}, {6, 6, 6}, {7, 7, 7}, {8, 7, 7}};
    const char *whole = "a\xc3\xa9\xe2\x96\x88"
                        "b";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        trail_string text = {whole, 7}, first = utf8_first(text, cases[i].most),
                     last = utf8_last(text, cases[i].most);
        assert_int_equal(first.size, cases[i].first);
        assert_ptr_equal(first.data, whole);
        assert_int_equal(last.size, cases[i].last);
        assert_ptr_equal(last.data + last.size, whole + 7);
    }
    /* A long run of continuation bytes is not a character: its beginning is not searched for. */
    trail_string wrong = utf8_first((trail_string){"\x80\x80\x80\x80\x80\x80", 6}, 5);
    assert_int_equal(wrong.size, 2);
}

/* Expected: computed by hand from the digits of the number. */
TEST(durations_have_a_form_for_each_place)
{
    static const struct {
        int64_t ns;
        const char *texts[DURATION_FORMS]; /* column, words, summary, event, log */
    } cases[] = {
        {0, {"0 ns", "0 ns", "0.00 ns", "0ns", "0ns"}},
        {7, {"7 ns", "7 ns", "7.00 ns", "7ns", "7ns"}},
        {999, {"999 ns", "999 ns", "999 ns", "999ns", "1us"}},
        {1000, {"1.000 us", "1.00 us", "1.00 us", "1us", "1us"}},
        {9378, {"9.378 us", "9.38 us", "9.38 us", "9.37us", "9.4us"}},
        {10059, {"10.059 us", "10.1 us", "10.1 us", "10us", "10.1us"}},
        {10570, {"10.570 us", "10.6 us", "10.6 us", "10.5us", "10.6us"}},
        {17690, {"17.690 us", "17.7 us", "17.7 us", "17.6us", "17.7us"}},
        {340999, {"340.999 us", "341 us", "341 us", "340us", "341us"}},
        {999600, {"999.600 us", "1.00 ms", "1.00 ms", "999us", "1ms"}},
        {999499, {"999.499 us", "999 us", "999 us", "999us", "999us"}},
        {2050000, {"2.050 ms", "2.05 ms", "2.05 ms", "2.05ms", "2.05ms"}},
        {9996000, {"9.996 ms", "10.0 ms", "10.0 ms", "9.99ms", "10ms"}},
        {99990000, {"99.990 ms", "100 ms", "100 ms", "99.9ms", "100ms"}},
        {999400000000, {"999.400 s", "999 s", "999 s", "999s", "999s"}},
        {1420000000000, {"1420.000 s", "1,420 s", "1,420 s", "1420s", "1420s"}},
        {1020000000, {"1.020 s", "1.02 s", "1.02 s", "1.02s", "1.02s"}},
        {123456000000000, {"123456.000 s", "123,456 s", "123,456 s", "123456s", "123000s"}},
        {-5, {"-5 ns", "-5 ns", "-5.00 ns", "0ns", "-5ns"}},
        {INT64_MAX,
         {"9223372036.855 s", "9,223,372,037 s", "9,223,372,037 s", "9223372036s", "9220000000s"}},
    };
    static const struct {
        double ns;
        const char *text;
    } places[] = {{0.25, "0.25 ns"}, {999.4, "999 ns"}, {999.5, "1 us"},
                  {20e6, "20 ms"},   {1.5e9, "1.5 s"},  {1234.4e9, "1234 s"}};
    char buf[DURATION_SIZE];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < DURATION_FORMS; form++)
            assert_string_equal(duration_text(buf, cases[i].ns, (enum duration_form)form),
                                cases[i].texts[form]);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        assert_string_equal(duration_on_axis(buf, places[i].ns), places[i].text);
}

TEST(durations_are_read_back)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"110ms", 110000000}, {"1.5s", 1500000000},
        {"9.4us", 9400},      {"7ns", 7},
        {"1.s", 1000000000},  {"0.4ns", 0},
        {"0.5ns", 1},         {"", -1},
        {"ms", -1},           {"5", -1},
        {"5m", -1},           {"1.2.3s", -1},
        {"5 ms", -1},         {"-5ms", -1},
        {"5msx", -1},         {"9e3s", -1},
        {"9000000000s", -1},  {"9.4\xc2\xb5s", 9400},
        {"3\xce\xbcs", 3000}, {"3\xc2\xb5", -1},
        {"3\xc2s", -1},       {"3\xc2\xb4s", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(duration_parse(cases[i].text, cases[i].text + strlen(cases[i].text)),
                         cases[i].ns);
    char log[DURATION_SIZE], *end = duration_put(log, 123456000000000, DURATION_LOG);
    assert_int_equal(duration_parse(log, end), 123000000000000);
    assert_int_equal(duration_unit("hours", 1), 3600000000000);
    assert_int_equal(duration_unit("hours", 2), 0);
}

TEST(microseconds_are_found_behind_numbers)
{
    static const struct {
        const char *text;
        size_t at;
    } cases[] = {
        {"5.000 us", 6}, {"9.4us", 3},        {"took 5 us, then 6 us", 7},
        {"5 us;", 2},    {"us", 2},           {" us", 3},
        {"5  us", 5},    {"user 5 used", 11}, {"bus 5 us", 6},
        {"5 us_t", 6},   {"5 us2", 5},        {"5usually 7 us", 11},
        {"", 0},         {"5 us\xc3\xa9", 6}, {"5 uus 5us", 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(duration_us_in(cases[i].text) - cases[i].text, cases[i].at);
}

TEST(shares_of_nothing_are_none)
{
    char buf[SHOW_SIZE];
    assert_true(share_of(1, 4) == 0.25 && share_of(3, 0) == 0 && share_of(3, -1) == 0);
    assert_true(percent_of(1, 4) == 25 && percent_of(3, 0) == 0);
    /* 100 / 8 is 12.5, exact in binary; 100 / 3 is not. */
    assert_string_equal(show_percent(buf, percent_of(1, 8)), "12.5 %");
    assert_string_equal(show_percent(buf, percent_of(2, 3)), "66.7 %");
    assert_string_equal(show_percent(buf, percent_of(3, 3)), "100 %");
}

struct entry {
    int key;
    char name;
};

static bool entry_before(const struct entry *a, const struct entry *b)
{
    return a->key < b->key;
}

HEAP(entries, struct entry, entry_before)

TEST(a_heap_gives_the_first_again_and_again)
{
    enum { MOST = 300 };
    static struct entry heap[MOST];
    int held[50] = {0}; /* number of entries for each key */
    size_t count = 0;
    uint64_t random = 7;
    for (int step = 0; step < 20000; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        bool put = count == 0 || (count < MOST && (int)(random >> 63) == step / 3000 % 2);
        if (put) {
            struct entry entry = {.key = (int)(random >> 33) % 50};
            held[entry.key]++;
            size_t place = entries_up(heap, count, entry);
            assert_true(place <= count++ && heap[place].key == entry.key);
        } else {
            int least = 0;
            while (held[least] == 0)
                least++;
            assert_int_equal(heap[0].key, least);
            held[least]--;
            struct entry last = heap[--count];
            if (count > 0)
                entries_down(heap, count, 0, last);
        }
    }
}

/* The results of Go's container/heap for the same calls: Push swaps upwards, Pop swaps the last
 * entry to the front. */
TEST(equal_entries_of_a_heap_leave_as_in_go)
{
    static const struct {
        const char *in, *out; /* a key and a name each */
    } cases[] = {
        {"1a1b1c", "1a1c1b"},         {"2a1b1c", "1b1c2a"},     {"1a1b1c1d1e", "1a1e1d1c1b"},
        {"1a2b2c3d2e", "1a2e2b2c3d"}, {"0a1b1c3d", "0a1b1c3d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct entry heap[8];
        size_t count = 0;
        for (const char *at = cases[i].in; *at; at += 2)
            entries_up(heap, count++, (struct entry){at[0] - '0', at[1]});
        for (const char *at = cases[i].out; *at; at += 2) {
            assert_int_equal(heap[0].key, at[0] - '0');
            assert_int_equal(heap[0].name, at[1]);
            struct entry last = heap[--count];
            if (count > 0)
                entries_down(heap, count, 0, last);
        }
    }
}

TEST(the_first_that_is_not_before_is_found)
{
    static const int list[] = {1, 3, 3, 3, 7, 9, 9, 12};
    enum { COUNT = sizeof list / sizeof *list };
    for (size_t low = 0; low <= COUNT; low++)
        for (size_t high = low; high <= COUNT; high++)
            for (int value = 0; value < 14; value++) {
                size_t want = low;
                while (want < high && list[want] < value)
                    want++;
                assert_int_equal(SEARCH(i, low, high, list[i] < value), want);
            }
    assert_int_equal(SEARCH(i, 5, 4, true), 5); /* nothing to look at */
}
