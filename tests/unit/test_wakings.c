/*
 * From when on a thread that the kernel wakes within a wait is ready, and by which thread.
 */
#include "area_by_hand.h"

#define US (MS / 1000)

/* What the kernel reports of the first thread, at a time in us. */
static void give(struct world *w, enum switch_kind kind, uint64_t us)
{
    collect_switch(w->collect, &(struct switch_record){
                                   .ns = (int64_t)(OPENED + us * US), .tid = 101, .kind = kind});
}

/* The first thread sleeps from 5.1 ms on; the second one runs until 20.2 ms. */
static void two_threads(struct world *w)
{
    begin_seen(w, true, true);
    put_thread(w, 1);
    put_thread(w, 2);
    give(w, SWITCH_OUT, 5100);
}

static void second_exits(struct world *w)
{
    struct shm_record exits = record_at(SHM_EXITED, 0);
    exits.time = OPENED + 20200 * US;
    put(w, 2, exits);
}

/* The first thread is cancelled by the second one at 20 ms, in a read that it leaves at `end_us`. */
static void cancelled_in_read(struct world *w, uint64_t end_us)
{
    struct shm_record cancels = record_at(SHM_RELEASED, 20), reads = wait_at(5);
    two_threads(w);
    cancels.wait = SHM_JOIN;
    cancels.object = 1; /* the handle of the first thread: see put_thread */
    cancels.flags = SHM_ALL;
    cancels.release = 1;
    put(w, 2, cancels);
    second_exits(w);
    reads.wait = SHM_READ;
    reads.end = OPENED + end_us * US;
    reads.flags = SHM_LEFT;
    reads.release = 1;
    put(w, 1, reads);
    put(w, 1, record_at(SHM_EXITED, 30));
}

static void a_cancellation_ends_the_wait(void **state)
{
    struct world w;
    (void)state;
    cancelled_in_read(&w, 20600);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_READ], 14910 * US);
    assert_int_equal(w.summary.ready_ns, 490 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* What it sleeps in while its stack is unwound is not the read. */
static void also_if_the_thread_sleeps_again_before_it_has_left_the_call(void **state)
{
    struct world w;
    (void)state;
    cancelled_in_read(&w, 23000);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    give(&w, SWITCH_OUT, 21000);
    give(&w, SWITCH_WOKEN, 22000);
    give(&w, SWITCH_IN, 22100);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_READ], 14910 * US);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 1000 * US);
    assert_int_equal(w.summary.ready_ns, 590 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* The kernel's clock has the next sleep a little before the thread's own has the call's end. */
static void a_sleep_right_after_the_call_is_not_in_it(void **state)
{
    struct shm_record unlocks = record_at(SHM_RELEASED, 20), locks = wait_at(5);
    struct world w;
    (void)state;
    two_threads(&w);
    unlocks.wait = SHM_MUTEX;
    unlocks.object = locks.object;
    unlocks.release = 1;
    put(&w, 2, unlocks);
    second_exits(&w);
    locks.end = OPENED + 20510 * US;
    locks.release = 1;
    put(&w, 1, locks);
    put(&w, 1, record_at(SHM_EXITED, 30));
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    give(&w, SWITCH_OUT, 20508);
    give(&w, SWITCH_WOKEN, 29000);
    give(&w, SWITCH_IN, 29100);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 14910 * US);
    assert_in_range(w.summary.wait_ns[SHM_KERNEL], 8490 * US, 8492 * US);
    assert_int_equal(w.summary.ready_ns, 590 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* The first thread waits for the semaphore that the second one posts at 20 ms; what happens after
 * 300 ms is not recorded yet, but written as far as it is known. */
static void posted_and_not_back(struct world *w)
{
    struct shm_record posts = record_at(SHM_RELEASED, 20);
    two_threads(w);
    w->memory->threads[1].open_wait = SHM_SEMAPHORE;
    w->memory->threads[1].open_object = 0x1000;
    w->memory->threads[1].open_time = OPENED + 5 * MS;
    posts.wait = SHM_SEMAPHORE;
    posts.object = 0x1000;
    posts.release = 1;
    put(w, 2, posts);
    put(w, 2, record_at(SHM_NAMED, 21));
    give(w, SWITCH_WOKEN, 20010);
    for (now = OPENED + 100 * MS; now < OPENED + 500 * MS; now += 100 * MS)
        step(w);
}

static void a_woken_thread_that_is_late_has_its_waker(void **state)
{
    struct shm_record waits = wait_at(5);
    struct world w;
    (void)state;
    posted_and_not_back(&w);
    waits.wait = SHM_SEMAPHORE;
    waits.end = OPENED + 560 * MS;
    waits.release = 1;
    put(&w, 1, waits);
    w.memory->threads[1].open_time = 0;
    give(&w, SWITCH_IN, 550000);
    now += 500 * MS;
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_SEMAPHORE], 14910 * US);
    assert_int_equal(w.summary.ready_ns, 529990 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* It is waited for no longer than releases are kept. */
static void no_thread_delays_the_others_for_long(void **state)
{
    struct world w;
    uint64_t before;
    (void)state;
    posted_and_not_back(&w);
    before = w.size;
    now += 1000 * MS;
    step(&w);
    trace_cut(w.to);
    assert_true(w.size > before);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_SEMAPHORE], 14910 * US);
    assert_int_equal(w.woken, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancellation_ends_the_wait),
        cmocka_unit_test(also_if_the_thread_sleeps_again_before_it_has_left_the_call),
        cmocka_unit_test(a_sleep_right_after_the_call_is_not_in_it),
        cmocka_unit_test(a_woken_thread_that_is_late_has_its_waker),
        cmocka_unit_test(no_thread_delays_the_others_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
