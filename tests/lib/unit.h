/*
 * Tests in C that list themselves:
 *
 *   TEST(a_number_is_read)
 *   {
 *       assert_int_equal(read("12"), 12);
 *   }
 *
 * defines a test of cmocka and adds it to those that run_all_tests() runs, in the order of the
 * file. A program without a main of its own has one that runs all of them (unit_main.c).
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The priority keeps the order of the file: without it, it is the compiler's. */
#define TEST(title)                                                                                \
    static void title(void);                                                                       \
    static void title##_of(void **state)                                                           \
    {                                                                                              \
        (void)state;                                                                               \
        title();                                                                                   \
    }                                                                                              \
    __attribute__((constructor(1000 + __COUNTER__))) static void title##_adds(void)                \
    {                                                                                              \
        add_test(#title, title##_of);                                                              \
    }                                                                                              \
    static void title(void)

void add_test(const char *name, CMUnitTestFunction function);

/* Calls `before` and `after` for each test, if they are not NULL. */
void each_test(CMFixtureFunction before, CMFixtureFunction after);

/* Runs the tests that TRAIL_TEST_FILTER matches, or all; `begin` before the first and `end` after
 * the last, if they are not NULL. Returns the exit status. */
int run_all_tests(CMFixtureFunction begin, CMFixtureFunction end);
