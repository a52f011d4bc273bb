/*
 * When the reading of a trace pauses: while a page opens, once there is something to draw. The
 * clock is the test's; it advances only while the reader sleeps.
 */
#include <stdint.h>
#include <time.h>

#include "../lib/unit.h"
#include "serve/rest.h"

enum { REST_MS = 500 };

static int64_t now_ns = INT64_C(1000000000), slept_ns;
static const char *v2, *v1;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *at);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

int __wrap_clock_gettime(clockid_t clock, struct timespec *at)
{
    (void)clock;
    *at = (struct timespec){.tv_sec = now_ns / 1000000000, .tv_nsec = now_ns % 1000000000};
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    (void)rest;
    slept_ns += time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
    now_ns += time->tv_sec * INT64_C(1000000000) + time->tv_nsec;
    return 0;
}
/* NOLINTEND(bugprone-reserved-identifier) */

struct opened {
    struct intake *intake;
    struct model *model;
    struct rest rest;
};

static struct opened open_trace(const char *path)
{
    const struct intake_options options = {.path = path};
    trail_error err;
    struct opened opened = {.intake = intake_open(&options, &err)};
    assert_non_null(opened.intake);
    opened.model = model_open(opened.intake, NULL, &err);
    assert_non_null(opened.model);
    slept_ns = 0;
    return opened;
}

static void close_trace(struct opened *opened)
{
    model_close(opened->model);
    intake_close(opened->intake);
}

static size_t goroutines(struct model *model)
{
    struct model_status status;
    model_get_status(model, &status);
    return status.lane_counts[TRAIL_LANE_GOROUTINE];
}

static bool read_on(struct opened *opened)
{
    rest_before_reading(&opened->rest, opened->model);
    return model_read(opened->model);
}

static void read_until_it_draws(struct opened *opened)
{
    while (goroutines(opened->model) == 0)
        assert_true(read_on(opened));
}

static int64_t slept_in_next(struct opened *opened)
{
    slept_ns = 0;
    (void)read_on(opened);
    return slept_ns;
}

TEST(reading_rests_while_a_page_opens)
{
    struct opened opened = open_trace(v2);
    read_until_it_draws(&opened);
    assert_int_equal(slept_ns, 0);
    rest_begin(&opened.rest, REST_MS);
    assert_int_equal(slept_in_next(&opened), REST_MS * INT64_C(1000000));
    assert_int_equal(slept_in_next(&opened), 0);
    close_trace(&opened);
}

TEST(it_goes_on_when_the_page_has_its_picture)
{
    struct opened opened = open_trace(v2);
    read_until_it_draws(&opened);
    rest_begin(&opened.rest, REST_MS);
    rest_end(&opened.rest);
    assert_int_equal(slept_in_next(&opened), 0);
    close_trace(&opened);
}

TEST(it_does_not_rest_with_nothing_to_draw)
{
    struct opened opened = open_trace(v2);
    rest_begin(&opened.rest, REST_MS);
    read_until_it_draws(&opened);
    assert_int_equal(slept_ns, 0);
    assert_int_equal(slept_in_next(&opened), REST_MS * INT64_C(1000000));
    close_trace(&opened);
}

TEST(it_does_not_rest_for_each_page)
{
    struct opened opened = open_trace(v2);
    read_until_it_draws(&opened);
    rest_begin(&opened.rest, REST_MS);
    assert_int_equal(slept_in_next(&opened), REST_MS * INT64_C(1000000));
    now_ns += INT64_C(9000000000);
    rest_begin(&opened.rest, REST_MS);
    assert_int_equal(slept_in_next(&opened), 0);
    now_ns += INT64_C(1000000000);
    rest_begin(&opened.rest, REST_MS);
    assert_int_equal(slept_in_next(&opened), REST_MS * INT64_C(1000000));
    close_trace(&opened);
}

/* What a v1 trace shows is known only at its end. */
TEST(traces_of_v1_do_not_rest)
{
    struct opened opened = open_trace(v1);
    rest_begin(&opened.rest, REST_MS);
    while (read_on(&opened))
        continue;
    assert_int_equal(slept_ns, 0);
    close_trace(&opened);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    v2 = argv[1];
    v1 = argv[2];
    return run_all_tests(NULL, NULL);
}
