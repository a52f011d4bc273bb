/* When a thread that the kernel wakes within a wait becomes ready, and which thread woke it. */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "area_by_hand.h"
#include "collect/parts.h"
#include "collect/wakings.h"

#define US (MS / 1000)

/* Adds a report of the kernel about the first thread, at a time in us. */
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

/* The second thread cancels the first one at 20 ms, in a read that it leaves at `end_us`. */
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

TEST(a_cancellation_ends_the_wait)
{
    struct world w;
    cancelled_in_read(&w, 20600);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_READ], 14910 * US);
    assert_int_equal(w.summary.ready_ns, 490 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* The sleep while its stack is unwound is not part of the read. */
TEST(also_if_the_thread_sleeps_again_before_it_has_left_the_call)
{
    struct world w;
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

/* The first thread waits for a mutex that the second one unlocks, and acquires it at `end_us`. */
static void put_unlocked_at(struct world *w, uint64_t unlock_us, uint64_t end_us)
{
    struct shm_record unlocks = record_at(SHM_RELEASED, 20), locks = wait_at(5);
    unlocks.wait = SHM_MUTEX;
    unlocks.object = locks.object;
    unlocks.release = 1;
    unlocks.time = OPENED + unlock_us * US;
    put(w, 2, unlocks);
    second_exits(w);
    locks.end = OPENED + end_us * US;
    locks.release = 1;
    put(w, 1, locks);
    put(w, 1, record_at(SHM_EXITED, 30));
}

static void unlocked_at(struct world *w, uint64_t unlock_us, uint64_t end_us)
{
    two_threads(w);
    put_unlocked_at(w, unlock_us, end_us);
}

/* The first thread waits for a condition until its time limit at 15 ms, and leaves the call at 20.6
 * ms; the second one unlocks the mutex at 20 ms, or not at all. */
static void condition_to_15(struct world *w, bool unlocks)
{
    struct shm_record unlocked = record_at(SHM_RELEASED, 20), waits = wait_at(5);
    two_threads(w);
    waits.wait = SHM_COND;
    waits.object2 = waits.object + 64;
    waits.flags = SHM_TIMED_OUT | SHM_EXPIRED;
    waits.release = 10000; /* us */
    waits.release2 = 1;
    waits.end = OPENED + 20600 * US;
    unlocked.wait = SHM_MUTEX;
    unlocked.object = waits.object2;
    unlocked.release = 1;
    if (unlocks)
        put(w, 2, unlocked);
    second_exits(w);
    put(w, 1, waits);
    put(w, 1, record_at(SHM_EXITED, 30));
    give(w, SWITCH_WOKEN, 15060);
}

static void logs(const struct world *w, const char *second, uint64_t count)
{
    assert_int_equal(w->counts[TRAIL_LOG], count);
    assert_memory_equal(w->logged[0], "condition ", 10);
    assert_string_equal(w->logged[1], second);
}

TEST(a_time_out_is_logged_after_its_wait)
{
    struct world w;
    for (int unlocks = 0; unlocks < 2; unlocks++) {
        condition_to_15(&w, unlocks);
        give(&w, SWITCH_IN, 20500); /* it found the mutex free */
        step(&w);
        finish(&w);
        assert_int_equal(w.summary.wait_ns[SHM_COND], 9960 * US);
        assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 0);
        logs(&w, "timed out", 2);
    }
}

TEST(also_if_a_wait_for_the_mutex_follows)
{
    struct world w;
    condition_to_15(&w, true);
    give(&w, SWITCH_IN, 15100);
    give(&w, SWITCH_OUT, 15200);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    step(&w);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_COND], 9960 * US);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 4810 * US);
    logs(&w, "timed out", 3);
    assert_memory_equal(w.logged[2], "mutex ", 6);
}

/* The second thread still has the mutex, which the recorder does not know because the wait began
 * before the recording. */
