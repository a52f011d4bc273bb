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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancellation_ends_the_wait),
        cmocka_unit_test(also_if_the_thread_sleeps_again_before_it_has_left_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
