/*
 * Partial reads and writes. The test replaces the C library's calls; it interrupts them, and makes
 * them transfer only a part, as pread(2) and pwrite(2) may.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "base/file.h"

static struct {
    size_t most; /* maximum bytes that a call transfers */
    unsigned calls;
} kernel;

/* Interrupts every other call. */
static bool interrupts(void)
{
    errno = EINTR;
    return kernel.calls++ % 2 == 1;
}

#define WRAP(name, buffer)                                                                         \
    ssize_t __real_##name(int fd, buffer data, size_t size, off_t place);                          \
    ssize_t __wrap_##name(int fd, buffer data, size_t size, off_t place);                          \
    ssize_t __wrap_##name(int fd, buffer data, size_t size, off_t place)                           \
    {                                                                                              \
        if (interrupts())                                                                          \
            return -1;                                                                             \
        return __real_##name(fd, data, size < kernel.most ? size : kernel.most, place);            \
    }
WRAP(pread, void *)
WRAP(pread64, void *)
WRAP(pwrite, const void *)
WRAP(pwrite64, const void *)

TEST(pieces_become_a_whole)
{
    for (kernel.most = 1; kernel.most <= 13; kernel.most++) {
        FILE *file = tmpfile();
        char buf[16] = "";
        assert_non_null(file);
        int fd = fileno(file);
        assert_true(file_write_at(fd, "world", 5, 7));
        assert_true(file_write_at(fd, "hello, ", 7, 0));
        assert_int_equal(file_read_at(fd, buf, 12, 0), 12);
        assert_memory_equal(buf, "hello, world", 12);
        memset(buf, 0, sizeof buf);
        assert_int_equal(file_read_at(fd, buf, 7, 0), 7);
        assert_string_equal(buf, "hello, "); /* and nothing after it */
        assert_int_equal(file_read_at(fd, buf, 5, 7), 5);
        assert_memory_equal(buf, "world", 5);
        fclose(file);
    }
    assert_true(kernel.calls > 26); /* the replacements were called */
}

TEST(an_end_is_no_error)
{
    FILE *file = tmpfile();
    char buf[16] = "";
    assert_non_null(file);
    kernel.most = SIZE_MAX;
    assert_true(file_write_at(fileno(file), "end", 3, 0));
    assert_int_equal(file_read_at(fileno(file), buf, sizeof buf, 1), 2);
    assert_memory_equal(buf, "nd", 2);
    assert_int_equal(file_read_at(fileno(file), buf, sizeof buf, 3), 0);
    fclose(file);
}

TEST(an_error_is_no_end)
{
    int ends[2];
    char buf[4] = "";
    kernel.most = SIZE_MAX;
    assert_int_equal(pipe(ends), 0); /* which has no places */
    assert_int_equal(file_read_at(ends[0], buf, sizeof buf, 0), -1);
    assert_int_equal(errno, ESPIPE);
    assert_false(file_write_at(ends[1], buf, sizeof buf, 0));
    assert_int_equal(errno, ESPIPE);
    close(ends[0]);
    close(ends[1]);
}
