/* When a task, region or wait is reported as slow: at its end, or earlier, at twice its limit. */
#include <stdint.h>
#include <string.h>

#include "../lib/unit.h"
#include "collect/slow.h"
#include "shm/shm.h"

#define MS 1000000

static struct slow_event last;
static unsigned reports;

static void take(void *context, const struct slow_event *event)
{
    assert_ptr_equal(context, &reports);
    last = *event;
    reports++;
}

static const struct slow_limit limits[] = {
    {SLOW_TASK, "request", 0, 200 * MS},
    {SLOW_REGION, NULL, 0, 50 * MS},
    {SLOW_WAIT, NULL, UINT64_C(1) << SHM_MUTEX | UINT64_C(1) << SHM_SPIN, 10 * MS},
};

static struct slow all(void)
{
    reports = 0;
    return (struct slow){.limits = {limits, sizeof limits / sizeof *limits, take, &reports}};
}

static bool is_reported(struct slow *slow, const struct slow_candidate *candidate)
{
    unsigned before = reports;
    slow_look_at(slow, candidate);
    return reports > before;
}

TEST(at_its_end_if_it_took_longer)
{
    struct slow slow = all();
    struct slow_span span = {0};
    char line[SLOW_LINE];
    assert_false(is_reported(
        &slow, &(struct slow_candidate){SLOW_TASK, &span, "request", 0, true, 0, 200 * MS}));
    assert_true(is_reported(
        &slow, &(struct slow_candidate){SLOW_TASK, &span, "request", 0, true, 0, 200 * MS + 1}));
    assert_true(last.ended && !last.again);
    last.lasted_ns = 312 * MS;
    slow_line(&last, line);
    assert_string_equal(line, "task request took 312 ms (> 200 ms)");
}

TEST(the_name_is_that_of_the_limit)
{
    struct slow slow = all();
    struct slow_span span = {0};
    assert_false(is_reported(
        &slow, &(struct slow_candidate){SLOW_TASK, &span, "requests", 0, true, 0, 1000 * MS}));
    assert_true(is_reported(
        &slow, &(struct slow_candidate){SLOW_REGION, &span, "any", 0, true, 0, 1000 * MS}));
    assert_string_equal(last.text, "region any");
}

TEST(a_wait_is_of_one_of_the_kinds)
{
    struct slow slow = all();
    struct slow_span span = {0};
    struct slow_candidate wait = {SLOW_WAIT, &span, NULL, SHM_SPIN, true, 7, 11 * MS};
    assert_ptr_equal(slow_find(&slow, &wait), &limits[2]);
    wait.wait = SHM_COND;
    assert_null(slow_find(&slow, &wait));
}

/* The report of its end has the number of the first report, so that both refer to the same. */
TEST(without_an_end_at_twice_the_limit)
{
    struct slow slow = all();
    struct slow_span span = {0}, other = {0};
    char line[SLOW_LINE];
    uint64_t number;
    struct slow_candidate task = {SLOW_TASK, &span, "request", 0, false, 0, 400 * MS};
    assert_false(is_reported(&slow, &task));
    task.lasted_ns += SLOW_OPEN;
    assert_true(is_reported(&slow, &task));
    assert_true(!last.ended && !last.again);
    slow_line(&last, line);
    assert_string_equal(line, "task request has taken 400 ms (> 200 ms) and has not ended");
    number = last.number;
    task.lasted_ns *= 2;
    assert_false(is_reported(&slow, &task));
    assert_true(is_reported(
        &slow, &(struct slow_candidate){SLOW_TASK, &other, "request", 0, true, 0, 300 * MS}));
    assert_true(last.number != number);
    task.ended = true;
    assert_true(is_reported(&slow, &task));
    assert_true(last.ended && last.again);
    assert_int_equal(last.number, number);
}

TEST(open_ones_are_looked_at_from_time_to_time)
{
    struct slow slow = all(), none = {0};
    assert_true(slow_is_due(&slow, 1000 * MS));
    assert_false(slow_is_due(&slow, 1049 * MS));
    assert_true(slow_is_due(&slow, 1050 * MS));
    assert_false(slow_is_due(&none, 1000 * MS));
}
