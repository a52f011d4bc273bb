/* What a switch to a thread costs it, by counts of the kernel that the test makes up. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "../lib/unit.h"
#include "collect/switch_cost.h"

#define US 1000

/* What /proc/PID/task/TID/schedstat has. */
static int64_t kernel_ns, kernel_times;

bool __wrap_small_file_text(char *text, size_t size, const char *path, ...);
bool __wrap_small_file_text(char *text, size_t size, const char *path, ...)
{
    (void)path;
    snprintf(text, size, "%" PRId64 " 0 %" PRId64, kernel_ns, kernel_times);
    return true;
}

/* The thread runs this many times: `on` by the records, longer by the kernel. Then its count is
 * read. */
static void runs(struct switch_cost *cost, struct switch_costs *costs, int times, int64_t on,
                 int64_t longer)
{
    static int64_t now;
    for (int i = 0; i < times; i++) {
        switch_cost_in(cost, now += US);
        switch_cost_out(cost, now += on);
        kernel_ns += on + longer;
        kernel_times++;
    }
    switch_cost_read(cost, costs, 1, 1);
}

TEST(the_cost_is_that_since_the_last_reading)
{
    struct switch_cost cost = {0};
    struct switch_costs costs = {0};
    runs(&cost, &costs, 1, 10 * US, 10 * US);
    runs(&cost, &costs, 100, 10 * US, 10 * US);
    assert_int_equal(switch_cost_of(&cost, &costs), 10 * US);
    runs(&cost, &costs, 100, 10 * US, 40 * US);
    assert_int_equal(switch_cost_of(&cost, &costs), 40 * US);
}

TEST(a_thread_without_one_has_the_mean_of_the_program)
{
    struct switch_cost cost = {0}, other = {0};
    struct switch_costs costs = {0};
    runs(&cost, &costs, 1, 10 * US, 10 * US);
    runs(&cost, &costs, 100, 10 * US, 10 * US);
    runs(&cost, &costs, 100, 10 * US, 30 * US);
    assert_int_equal(switch_cost_of(&other, &costs), 15 * US); /* a quarter of the way */
}

TEST(each_thread_that_is_due_is_read_once)
{
    struct switch_costs costs = {0};
    for (uint64_t i = 0; i < 6; i++)
        switch_cost_want(&costs, 1 + i % 3);
    assert_int_equal(costs.count, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(costs.serials[i], 1 + i);
    for (uint64_t i = 0; i < 2 * SWITCH_COST_READS; i++)
        switch_cost_want(&costs, 10 + i);
    assert_int_equal(costs.count, SWITCH_COST_READS);
}