TEST(a_sleep_after_the_signal_is_not_for_the_condition)
{
    struct shm_record signals = record_at(SHM_RELEASED, 20), waits = wait_at(5);
    struct world w;
    two_threads(&w);
    signals.wait = waits.wait = SHM_COND;
    signals.object = waits.object;
    signals.release = waits.release = 1;
    waits.end = OPENED + 24200 * US;
    put(&w, 2, signals);
    second_exits(&w);
    put(&w, 1, waits);
    put(&w, 1, record_at(SHM_EXITED, 30));
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    give(&w, SWITCH_OUT, 20600);
    give(&w, SWITCH_WOKEN, 24000);
    give(&w, SWITCH_IN, 24100);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_COND], 14910 * US);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 3400 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* By the kernel's clock, the next sleep begins slightly before the call ends by the thread's
 * clock. */
TEST(a_sleep_right_after_the_call_is_not_in_it)
{
    struct world w;
    unlocked_at(&w, 20000, 20510);
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

/* The thread has no CPU from 10 ms to 15 ms, and no mutex then. */
TEST(a_thread_that_is_woken_in_vain_is_ready_until_it_waits_again)
{
    struct world w;
    unlocked_at(&w, 20000, 20510);
    give(&w, SWITCH_WOKEN, 10000);
    give(&w, SWITCH_IN, 15000);
    give(&w, SWITCH_OUT, 15100);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 9810 * US);
    assert_int_equal(w.summary.ready_ns, 5490 * US);
    assert_int_equal(w.summary.waits, 1);
    assert_int_equal(w.wakers[2], 1);
}

