/*
 * Pictures of lanes compared with sums computed span by span: each cell is right, no two overlap,
 * and only gaps are left out.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/unit.h"
#include "timeline/lane.h"

enum { SPANS = 500, MOST_WIDTH = 700 };

static uint64_t seed = 7;
static struct store store; /* of all lanes of a test */

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

struct truth {
    int64_t begin[SPANS + 1]; /* the last is the end of all spans */
    unsigned state[SPANS];
    size_t count;
};

static bool add(struct lane *lane, int64_t ns, unsigned state, uint32_t i)
{
    struct lane_span span = {.begin_ns = ns, .state = state, .reason = i * 7, .stack = i * 1000};
    span.other = i % 3 == 0 ? UINT32_MAX - i : 0;
    return lane_add(lane, &span, &store);
}

/* Adds spans of very different lengths, some of them 0, and sometimes trims the lane. In ns, or in
 * ticks, of which most lengths are not multiples. */
static void make(struct lane *lane, struct truth *truth)
{
    int64_t ns = (int64_t)draw(1000);
    lane->shift = draw(2) ? LANE_TICK_SHIFT : 0;
    truth->count = 1 + draw(SPANS - 1);
    for (size_t i = 0; i < truth->count; i++) {
        truth->begin[i] = ns;
        truth->state[i] = (unsigned)draw(TRAIL_SPAN_STATES);
        assert_true(add(lane, ns, truth->state[i], (uint32_t)i));
        if (draw(20) == 0)
            lane_trim(lane, &store);
        ns += (int64_t)draw(UINT64_C(1) << draw(20));
        if (draw(4) == 0)
            ns += 64 * (int64_t)draw(1000);
    }
    truth->begin[truth->count] = ns;
    assert_int_equal(lane_count(lane), truth->count);
}

static int64_t overlap(int64_t a, int64_t b, int64_t from, int64_t to)
{
    int64_t begin = a > from ? a : from, end = b < to ? b : to;
    return end > begin ? end - begin : 0;
}

static void sum(const struct truth *truth, int64_t from, int64_t to, int64_t ns[TRAIL_SPAN_STATES])
{
    memset(ns, 0, TRAIL_SPAN_STATES * sizeof *ns);
    for (size_t i = 0; i < truth->count; i++)
        ns[truth->state[i]] += overlap(truth->begin[i], truth->begin[i + 1], from, to);
}

static int64_t drawn(const int64_t ns[TRAIL_SPAN_STATES])
{
    int64_t all = 0;
    for (unsigned s = 1; s < TRAIL_SPAN_STATES; s++)
        all += ns[s];
    return all;
}

static void check_cell(const struct truth *truth, const trail_cell *cell)
{
    int64_t right[TRAIL_SPAN_STATES];
    sum(truth, cell->begin_ns, cell->end_ns, right);
    assert_true(cell->first < truth->count && cell->count >= 1);
    assert_true(cell->first + cell->count <= truth->count);
    for (unsigned s = 1; s < TRAIL_SPAN_STATES; s++)
        assert_int_equal(cell->ns[s], right[s]);
    if (cell->count == 1)
        assert_int_equal(cell->state, truth->state[cell->first]);
}

static void check_picture(const struct lane *lane, const struct truth *truth)
{
    static trail_cell cells[MOST_WIDTH];
    int64_t end = truth->begin[truth->count], whole[TRAIL_SPAN_STATES], found = 0, last;
    int64_t from = (int64_t)draw((uint64_t)end + 10), to = from + 1 + (int64_t)draw(1000);
    if (draw(2))
        to = from + 1 + (int64_t)draw((uint64_t)end + 10);
    if (draw(4) == 0) {
        from = 0;
        to = end + 1 + (int64_t)draw(1000);
    }
    size_t width = 1 + draw(MOST_WIDTH);
    size_t count = lane_cells(lane, end, from, to, width, cells);
    assert_true(count <= width);
    last = from;
    for (size_t i = 0; i < count; i++) {
        check_cell(truth, &cells[i]);
        assert_true(cells[i].begin_ns >= last && cells[i].end_ns <= to);
        last = cells[i].end_ns;
        found += drawn(cells[i].ns);
    }
    sum(truth, from, to, whole);
    assert_int_equal(found, drawn(whole));
}

