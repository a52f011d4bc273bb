/*
 * The note of a Parquet file's footer, in footers written here byte by byte, as Thrift's compact
 * protocol describes them: good ones with all that other writers may add, and damaged ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "export/parquet_ids.h"

#include "../lib/unit.h"

/* Bytes of a text with \x escapes. */
#define BYTES(text) text, sizeof(text) - 1

/* version 1 (field 1, i32); two rows (field 3, i64), after it or first */
#define VERSION "\x15\x02"
#define ROWS    "\x26\x04"
#define FIRST   "\x36\x04"
/* Field 5 after field 3, a list of one structure: its key and its value. */
#define NOTE                                                                                       \
    "\x29\x1c\x18\x0ctrail_traces\x18\x05"                                                         \
    "a1,b2\x00"

/* Writes a file with this footer, of the stated size, and returns its note. */
static char *note_of_size(const char *footer, size_t size, size_t stated)
{
    char path[] = "/tmp/trail-parquet-ids-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    uint8_t end[4] = {(uint8_t)stated, (uint8_t)(stated >> 8), (uint8_t)(stated >> 16),
                      (uint8_t)(stated >> 24)};
    assert_int_equal(write(fd, "PAR1", 4), 4);
    assert_int_equal(write(fd, footer, size), (ssize_t)size);
    assert_int_equal(write(fd, end, 4), 4);
    assert_int_equal(write(fd, "PAR1", 4), 4);
    (void)close(fd);
    char *note = parquet_ids(path);
    (void)unlink(path);
    return note;
}

static char *note_of(const char *footer, size_t size)
{
    return note_of_size(footer, size, size);
}

static void has_note(const char *footer, size_t size)
{
    char *note = note_of(footer, size);
    assert_non_null(note);
    assert_string_equal(note, "a1,b2");
    free(note);
}

TEST(a_note_is_found)
{
    has_note(BYTES(VERSION ROWS NOTE "\x00"));
}

TEST(what_others_add_is_skipped)
{
    /* true, a byte, an i16, 8 bytes, a text, a list of booleans, a list of 15 lists, a structure;
     * then fields by their number. */
    has_note(BYTES("\x11\x13\x7f\x14\x03\x17"
                   "12345678\x18\x02xy\x19\x21\x01\x02"
                   "\x19\xf9\x0f\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06"
                   "\x1c\x11\x15\x02\x00"
                   "\x06\x06\x04" /* field 3 */
                   NOTE "\x18\x05other\x00"));
    /* An entry with another key, one without a value, and a third member. */
    has_note(BYTES(FIRST "\x29\x3c\x18\x01k\x18\x01v\x00\x18\x01k\x00"
                         "\x18\x0ctrail_traces\x18\x05"
                         "a1,b2\x15\x02\x00\x00"));
}

TEST(a_note_for_other_rows_does_not_count)
{
    assert_null(note_of(BYTES("\x36\x02" NOTE "\x00")));
    assert_null(note_of(BYTES("\x36\x06" NOTE "\x00")));
    assert_null(note_of(BYTES(NOTE "\x00")));
    assert_null(note_of(BYTES(FIRST "\x00")));
    assert_null(note_of(BYTES(FIRST "\x29\x1c\x18\x0ctrail_tracez\x18\x05"
                                    "a1,b2\x00\x00")));
}

TEST(every_cut_is_noticed)
{
    static const char whole[] = VERSION ROWS NOTE; /* its NUL ends the footer */
    for (size_t size = 0; size < sizeof whole; size++)
        assert_null(note_of(whole, size));
    has_note(whole, sizeof whole);
}

TEST(sizes_and_depths_are_bounded)
{
    char deep[64];
    assert_null(note_of_size(BYTES(VERSION ROWS NOTE "\x00"), 1000));
    assert_null(note_of_size(BYTES(VERSION ROWS NOTE "\x00"), 0xffffffff));
    assert_null(note_of(BYTES(FIRST "\x29\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")));
    assert_null(note_of(BYTES("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" NOTE)));
    assert_null(note_of(BYTES("\x1b\x00" ROWS NOTE "\x00"))); /* a map */
    memset(deep, 0x1c, sizeof deep); /* a structure in a structure in ... */
    assert_null(note_of(deep, sizeof deep));
    assert_null(parquet_ids("/"));
    assert_null(parquet_ids("/nonexistent"));
}
