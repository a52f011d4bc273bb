/* The lines that count what a recording took and missed (src/read/recorded.h). */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "../lib/unit.h"
#include "read/recorded.h"

static trail_string text_of(const char *text)
{
    return (trail_string){text, strlen(text)};
}

TEST(a_row_is_read_as_it_was_written)
{
    char line[RECORDED_LINE], name[RECORDED_NAME_MAX + 100];
    memset(name, 'n', sizeof name);
    static const trail_string names[] = {{"", 0}, {"sort -n", 7}, {" a name=b\n", 10}};
    for (int what = TRAIL_RECORDED_RECORDER; what <= TRAIL_RECORDED_SLOW; what++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            trail_recorded row = {(trail_recorded_what)what, 4711, 3, 12345678901, 17, names[i]},
                           read;
            assert_true(recorded_parse(recorded_line(&row, line), &read));
            assert_int_equal(read.what, what);
            assert_int_equal(read.pid, 4711);
            assert_int_equal(read.count, 3);
            assert_int_equal(read.cpu_ns, 12345678901);
            assert_int_equal(read.recorder_ns, 17);
            assert_int_equal(read.name.size, names[i].size);
            assert_memory_equal(read.name.data, names[i].data, names[i].size);
        }
    trail_recorded row = {TRAIL_RECORDED_MISSED, 1, 0, -1, 0, {name, sizeof name}}, read;
    assert_true(recorded_parse(recorded_line(&row, line), &read));
    assert_int_equal(read.cpu_ns, 0);
    assert_int_equal(read.name.size, RECORDED_NAME_MAX);
}

TEST(what_only_looks_like_a_row_is_none)
{
    static const char *const lines[] = {
        "",
        "trail.recorded ",
        "trail.recorded process",
        "trail.recorded process pid=1 count=1 cpu=1 recorder=1 name",
        "trail.recorded process pid=1 count=1 cpu=1 recorder=1name=x",
        "trail.recorded process pid= count=1 cpu=1 recorder=1 name=x",
        "trail.recorded process pid=-1 count=1 cpu=1 recorder=1 name=x",
        "trail.recorded process pid=1 count=1 cpu=1234567890123456789 recorder=1 name=x",
        "trail.recorded processes pid=1 count=1 cpu=1 recorder=1 name=x",
        "trail.recorded nothing pid=1 count=1 cpu=1 recorder=1 name=x",
        "trail.recorded process count=1 pid=1 cpu=1 recorder=1 name=x",
    };
    trail_recorded row;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_false(recorded_parse(text_of(lines[i]), &row));
}

TEST(rows_keep_their_names)
{
    struct recorded_rows rows = {0};
    char line[] = "trail.recorded missed pid=7 count=0 cpu=0 recorder=0 name=true";
    assert_true(recorded_add(&rows, text_of(line)));
    assert_true(recorded_add(&rows, text_of("trail.recorded ?")));
    memset(line, 'x', sizeof line - 1);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.at[0].name.size, 4);
    assert_memory_equal(rows.at[0].name.data, "true", 4);
    recorded_free(&rows);
}