TEST(test_pictures_tell_what_is_there)
{
    for (int n = 0; n < 300; n++) {
        struct lane lane = {0};
        struct truth truth;
        make(&lane, &truth);
        for (int i = 0; i < 30; i++)
            check_picture(&lane, &truth);
        lane_free(&lane);
    }
}

TEST(test_spans_are_found_by_time)
{
    struct lane lane = {0};
    struct truth truth;
    make(&lane, &truth);
    for (int64_t ns = 0; ns < truth.begin[truth.count]; ns += 1 + (int64_t)draw(500)) {
        uint64_t right = UINT64_MAX;
        for (size_t i = 0; i < truth.count && truth.begin[i] <= ns; i++)
            right = i;
        struct lane_position position;
        assert_int_equal(lane_find(&lane, ns, &position), right != UINT64_MAX);
        if (right == UINT64_MAX)
            continue;
        assert_int_equal(position.span, right);
        assert_int_equal(position.begin_ns, truth.begin[right]);
        assert_int_equal(position.state, truth.state[right]);
        int64_t sums[TRAIL_SPAN_STATES];
        sum(&truth, 0, ns, sums);
        for (unsigned s = 1; s < TRAIL_SPAN_STATES; s++)
            assert_int_equal(position.sums[s], sums[s]);
    }
    lane_free(&lane);
}

/* Checks that the cursor's next span is span `i` as `add` made it. */
static void check_span(const struct lane *lane, const struct truth *truth,
                       trail_span_cursor *cursor, size_t i)
{
    struct lane_span span;
    int64_t end;
    assert_true(lane_next(lane, cursor, truth->begin[truth->count], &span, &end));
    assert_int_equal(span.begin_ns, truth->begin[i]);
    assert_int_equal(end, truth->begin[i + 1]);
    assert_int_equal(span.state, truth->state[i]);
    bool can_wait = span.state == TRAIL_SPAN_WAITING || span.state == TRAIL_SPAN_SYSCALL ||
                    span.state == TRAIL_SPAN_BLOCKED;
    assert_int_equal(span.reason, can_wait ? i * 7 : 0);
    assert_int_equal(span.stack, i * 1000);
    assert_int_equal(span.other, i % 3 == 0 ? UINT32_MAX - i : 0);
}

TEST(test_spans_come_one_by_one_from_anywhere)
{
    for (int n = 0; n < 50; n++) {
        struct lane lane = {0};
        trail_span_cursor cursor;
        struct truth truth;
        make(&lane, &truth);
        for (int k = 0; k < 5; k++) {
            size_t first = draw(truth.count + 1);
            lane_seek(&lane, first, &cursor);
            for (size_t i = first; i < truth.count; i++)
                check_span(&lane, &truth, &cursor, i);
            struct lane_span span;
            int64_t end;
            assert_false(lane_next(&lane, &cursor, 0, &span, &end));
        }
        lane_free(&lane);
    }
}

/* A cursor continues at its position after spans were added, even if they were moved. */
TEST(test_a_cursor_outlives_what_is_added)
{
    struct lane lane = {0};
    trail_span_cursor cursor = {0};
    struct lane_span span;
    int64_t end;
    for (uint32_t i = 0; i < 1000; i++) {
        int64_t ns = INT64_C(10) * i;
        assert_true(add(&lane, ns, 1 + i % 5, i));
        assert_true(lane_next(&lane, &cursor, ns + 5, &span, &end));
        assert_int_equal(span.begin_ns, ns);
        assert_int_equal(span.stack, i * 1000);
        assert_int_equal(end, ns + 5);
        assert_false(lane_next(&lane, &cursor, 0, &span, &end));
    }
    lane_free(&lane);
}

