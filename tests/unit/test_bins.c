/* Bins of counters compared with changes counted one by one, some of them for times long past. */
#include <stdint.h>

#include "../lib/unit.h"
#include "timeline/bins.h"

enum { CHANGES = 3000, CHECKED = 200 };

static uint64_t seed = 11;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

struct change {
    int64_t ns;
    int by;
};

/* The integral of all changes over [from_ns, to_ns). */
static int64_t integral(const struct change *changes, int64_t from_ns, int64_t to_ns)
{
    int64_t sum = 0;
    for (size_t i = 0; i < CHANGES; i++) {
        int64_t begin = changes[i].ns > from_ns ? changes[i].ns : from_ns;
        sum += begin < to_ns ? changes[i].by * (to_ns - begin) : 0;
    }
    return sum;
}

static void check(const struct bins *bins, const struct change *changes, int64_t end_ns)
{
    for (size_t k = 0; k < CHECKED; k++) {
        size_t i = (size_t)draw((uint64_t)(end_ns >> bins->shift) + 1);
        int64_t from_ns = (int64_t)i << bins->shift, to_ns = (int64_t)(i + 1) << bins->shift;
        to_ns = to_ns < end_ns ? to_ns : end_ns;
        assert_int_equal(bins->ns[i][TRAIL_COUNTER_WAITING], integral(changes, from_ns, to_ns));
        assert_int_equal(bins->ns[i][TRAIL_COUNTER_RUNNING], 0);
    }
}

/* `step`: the mean time between changes; a long one makes the bins outgrow themselves. */
static void try(int64_t step, unsigned flushed_each)
{
    static struct change changes[CHANGES];
    struct bins bins;
    int64_t now = 0;
    assert_true(bins_init(&bins));
    for (size_t i = 0; i < CHANGES; i++) {
        now += (int64_t)draw(2 * (uint64_t)step);
        /* One in three changes is for a time long past. */
        int64_t ns = draw(3) > 0 ? now : (int64_t)draw((uint64_t)now + 1);
        changes[i] = (struct change){ns, draw(4) > 0 ? 1 : -1};
        bins_change(&bins, TRAIL_COUNTER_WAITING, changes[i].by, ns);
        if (i % flushed_each == 0)
            bins_flush(&bins, now);
    }
    now += step;
    bins_flush(&bins, now);
    check(&bins, changes, now);
    bins_free(&bins);
}

TEST(test_bins_are_the_sums_of_all_changes)
{
    try(100, 7);
    try(3000, CHANGES + 1);
    try(1000 * 1000, 500);
}
