/*
 * Output files of commands: they appear complete or not at all, and a failure is an error with a
 * complete message, and prints nothing. Reasons are the C library's texts for errno (strerror(3)).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "base/output.h"

static char folder[256];

/* Returns a path in the folder; valid until the next call but one. */
static const char *in_folder(const char *name)
{
    static char paths[2][512];
    static unsigned turn;
    char *path = paths[turn++ % 2];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void expect_file(const char *name, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(in_folder(name), "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof found - 1, file)] = '\0';
    (void)fclose(file);
    assert_string_equal(found, text);
}

static unsigned count_files(void)
{
    unsigned count = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    while (readdir(open))
        count++;
    (void)closedir(open);
    return count - 2; /* . and .. */
}

static void write_text(struct output *output, const char *text)
{
    trail_sink sink = output_sink(output);
    assert_true(sink.write(sink.context, text, strlen(text)));
}

static void expect_error(const trail_error *err, const char *path, int reason, const char *more)
{
    char want[1024], where[64];
    (void)snprintf(want, sizeof want, "cannot write %s: %s%s", path, strerror(reason), more);
    assert_int_equal(err->code, TRAIL_IO);
    assert_string_equal(err->message, want);
    assert_string_equal(trail_error_where(err, where, sizeof where), "");
}

/* MARK: Errors */

TEST(an_error_says_which_file_and_why)
{
    struct output output;
    trail_error err;
    assert_false(output_open(&output, in_folder("no/file"), &err));
    expect_error(&err, in_folder("no/file"), ENOENT, "");
    assert_false(output_open_beside(&output, in_folder("no/file"), &err));
    expect_error(&err, in_folder("no/file"), ENOENT, "");
    assert_false(output_open(&output, folder, &err));
    expect_error(&err, folder, EISDIR, "");
}

TEST(a_lost_write_is_returned_when_it_is_closed)
{
    struct output output;
    trail_error err;
    assert_true(output_open_beside(&output, "/dev/full", &err));
    trail_sink sink = output_sink(&output);
    assert_false(sink.write(sink.context, "x", 1));
    assert_int_equal(output.reason, ENOSPC);
    assert_false(output_close(&output, "/dev/full", true, &err));
    expect_error(&err, "/dev/full", ENOSPC, "");
    assert_int_equal(access("/dev/full", F_OK), 0);
}

TEST(a_reader_that_went_away_is_named)
{
    char path[64];
    int ends[2];
    struct output output;
    trail_error err;
    assert_int_equal(pipe(ends), 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    assert_true(output_open(&output, path, &err));
    (void)close(ends[0]);
    trail_sink sink = output_sink(&output);
    assert_false(sink.write(sink.context, "x", 1));
    assert_false(output_close(&output, path, true, &err));
    expect_error(&err, path, EPIPE, ": its reader has gone");
    (void)close(ends[1]);
}

/* The next opened file gets the same descriptor. */
TEST(nothing_is_written_after_the_end)
{
    struct output output;
    trail_error err;
    assert_true(output_open(&output, in_folder("file"), &err));
    assert_true(output_close(&output, in_folder("file"), true, &err));
    int other = open(in_folder("other"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    trail_sink sink = output_sink(&output);
    assert_false(sink.write(sink.context, "x", 1));
    assert_int_equal(output.reason, EBADF);
    expect_file("other", "");
    (void)close(other);
    assert_int_equal(unlink(in_folder("file")), 0);
    assert_int_equal(unlink(in_folder("other")), 0);
}

TEST(the_reason_has_room_behind_any_name)
{
    char title[2048];
    const char *why = strerror(ENOSPC);
    /* Characters of two bytes, so that a cut may be inside of one. */
    for (size_t i = 0; i < sizeof title; i += 2)
        memcpy(title + i, "\xc3\xa9", 2);
    for (size_t size = 400; size < sizeof title; size += size < 520 ? 1 : 500) {
        trail_error err;
        size_t whole = strlen("cannot write : ") + size + strlen(why);
        const char *begin = title + sizeof title - 1 - size, *name = err.message + 13;
        title[sizeof title - 1] = '\0';
        assert_false(output_error(&err, begin, ENOSPC));
        size_t length = strlen(err.message), rest = length - strlen(why);
        assert_memory_equal(err.message, "cannot write ", 13);
        assert_string_equal(err.message + rest, why);
        assert_memory_equal(err.message + rest - 2, ": ", 2);
        if (whole < sizeof err.message) {
            assert_int_equal(length, whole);
            continue;
        }
        assert_memory_equal(name, "...\xc3", 4);
        assert_true(length >= sizeof err.message - 2);
        assert_memory_equal(name + 3, title + sizeof title - 1 - (rest - 2 - 16), rest - 2 - 16);
    }
}

/* MARK: Whole or not at all */

TEST(a_file_beside_appears_when_it_is_complete)
{
    struct output output;
    trail_error err;
    for (int old = 0; old < 2; old++) {
        if (old)
            put_file("file", "old");
        assert_true(output_open_beside(&output, in_folder("file"), &err));
        write_text(&output, "half");
        assert_true(output_close(&output, in_folder("file"), false, &err));
        assert_int_equal(count_files(), old);
        if (old)
            expect_file("file", "old");
        assert_true(output_open_beside(&output, in_folder("file"), &err));
        write_text(&output, "whole");
        assert_int_equal(access(in_folder("file"), F_OK), old - 1);
        assert_true(output_close(&output, in_folder("file"), true, &err));
        expect_file("file", "whole");
        assert_int_equal(count_files(), 1);
        assert_int_equal(unlink(in_folder("file")), 0);
    }
}

TEST(a_file_of_its_own_name_goes_if_it_was_not_made)
{
    struct output output;
    trail_error err;
    assert_true(output_open(&output, in_folder("file"), &err));
    assert_true(output_close(&output, in_folder("file"), false, &err));
    assert_int_equal(count_files(), 0);
}

TEST(several_files_get_their_names_one_by_one)
{
    struct output one, other;
    trail_error err;
    put_file("one", "old");
    assert_int_equal(mkdir(in_folder("other"), 0777), 0);
    assert_true(output_open_beside(&one, in_folder("one"), &err));
    write_text(&one, "new");
    assert_true(output_open_beside(&other, in_folder("third"), &err));
    assert_true(output_settle(&one, in_folder("one"), &err));
    assert_true(output_settle(&other, in_folder("third"), &err));
    expect_file("one", "old");
    assert_true(output_name(&one, in_folder("one"), &err));
    expect_file("one", "new");
    /* A folder now has that name. */
    assert_false(output_name(&other, in_folder("other"), &err));
    expect_error(&err, in_folder("other"), EISDIR, "");
    output_drop(&one);
    output_drop(&other);
    assert_int_equal(count_files(), 2);
    assert_int_equal(unlink(in_folder("one")), 0);
    assert_int_equal(rmdir(in_folder("other")), 0);
}

/* MARK: Running */

/* Captures stderr while a test runs. */
static int saved_stderr;

static int begin(void **state)
{
    FILE *file = tmpfile();
    *state = file;
    saved_stderr = dup(STDERR_FILENO);
    return !file || saved_stderr < 0 || dup2(fileno(file), STDERR_FILENO) < 0;
}

static int end(void **state)
{
    FILE *file = *state;
    int c, count = 0;
    (void)fflush(stderr);
    (void)dup2(saved_stderr, STDERR_FILENO);
    (void)close(saved_stderr);
    rewind(file);
    for (; (c = fgetc(file)) != EOF; count++)
        fputc(c, stderr);
    (void)fclose(file);
    return count > 0;
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    (void)signal(SIGPIPE, SIG_IGN);
    (void)snprintf(folder, sizeof folder, "%s/trail-output-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    each_test(begin, end);
    int failed = run_all_tests(NULL, NULL);
    (void)rmdir(folder);
    return failed;
}
