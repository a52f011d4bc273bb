/* The list of generated code (jit.h) while it grows, is rewritten, and is replaced by another
 * file. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "base/arena.h"
#include "collect/jit.h"

static char path[64], other[64];
static struct arena arena;
static struct jit jit;

static void write_to(const char *file_path, const char *mode, const char *text)
{
    FILE *file = fopen(file_path, mode);
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Reads the file again, however recently it was read. NULL: no name. */
static const char *name_of(uint64_t address)
{
    static char name[64];
    const struct process process = {.pid = getpid()};
    trail_symbol symbol;
    jit.looked_ns = 0;
    if (!jit_find(&jit, &arena, &process, address, &symbol))
        return NULL;
    assert_in_range(symbol.function.size, 1, sizeof name - 1);
    memcpy(name, symbol.function.data, symbol.function.size);
    name[symbol.function.size] = '\0';
    return name;
}

TEST(lines_are_added)
{
    assert_null(name_of(0x1010));
    write_to(path, "w", "1000 20 one\n");
    assert_string_equal(name_of(0x1010), "one");
    write_to(path, "a", "2000 20 t");
    assert_null(name_of(0x2000));
    write_to(path, "a", "wo\n");
    assert_string_equal(name_of(0x2000), "two");
    assert_string_equal(name_of(0x101f), "one");
    assert_null(name_of(0x1020));
}

/* A line that begins in the middle of a line of the former list would give a different address if
 * only its rest were read. */
TEST(a_list_that_was_written_anew_is_read_from_its_beginning)
{
    write_to(path, "w", "1000 20 one\n2000 20 two\n");
    assert_string_equal(name_of(0x2000), "two");
    write_to(path, "w", "1000 20 one and more\n3000 20 three\n4000 20 four\n");
    assert_string_equal(name_of(0x3000), "three");
    assert_string_equal(name_of(0x4000), "four");
    assert_string_equal(name_of(0x1000), "one and more");
    assert_null(name_of(0x2000));
    write_to(path, "w", "5000 20 five\n");
    assert_string_equal(name_of(0x5000), "five");
    assert_null(name_of(0x3000));
}

TEST(another_file_in_its_place_is_read)
{
    write_to(path, "w", "1000 20 one\n");
    assert_string_equal(name_of(0x1000), "one");
    write_to(other, "w", "1000 20 one\n2000 20 two\n");
    assert_int_equal(rename(other, path), 0);
    assert_string_equal(name_of(0x2000), "two");
}

TEST(lists_that_are_replaced_again_and_again_are_not_read_for_ever)
{
    write_to(path, "w", "1000 20 one\n");
    assert_string_equal(name_of(0x1000), "one");
    jit.read_ever = UINT64_C(1) << 30;
    write_to(path, "w", "2000 20 another\n");
    assert_null(name_of(0x2000));
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    (void)snprintf(other, sizeof other, "/tmp/trail-%d.map", (int)getpid());
    (void)unlink(path);
    jit = (struct jit){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    jit_dispose(&jit);
    arena_free(&arena);
    return unlink(path);
}

int main(void)
{
    each_test(begin, end);
    return run_all_tests(NULL, NULL);
}