TEST(also_if_it_is_preempted_before_that)
{
    struct world w;
    unlocked_at(&w, 20000, 20510);
    give(&w, SWITCH_WOKEN, 10000);
    give(&w, SWITCH_IN, 10020);
    give(&w, SWITCH_PREEMPTED, 10040);
    give(&w, SWITCH_IN, 13040);
    give(&w, SWITCH_OUT, 13060);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 11850 * US);
    assert_int_equal(w.summary.ready_ns, 3510 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* The first thread's handler of a signal, which comes at 10 ms, has posted a semaphore before it is
 * preempted. */
TEST(a_wait_goes_on_while_a_handler_of_a_signal_is_preempted)
{
    struct shm_record posts = record_at(SHM_RELEASED, 0);
    struct world w;
    posts.wait = SHM_SEMAPHORE;
    posts.object = 0x2000;
    posts.release = 1;
    posts.time = OPENED + 10100 * US;
    two_threads(&w);
    put(&w, 1, posts);
    put_unlocked_at(&w, 20000, 20510);
    give(&w, SWITCH_WOKEN, 10000);
    give(&w, SWITCH_IN, 10020);
    give(&w, SWITCH_PREEMPTED, 10200);
    give(&w, SWITCH_IN, 11200);
    give(&w, SWITCH_PREEMPTED, 11300);
    give(&w, SWITCH_IN, 12300);
    give(&w, SWITCH_OUT, 12400);
    give(&w, SWITCH_WOKEN, 20010);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    /* Without the 380 us on a CPU. */
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 14530 * US);
    assert_int_equal(w.summary.ready_ns, 490 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* A wake-up in vain shortly before the one that ends the wait is over before the release. */
TEST(what_happens_before_the_release_keeps_its_time)
{
    struct world w;
    unlocked_at(&w, 20047, 20056);
    give(&w, SWITCH_WOKEN, 20007);
    give(&w, SWITCH_IN, 20018);
    give(&w, SWITCH_OUT, 20024);
    give(&w, SWITCH_WOKEN, 20049);
    give(&w, SWITCH_IN, 20054);
    finish(&w);
    /* Without the 6 us on a CPU. */
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 14943 * US);
    assert_int_equal(w.summary.ready_ns, 5 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* The first thread waits for the semaphore that the second one posts at 20 ms. Later events up to
 * 300 ms are not recorded yet, but the wait is written as far as it is known. */
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

/* The second time, the trace waits for it. */
TEST(a_woken_thread_that_is_late_has_its_waker)
{
    for (uint64_t back = 550; back <= 2550; back += 2000) {
        struct shm_record waits = wait_at(5);
        struct world w;
        posted_and_not_back(&w);
        for (; now < OPENED + back * MS; now += 100 * MS)
            step(&w);
        waits.wait = SHM_SEMAPHORE;
        waits.end = OPENED + (back + 10) * MS;
        waits.release = 1;
        put(&w, 1, waits);
        w.memory->threads[1].open_time = 0;
        give(&w, SWITCH_IN, back * 1000);
        now += 500 * MS;
        step(&w);
        finish(&w);
        assert_int_equal(w.summary.wait_ns[SHM_SEMAPHORE], 14910 * US);
        /* Times of a later generation may be 1 ns late. */
        assert_in_range(w.summary.ready_ns, back * MS - 20010 * US, back * MS - 20010 * US + 1);
        assert_int_equal(w.wakers[2], 1);
    }
}

static bool is_logged(const struct world *w, const char *text)
{
    for (size_t i = 0; i < sizeof w->logged / sizeof w->logged[0]; i++) {
        if (strcmp(w->logged[i], text) == 0)
            return true;
    }
    return false;
}

/* The kernel lost wake-ups, including this one: the thread is ready from the release on, which is
 * marked. */
TEST(what_a_lost_wake_up_leaves_is_inferred)
{
    struct shm_record waits = wait_at(5);
    struct world w;
    two_threads(&w);
    waits.wait = SHM_SEMAPHORE;
    waits.end = OPENED + 20600 * US;
    waits.release = 1;
    put(&w, 1, waits);
    put(&w, 1, record_at(SHM_EXITED, 30));
    waits.kind = SHM_RELEASED;
    waits.time = OPENED + 20 * MS;
    waits.end = 0;
    put(&w, 2, waits);
    second_exits(&w);
    give(&w, SWITCH_WAKINGS_LOST, 19000);
    give(&w, SWITCH_WAKINGS_FOUND, 20450);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    assert_true(is_logged(&w, "inferred"));
    assert_true(is_logged(&w, "kernel"));
    assert_int_equal(w.summary.wait_ns[SHM_SEMAPHORE], 14900 * US);
    assert_int_equal(w.summary.ready_ns, 500 * US);
    assert_int_equal(w.wakers[2], 1);
}

/* A sleep has no release: it ends when the thread runs. The loss is marked after it, because no
 * thread ran meanwhile. */
TEST(also_where_no_thread_ran)
{
    struct shm_record sleeps = wait_at(5);
    struct world w;
    begin_seen(&w, true, true);
    put_thread(&w, 1);
    give(&w, SWITCH_OUT, 5100);
    sleeps.wait = SHM_SLEEP;
    sleeps.end = OPENED + 20600 * US;
    put(&w, 1, sleeps);
    give(&w, SWITCH_WAKINGS_LOST, 19000);
    give(&w, SWITCH_WAKINGS_FOUND, 20450);
    give(&w, SWITCH_IN, 20500);
    finish(&w);
    assert_true(is_logged(&w, "inferred"));
    assert_int_equal(w.summary.wait_ns[SHM_SLEEP], 15400 * US);
}

/* MARK: What the kernel has */

enum { ROUNDS = 20000 }; /* two samples of 64 bytes each; a buffer has at most 1 MiB */

static void *echoes(void *ends)
{
    const int *pipe = ends;
    char byte;
    while (read(pipe[0], &byte, 1) == 1)
        (void)!write(pipe[3], &byte, 1);
    return NULL;
}

/*
 * Threads that wake each other through two pipes, so often that the records exceed every buffer.
 * Returns how often they slept: each sleep but the last two was ended by a wake-up.
 */
static uint64_t wake_each_other(void)
{
    struct rusage before, after;
    int pipes[4];
    pthread_t other;
    cpu_set_t one;
    char byte = 0;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_true(pipe(pipes) == 0 && pipe(pipes + 2) == 0);
    assert_int_equal(pthread_create(&other, NULL, echoes, pipes), 0);
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < ROUNDS; i++)
        assert_true(write(pipes[1], &byte, 1) == 1 && read(pipes[2], &byte, 1) == 1);
    getrusage(RUSAGE_SELF, &after);
    close(pipes[1]);
    pthread_join(other, NULL);
    close(pipes[0]);
    close(pipes[2]);
    close(pipes[3]);
    return (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
}

struct taken {
    uint64_t wakings, losses, ends;
};

static void count(void *context, int64_t ns, uint32_t tid, enum waking_kind kind)
{
    struct taken *taken = context;
    (void)ns;
    (void)tid;
    taken->wakings += kind == WAKING;
    taken->losses += kind == WAKINGS_LOST;
    taken->ends += kind == WAKINGS_FOUND;
}

TEST(no_wake_up_is_lost_unnoticed)
{
    struct wakings *wakings = wakings_open(CLOCK_MONOTONIC);
    struct taken taken = {0};
    uint64_t slept;
    if (!wakings) {
        /* cmocka's skip() is "not ok" to Meson. */
        print_message("# not tested: the kernel's wake-ups may not be read here\n");
        return;
    }
    slept = wake_each_other();
    wakings_read(wakings, INT64_MAX, count, &taken);
    /* The kernel reports a loss before the next record that fits. */
    slept += wake_each_other();
    wakings_read(wakings, INT64_MAX, count, &taken);
    (void)wake_each_other();
    wakings_read(wakings, INT64_MAX, count, &taken);
    assert_true(taken.losses > 0 && taken.losses == taken.ends);
    assert_true(taken.wakings + wakings_lost(wakings) >= slept - 4);
    wakings_close(wakings);
}

/* Waits no longer than releases are kept. */
TEST(no_thread_delays_the_others_for_long)
{
    struct world w;
    uint64_t before;
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

/* It is outside of calls; the wait lasts to the end of the trace only if the thread was killed in
 * it. */
TEST(a_thread_that_ends_soon_after_a_short_wait_was_not_killed)
{
    for (uint64_t ms = 10; ms <= 100; ms += 90) {
        struct world w;
        two_threads(&w);
        give(&w, SWITCH_IN, 5100 + ms * 1000);
        give(&w, SWITCH_EXIT, 5200 + ms * 1000);
        second_exits(&w);
        now += 500 * MS;
        finish(&w);
        if (ms == 10)
            assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 10 * MS);
        else
            assert_true(w.summary.wait_ns[SHM_KERNEL] > (int64_t)(400 * MS));
    }
}

/* The first thread waits for a mutex; the kernel wakes it at 480 ms, and its process ends `later`
 * after that. */
static void woken_at_last(struct world *w, uint64_t later)
{
    two_threads(w);
    w->memory->threads[1].open_wait = SHM_MUTEX;
    w->memory->threads[1].open_object = 0x1000;
    w->memory->threads[1].open_time = OPENED + 5 * MS;
    put(w, 2, record_at(SHM_NAMED, 21));
    give(w, SWITCH_WOKEN, 480000);
    now = OPENED + 480 * MS + later;
    finish(w);
}

TEST(a_thread_that_is_woken_to_be_killed_has_waited_to_the_end)
{
    struct world w;
    woken_at_last(&w, 900 * MS);
    assert_int_equal(w.summary.ready_ns, 0);
    assert_in_range(w.summary.wait_ns[SHM_MUTEX], 1374900 * US, 1374900 * US + 10);
    woken_at_last(&w, 1000 * MS);
    assert_in_range(w.summary.ready_ns, 1000 * MS, 1000 * MS + 10);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 474900 * US);
}

/* A switch costs 40 us. The first comes 10 us after its wake-up; the second takes the 30 us that
 * are left. */
TEST(what_a_switch_costs_in_excess_of_one_is_that_of_the_next)
{
    struct world w;
    struct shm_record sleeps = wait_at(5), again = wait_at(15);
    two_threads(&w);
    second_exits(&w);
    w.collect->switch_costs.ns = 40 * US;
    sleeps.wait = again.wait = SHM_SLEEP;
    sleeps.end = OPENED + 10200 * US;
    again.end = OPENED + 20200 * US;
    put(&w, 1, sleeps);
    put(&w, 1, again);
    put(&w, 1, record_at(SHM_EXITED, 30));
    give(&w, SWITCH_WOKEN, 10000);
    give(&w, SWITCH_IN, 10010);
    give(&w, SWITCH_OUT, 15100);
    give(&w, SWITCH_WOKEN, 20000);
    give(&w, SWITCH_IN, 20100);
    finish(&w);
    assert_in_range(w.summary.ready_ns, 30 * US - 10, 30 * US + 10);
}
