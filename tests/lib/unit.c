/* The list of tests that TEST() makes: see unit.h. */
#include "unit.h"

#include <stdlib.h>

enum { MOST = 128 };

static struct CMUnitTest tests[MOST]; /* cmocka skips rows without a function */
static size_t count;

void add_test(const char *name, CMUnitTestFunction function)
{
    if (count == MOST)
        abort();
    tests[count++] = (struct CMUnitTest){.name = name, .test_func = function};
}

void each_test(CMFixtureFunction before, CMFixtureFunction after)
{
    for (size_t i = 0; i < count; i++) {
        tests[i].setup_func = before;
        tests[i].teardown_func = after;
    }
}

int run_all_tests(CMFixtureFunction begin, CMFixtureFunction end)
{
    cmocka_set_test_filter(getenv("TRAIL_TEST_FILTER"));
    return cmocka_run_group_tests(tests, begin, end);
}
