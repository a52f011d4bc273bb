/*
 * The base: numbers on the wire, the ID map, the arena, and tables of a reader.
 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/varint.h"
#include "read/tables.h"
#include "wire/wire.h"

static void numbers_come_back_as_they_went(void **state)
{
    (void)state;
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

static void padded_numbers_are_legal_and_overlong_ones_are_not(void **state)
{
    (void)state;
    uint64_t value;
    const uint8_t padded[] = {0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    assert_ptr_equal(uvarint_get(padded, padded + 10, &value), padded + 10);
    assert_int_equal(value, 5);
    const uint8_t too_big[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    assert_null(uvarint_get(too_big, too_big + 10, &value));
    const uint8_t eleven[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    assert_null(uvarint_get(eleven, eleven + 11, &value));
}

/* A million comings and goings, beside a plain array as the model. */
static void the_id_map_forgets_what_is_removed(void **state)
{
    (void)state;
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

static void an_arena_gives_aligned_memory_that_stays(void **state)
{
    (void)state;
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

static void tables_take_dense_and_far_ids(void **state)
{
    (void)state;
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

static void the_first_frame_of_a_pc_stands_for_all(void **state)
{
    (void)state;
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

static void equal_bytes_get_equal_numbers(void **state)
{
    (void)state;
    struct intern intern = {0};
    char key[5000] = {0};
    bool fresh;
    /* Zeros of each length, the empty one too. */
    for (unsigned size = 0; size < sizeof key; size++) {
        assert_int_equal(intern_put(&intern, key, size, &fresh), size + 1);
        assert_true(fresh);
    }
    for (unsigned size = 0; size < sizeof key; size++) {
        assert_int_equal(intern_put(&intern, key, size, &fresh), size + 1);
        assert_false(fresh);
    }
    key[16] = 1; /* copied: what is there does not change with it */
    assert_int_equal(intern_put(&intern, key, 17, &fresh), sizeof key + 1);
    intern_clear(&intern);
    assert_int_equal(intern_put(&intern, key, 17, &fresh), 1);
    assert_true(fresh);
    intern_free(&intern);
}

static void bytes_of_equal_hash_are_told_apart(void **state)
{
    (void)state;
    /* Two words of one hash, found by searching for 5,000,000,000 steps. */
    const uint64_t words[] = {UINT64_C(0x64e26de7e90ad22d), UINT64_C(0xf8797fa24a246ddc)};
    struct intern intern = {0};
    bool fresh;
    assert_int_equal(intern_put(&intern, &words[0], sizeof words[0], &fresh), 1);
    assert_int_equal(intern_put(&intern, &words[1], sizeof words[1], &fresh), 2);
    assert_true(fresh);
    assert_int_equal(intern.map.count, 1); /* or they are of one hash no more: search again */
    assert_int_equal(intern_put(&intern, &words[0], sizeof words[0], &fresh), 1);
    assert_int_equal(intern_put(&intern, &words[1], sizeof words[1], &fresh), 2);
    assert_false(fresh);
    intern_free(&intern);
}

static void headers_name_a_version_or_none(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_come_back_as_they_went),
        cmocka_unit_test(padded_numbers_are_legal_and_overlong_ones_are_not),
        cmocka_unit_test(the_id_map_forgets_what_is_removed),
        cmocka_unit_test(an_arena_gives_aligned_memory_that_stays),
        cmocka_unit_test(tables_take_dense_and_far_ids),
        cmocka_unit_test(the_first_frame_of_a_pc_stands_for_all),
        cmocka_unit_test(equal_bytes_get_equal_numbers),
        cmocka_unit_test(bytes_of_equal_hash_are_told_apart),
        cmocka_unit_test(headers_name_a_version_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