TEST(test_what_a_span_carries)
{
    struct lane lane = {0};
    struct lane_span in[2] = {
        {.begin_ns = 10, .state = TRAIL_SPAN_WAITING, .reason = UINT32_MAX, .stack = 3, .other = 4},
        {.begin_ns = 5, .state = TRAIL_SPAN_RUNNING},
    };
    trail_span_cursor cursor = {0};
    struct lane_span span;
    int64_t end;
    assert_true(lane_add(&lane, &in[0], &store) && lane_add(&lane, &in[1], &store));
    assert_true(lane_next(&lane, &cursor, 20, &span, &end));
    assert_int_equal(span.reason, UINT32_MAX);
    assert_int_equal(span.stack, 3);
    assert_int_equal(span.other, 4);
    /* Time does not decrease. */
    assert_int_equal(end, 10);
    assert_true(lane_next(&lane, &cursor, 20, &span, &end));
    assert_int_equal(span.begin_ns, 10);
    assert_int_equal(span.stack, 0);
    assert_int_equal(end, 20);
    assert_true(store.bytes > 0);
    lane_free(&lane);
}

/* Two spans are in a second chunk, whose rows have the size of the first one's. */
TEST(test_a_trimmed_lane_takes_what_its_spans_take)
{
    struct lane lane = {0};
    lane_trim(&lane, &store);
    assert_int_equal(store.bytes, 0);
    for (uint32_t i = 0; i < LANE_CHUNK + 2; i++)
        assert_true(add(&lane, (int64_t)i * 10, TRAIL_SPAN_WAITING, i));
    size_t rooms = (size_t)lane.times_room + lane.details_room;
    size_t sizes = (size_t)lane.times_size + lane.details_size, before = store.bytes;
    lane_trim(&lane, &store);
    assert_true(rooms > 10 * sizes);
    assert_true(before - store.bytes >= rooms - sizes);
    before = store.bytes;
    lane_trim(&lane, &store);
    assert_int_equal(store.bytes, before);
    lane_free(&lane);
}

/* Five sums of one byte each; then 6,400 ns above five bits of flags take 18 bits, 100 ticks take
 * 12. */
TEST(test_times_in_ticks_take_less)
{
    static const struct {
        uint8_t shift;
        int64_t ns;
        uint16_t bytes;
    } cases[] = {{0, 6400, 3}, {LANE_TICK_SHIFT, 6400, 2}, {0, 6401, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lane lane = {.shift = cases[i].shift};
        for (uint32_t n = 0; n < 11; n++)
            assert_true(add(&lane, n * cases[i].ns, TRAIL_SPAN_RUNNING, n));
        assert_int_equal(lane.times_size, 5 + 1 + 10 * cases[i].bytes);
        lane_free(&lane);
    }
}

/* Spans beyond `memory` are in the file, if there can be one, and else in memory. */
TEST(test_what_memory_does_not_hold_is_in_a_file)
{
    static const char *const folders[] = {".", "/nonexistent"};
    enum { CHUNKS = 50 };
    for (int missing = 0; missing < 2; missing++) {
        struct lane lane = {0};
        trail_span_cursor cursor = {0};
        struct lane_span span;
        int64_t end;
        assert_int_equal(setenv("TMPDIR", folders[missing], 1), 0);
        store = (struct store){.memory = 1};
        for (uint32_t i = 0; i <= CHUNKS * LANE_CHUNK; i++)
            assert_true(add(&lane, i, TRAIL_SPAN_WAITING, i));
        assert_int_equal(store.block_count, missing ? 0 : 1);
        if (missing)
            assert_true(store.kept > (CHUNKS - 1) * LANE_CHUNK);
        else /* what comes first */
            assert_in_range(store.kept, 1, store.used / (CHUNKS - 2));
        for (uint32_t i = 0; i < CHUNKS * LANE_CHUNK; i++) {
            assert_true(lane_next(&lane, &cursor, INT64_MAX, &span, &end));
            assert_int_equal(span.stack, i * 1000);
        }
        lane_free(&lane);
        store_free(&store);
    }
    unsetenv("TMPDIR");
}

/* Half of the tests have all in a file, where one can be made. */
static int begin(void **state)
{
    (void)state;
    store = (struct store){.memory = draw(2) ? STORE_MEMORY : 0};
    return 0;
}

static int finish(void **state)
{
    (void)state;
    store_free(&store);
    return 0;
}

int main(void)
{
    each_test(begin, finish);
    return run_all_tests(NULL, NULL);
}
