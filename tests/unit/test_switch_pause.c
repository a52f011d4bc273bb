/*
 * When recording of the kernel's context switches pauses because it costs too much, and what a
 * trace shows of that time.
 */
#include "area_by_hand.h"

#include "collect/switch_pause.h"

/* MARK: The decision */

#define RATE 1000

/*
 * Takes steps of 10 ms from `from_ms` on, in which the busiest CPU makes this many records, up to
 * the first step with a consequence. Returns its time in ms; 0: none within a minute.
 */
static int64_t first_step(struct switch_pause *pause, int64_t from_ms, uint64_t records,
                          enum switch_pause_step wanted)
{
    for (int64_t ms = from_ms; ms < from_ms + 60000; ms += 10) {
        enum switch_pause_step step =
            switch_pause_step(pause, ms * (int64_t)MS, pause->paused ? 0 : records);
        if (step == SWITCH_PAUSE_NOTHING)
            continue;
        assert_int_equal(step, wanted);
        return ms;
    }
    return 0;
}

/* A switch makes two records: 1,000 switches a second are 20 records in 10 ms. */
TEST(up_to_the_rate_there_is_no_pause)
{
    struct switch_pause pause = {.rate = RATE};
    assert_int_equal(first_step(&pause, 1000, 20, SWITCH_PAUSE_BEGINS), 0);
}

TEST(above_it_one_begins_after_a_window)
{
    struct switch_pause pause = {.rate = RATE};
    assert_int_equal(first_step(&pause, 1000, 25, SWITCH_PAUSE_BEGINS), 1050);
    assert_true(pause.paused);
}

/* A burst that the rest of its window compensates does not start a pause. */
TEST(the_rate_is_that_of_the_window)
{
    struct switch_pause pause = {.rate = RATE};
    assert_int_equal(switch_pause_step(&pause, 1000 * (int64_t)MS, 0), SWITCH_PAUSE_NOTHING);
    assert_int_equal(switch_pause_step(&pause, 1010 * (int64_t)MS, 90), SWITCH_PAUSE_NOTHING);
    assert_int_equal(switch_pause_step(&pause, 1050 * (int64_t)MS, 0), SWITCH_PAUSE_NOTHING);
}

TEST(without_a_limit_there_is_none)
{
    struct switch_pause pause = {0};
    assert_int_equal(first_step(&pause, 1000, 100000000, SWITCH_PAUSE_BEGINS), 0);
}

/* 4, 16, 16 s: the first after a window of 50 ms, the others after one of 20 ms. */
TEST(each_pause_is_four_times_as_long)
{
    struct switch_pause pause = {.rate = RATE};
    int64_t at = 1000;
    for (int64_t length = 4000, i = 0; i < 3; i++) {
        int64_t begin = first_step(&pause, at, 25, SWITCH_PAUSE_BEGINS);
        assert_int_equal(begin, at + (i == 0 ? 50 : 20));
        at = first_step(&pause, begin, 25, SWITCH_PAUSE_ENDS);
        assert_int_equal(at - begin, length);
        length = length < 16000 ? 4 * length : 16000;
    }
}

TEST(after_a_calm_time_it_is_short_again)
{
    struct switch_pause pause = {.rate = RATE};
    int64_t end, begin;
    for (end = 1000; pause.length_ns < SWITCH_PAUSE_MOST_NS;) {
        begin = first_step(&pause, end, 25, SWITCH_PAUSE_BEGINS);
        end = first_step(&pause, begin, 25, SWITCH_PAUSE_ENDS);
    }
    for (int64_t ms = end; ms <= end + 10000; ms += 10)
        assert_int_equal(switch_pause_step(&pause, ms * (int64_t)MS, 0), SWITCH_PAUSE_NOTHING);
    (void)first_step(&pause, end + 10010, 25, SWITCH_PAUSE_BEGINS);
    assert_int_equal(pause.length_ns, SWITCH_PAUSE_FIRST_NS);
}

/* If the events cannot be opened, it tries again later. */
TEST(a_pause_that_cannot_end_goes_on)
{
    struct switch_pause pause = {.rate = RATE};
    int64_t begin, end;
    begin = first_step(&pause, 1000, 25, SWITCH_PAUSE_BEGINS);
    end = first_step(&pause, begin, 25, SWITCH_PAUSE_ENDS);
    switch_pause_again(&pause, end * (int64_t)MS);
    assert_true(pause.paused);
    assert_int_equal(first_step(&pause, end, 25, SWITCH_PAUSE_ENDS), end + 16000);
}

/* MARK: The trace */

static void give(struct world *w, enum switch_kind kind, uint64_t ms)
{
    collect_switch(w->collect,
                   &(struct switch_record){
                       .ns = (int64_t)(OPENED + ms * MS), .pid = 0, .tid = 101, .kind = kind});
}

