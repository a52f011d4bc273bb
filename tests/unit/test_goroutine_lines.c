/* The lines in which a host describes its goroutines (wire/goroutine.h); a file may have anything
 * in their place. */

#include <string.h>

#include "../lib/unit.h"
#include "read/tables.h"

#define P GOROUTINE_PREFIX

static trail_string text_of(const char *text)
{
    return (trail_string){text, strlen(text)};
}

static void assert_text(trail_string text, const char *expected)
{
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
}

TEST(only_whole_lines_are_taken)
{
    static const char *const wrong[] = {
        P,
        P "id=",
        P "id=0",
        P "id=x",
        P "id=7x",
        P "id=18446744073709551616",
        P "id=-1",
        P "name=a",
        P "id=7\t",
        P "id=7\tcolour=red",
        P "id=7\tstack=",
        P "\tid=7",
    };
    struct identity identity;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(identity_parse(text_of(wrong[i]), &identity));
    assert_false(identity_parse(text_of("trail.goroutines\tid=7"), &identity));
    assert_true(identity_parse(text_of(P "id=18446744073709551615"), &identity));
    assert_true(identity.id == UINT64_MAX);
}

TEST(all_fields_are_read_and_written)
{
    static const char line[] = P "id=7\tchange=2\tstack=12\tkind=timer\tname=accept loop";
    struct identity identity;
    char room[IDENTITY_LINE];
    assert_true(identity_parse(text_of(line), &identity));
    assert_int_equal(identity.id, 7);
    assert_int_equal(identity.change, 2);
    assert_int_equal(identity.stack, 12);
    assert_text(identity.kind, "timer");
    assert_text(identity.name, "accept loop");
    assert_text(identity_line(&identity, room), line);
}

/* 1,024 bytes is the maximum length of strings in v2. */
TEST(the_longest_texts_have_room)
{
    char text[1024], room[IDENTITY_LINE];
    struct identity identity = {
        UINT64_MAX, UINT64_MAX, UINT64_MAX, {text, sizeof text}, {text, sizeof text}};
    trail_string line;
    memset(text, 'x', sizeof text);
    line = identity_line(&identity, room);
    assert_true(line.size < sizeof room && line.size <= 1024);
    assert_true(identity_parse(line, &identity));
    assert_int_equal(identity.name.size, IDENTITY_TEXT_MAX);
}

/* Strings have no order, and only hosts describe goroutines. */
TEST(the_newest_change_counts_in_traces_of_hosts)
{
    struct tables tables = {0};
    assert_true(tables_reset(&tables));
    assert_int_equal(tables_add_string(&tables, 1, text_of(P "id=7\tchange=3\tname=new")),
                     TABLE_OK);
    assert_int_equal(tables_add_string(&tables, 2, text_of(P "id=7\tchange=2\tstack=5\tname=old")),
                     TABLE_OK);
    assert_null(tables_goroutine(&tables, 7));
    assert_int_equal(tables_add_string(&tables, 3, text_of("trail.made by=record")), TABLE_OK);
    assert_null(tables_goroutine(&tables, 7));
    tables.maker.made_by = TRAIL_MADE_BY_HOST;
    assert_non_null(tables_goroutine(&tables, 7));
    assert_text(tables_goroutine(&tables, 7)->name, "new");
    assert_int_equal(tables_goroutine(&tables, 7)->stack, 5);
    assert_null(tables_goroutine(&tables, 8));
    /* Each generation has its own. */
    assert_true(tables_reset(&tables));
    assert_null(tables_goroutine(&tables, 7));
    tables_free(&tables);
}
