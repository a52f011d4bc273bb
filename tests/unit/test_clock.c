/* The scale of the tracer's clock, by clocks of the test's own. */
#include "../lib/unit.h"
#include "host/clock.h"

static uint64_t host_ns;

static uint64_t read_host(void)
{
    return host_ns;
}

TEST(a_clock_of_the_host_counts_from_its_own_zero)
{
    struct clock clock = {.injected = read_host};
    clock_calibrate(&clock);
    host_ns = CLOCK_UNIT_NS;
    assert_int_equal(clock_units(&clock), 1);
    assert_int_equal(clock_v1_ticks(&clock), CLOCK_UNIT_NS / CLOCK_V1_DIVISOR);
    host_ns = UINT64_C(1000000007) * CLOCK_UNIT_NS - 1;
    assert_int_equal(clock_units(&clock), 1000000006);
}

TEST(a_time_before_the_calibration_is_that_of_the_calibration)
{
    struct clock clock = {
        .injected = read_host, .zero = 5000, .base = 70, .scale = (UINT64_C(1) << 32) / 50};
    host_ns = 4999;
    assert_int_equal(clock_units(&clock), 70);
    host_ns = 5101;
    assert_int_equal(clock_units(&clock), 70 + 2);
}

/* Each reading takes longer than the one before, but for the fourth pair. */
static uint64_t readings;

static uint64_t read_slowly(void)
{
    uint64_t pair = readings / 2;
    bool second = readings++ % 2;
    return 1000 * pair + (second ? pair == 3 ? 10 : 100 + pair : 0);
}

/* The time of the other clock is the number of the pair. */
int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
    (void)id;
    *time = (struct timespec){0, (long)(readings / 2)};
    return 0;
}

TEST(of_several_pairs_the_closest_is_taken)
{
    struct clock clock = {.injected = read_slowly};
    uint64_t ticks, ns;
    clock_pair(&clock, &ticks, &ns);
    assert_int_equal(ticks, 3005);
    assert_int_equal(ns, 3);
}