/* A step writes what the previous one has read. */
static void take_all(struct world *w)
{
    for (int i = 0; i < 2; i++) {
        now += 1000 * MS;
        step(w);
    }
}

/* The thread's call from 20 to 22 ms is a wait if the thread left its CPU, or if that is
 * unknown. */
static void call_at_20(struct world *w)
{
    begin_with(w, true);
    put_thread(w, 1);
    put(w, 1, wait_at(20));
}

TEST(where_switches_are_known_a_call_on_the_cpu_is_no_wait)
{
    struct world w;
    call_at_20(&w);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 0);
    assert_int_equal(w.summary.unseen_ns, 0);
}

TEST(a_call_that_spins_is_a_wait_on_the_cpu)
{
    struct world w;
    struct shm_record wait = wait_at(20);
    wait.wait = SHM_SPIN;
    begin_with(&w, true);
    put_thread(&w, 1);
    put(&w, 1, wait);
    put(&w, 1, record_at(SHM_EXITED, 50));
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_SPIN], 2 * MS);
    assert_int_equal(w.summary.spun_ns, 2 * MS);
    assert_in_range(w.summary.running_ns + w.summary.spun_ns, 49 * MS - 100, 49 * MS);
}

TEST(in_a_pause_the_program_decides)
{
    struct world w;
    call_at_20(&w);
    give(&w, SWITCH_LOST, 10);
    give(&w, SWITCH_FOUND, 30);
    put(&w, 1, wait_at(40));
    finish(&w);
    /* The wait at 20 ms, not the one at 40. */
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 2 * MS);
    assert_in_range(w.summary.unseen_ns, 20 * MS, 20 * MS + 1000);
}

/* The end of a pause is not known yet when the events in it are written. */
TEST(also_while_it_lasts)
{
    struct world w;
    call_at_20(&w);
    give(&w, SWITCH_LOST, 10);
    take_all(&w);
    give(&w, SWITCH_FOUND, 1030);
    put(&w, 1, wait_at(1040));
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 2 * MS);
    assert_in_range(w.summary.unseen_ns, 1020 * MS, 1020 * MS + 1000);
}

/* A program executed by the process during a pause takes over the span, and receives its begin
 * again. */
TEST(a_pause_that_begins_twice_ends_once)
{
    struct world w;
    call_at_20(&w);
    give(&w, SWITCH_LOST, 10);
    give(&w, SWITCH_LOST, 10);
    give(&w, SWITCH_FOUND, 30);
    put(&w, 1, wait_at(40));
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 2 * MS);
}

/* The records of one CPU are missing from 10 ms on, those of the other from 30 ms on: read in this
 * order or the other, it is one span. */
TEST(the_gap_of_another_cpu_may_begin_earlier)
{
    struct world w;
    call_at_20(&w);
    give(&w, SWITCH_LOST, 30);
    give(&w, SWITCH_LOST, 10);
    give(&w, SWITCH_FOUND, 35);
    put(&w, 1, wait_at(40));
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 2 * MS);
    assert_in_range(w.summary.unseen_ns, 25 * MS, 25 * MS + 1000);
}

TEST(a_gap_that_overlaps_the_last_continues_it)
{
    struct world w;
    call_at_20(&w);
    give(&w, SWITCH_LOST, 5);
    give(&w, SWITCH_FOUND, 15);
    give(&w, SWITCH_LOST, 12);
    give(&w, SWITCH_FOUND, 35);
    put(&w, 1, wait_at(40));
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 2 * MS);
    assert_in_range(w.summary.unseen_ns, 30 * MS - 1000, 30 * MS + 1000);
}

/* The next switch would have ended it. */
TEST(a_wait_that_no_call_explains_ends_with_them)
{
    struct world w;
    begin_with(&w, true);
    put_thread(&w, 1);
    put(&w, 1, record_at(SHM_EXITED, 50));
    give(&w, SWITCH_OUT, 20);
    give(&w, SWITCH_LOST, 25);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 5 * MS);
}

TEST(a_thread_that_was_preempted_runs)
{
    struct world w;
    begin_with(&w, true);
    put_thread(&w, 1);
    put(&w, 1, record_at(SHM_EXITED, 50));
    give(&w, SWITCH_PREEMPTED, 20);
    give(&w, SWITCH_LOST, 25);
    finish(&w);
    assert_in_range(w.summary.ready_ns, 5 * MS, 5 * MS + 1000);
}

/* Two logs, at its begin and end, in addition to those before the waits. */
TEST(the_trace_says_from_when_to_when)
{
    struct world w;
    call_at_20(&w);
    give(&w, SWITCH_LOST, 10);
    give(&w, SWITCH_FOUND, 30);
    put(&w, 1, wait_at(40));
    put(&w, 1, record_at(SHM_EXITED, 50));
    finish(&w);
    assert_int_equal(w.counts[TRAIL_LOG], 1 + 2);
}
