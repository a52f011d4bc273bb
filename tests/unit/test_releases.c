/*
 * Which thread woke which if an object has several releases at once: a release wakes one waiter,
 * and each waiter that continued was woken by one release.
 */
#include "area_by_hand.h"

/* Returns the post of the semaphore with that number. */
static struct shm_record post(uint32_t number, uint64_t ms)
{
    return (struct shm_record){.kind = SHM_RELEASED,
                               .wait = SHM_SEMAPHORE,
                               .time = OPENED + ms * MS,
                               .object = 0x1000,
                               .release = number};
}

/* Returns a wait for the semaphore that saw `number` posts at its end. */
static struct shm_record wait_for(uint32_t number, uint64_t begin_ms, uint64_t end_ms)
{
    struct shm_record record = post(number, begin_ms);
    record.kind = SHM_WAITED;
    record.end = OPENED + end_ms * MS;
    return record;
}

/* Reads everything, long afterwards. */
static void step_later(/* like the C library's: no TID */
#define HANDLE UINT64_C(0x7f0000000007)

                       struct world *w)
{
    now += 1000 * MS;
    step(w);
}

/* Three threads, the first of which posts at 10 ms. */
static void begin_with_post(struct world *w)
{
    begin(w);
    for (uint32_t slot = 1; slot <= 3; slot++)
        put_thread(w, slot);
    put(w, 1, post(1, 10));
}

TEST(each_release_lets_in_one)
{
    struct world w;
    begin_with_post(&w);
    put(&w, 1, post(2, 20));
    put(&w, 2, wait_for(2, 5, 25));
    put(&w, 3, wait_for(2, 6, 26));
    finish(&w);
    assert_int_equal(w.woken, 2);
}

/*
 * A waiter read the number of posts and lost its CPU before it read the clock. By then, waiters
 * that had read a greater number were woken, and their waits are known before its own.
 */
TEST(who_is_late_was_let_in_too)
{
    struct world w;
    begin_with_post(&w);
    put(&w, 1, post(2, 20));
    put(&w, 2, wait_for(2, 5, 25));
    step_later(&w);
    put(&w, 3, wait_for(1, 6, 600));
    finish(&w);
    assert_int_equal(w.woken, 2);
}

/* A post after the wait's end woke another waiter. */
TEST(nobody_was_let_in_later)
{
    struct world w;
    begin_with_post(&w);
    put(&w, 1, post(2, 40));
    put(&w, 2, wait_for(1, 5, 25));
    put(&w, 3, wait_for(1, 6, 26));
    finish(&w);
    assert_int_equal(w.woken, 1);
}

/*
 * The last waiter read the number of posts after the first post, and continued after the third. In
 * the order of the numbers it would take the first post, which would leave one post for the others,
 * which continued before the third.
 */
TEST(who_went_on_first_is_served_first)
{
    struct world w;
    begin_with_post(&w);
    put_thread(&w, 4);
    put(&w, 1, post(2, 20));
    put(&w, 1, post(3, 30));
    put(&w, 2, wait_for(2, 5, 24));
    put(&w, 3, wait_for(2, 6, 25));
    put(&w, 4, wait_for(1, 7, 35));
    finish(&w);
    assert_int_equal(w.woken, 3);
}

/*
 * A waiter read the end of its wait, and lost its CPU before its record was complete. A waiter that
 * continued later is known by then; it must not take the only post that existed when the first
 * continued.
 */
TEST(who_is_still_writing_is_waited_for)
{
    struct world w;
    begin_with_post(&w);
    step_later(&w);
    put(&w, 1, post(2, 1510));
    put(&w, 1, post(3, 1520));
    put(&w, 2, wait_for(3, 1505, 1526));
    w.memory->threads[3].writing = 1;
    now += 100 * MS;
    step(&w);
    put(&w, 3, wait_for(2, 1506, 1515));
    w.memory->threads[3].writing = 0;
    step_later(&w);
    finish(&w);
    assert_int_equal(w.woken, 2);
}

/*
 * The first thread took its permit back without waiting, which is not recorded. That another thread
 * finds no permit later shows it: both waits were ended by posts of the second thread.
 */
TEST(a_permit_that_was_taken_back_ended_no_wait)
{
    struct world w;
    begin_with_post(&w);
    put_thread(&w, 4);
    put(&w, 2, post(2, 30));
    put(&w, 2, post(3, 45));
    put(&w, 3, wait_for(2, 5, 35));
    put(&w, 4, wait_for(3, 20, 50));
    finish(&w);
    assert_int_equal(w.woken, 2);
    assert_int_equal(w.wakers[2], 2);
}

/* The same if it is known before another thread finds no permit. */
TEST(a_permit_that_was_taken_while_others_wait_ended_no_wait)
{
    struct world w;
    struct shm_record taken = post(1, 11);
    begin_with_post(&w);
    taken.kind = SHM_TAKEN;
    put(&w, 1, taken);
    put(&w, 2, post(2, 30));
    put(&w, 3, wait_for(2, 5, 35));
    finish(&w);
    assert_int_equal(w.woken, 1);
    assert_int_equal(w.wakers[2], 1);
}

/* The post came after the attempt to take a permit, but before the record of the wait's begin. */
TEST(a_post_before_the_record_of_the_begin_ended_a_wait)
{
    struct world w;
    begin_with_post(&w);
    put_thread(&w, 4);
    put(&w, 2, post(2, 45));
    put(&w, 3, wait_for(1, 5, 21));
    put(&w, 4, wait_for(2, 20, 50));
    finish(&w);
    assert_int_equal(w.woken, 2);
    assert_int_equal(w.wakers[1], 1);
}

/* Post n is 2 ms after post n - 1. Every seventh is the second thread's, and is the one that the
 * next waiter waits for. */
TEST(the_first_since_the_begin_is_found)
{
    const uint32_t posts = 63, seventh = 7;
    struct world w;
    begin(&w);
    for (uint32_t slot = 1; slot <= 2 + posts / seventh; slot++)
        put_thread(&w, slot);
    for (uint32_t n = 1; n <= posts; n++)
        put(&w, n % seventh == 0 ? 2 : 1, post(n, 10 + (uint64_t)2 * n));
    for (uint32_t k = 1; k < posts / seventh; k++) {
        uint32_t first = k * seventh, last = first + k - 1;
        put(&w, 2 + k, wait_for(last, 9 + (uint64_t)2 * first, 11 + (uint64_t)2 * last));
    }
    finish(&w);
    assert_int_equal(w.woken, posts / seventh - 1);
    assert_int_equal(w.wakers[2], posts / seventh - 1);
}

/* Returns an arrival at a barrier, or a wait at it that saw `number` arrivals at its end. */
static struct shm_record arrival(uint32_t number, uint64_t ms)
{
    struct shm_record record = post(number, ms);
    record.wait = SHM_BARRIER;
    record.flags = SHM_ALL;
    return record;
}

static struct shm_record wait_at_barrier(uint32_t number, uint64_t begin_ms, uint64_t end_ms)
{
    struct shm_record record = wait_for(number, begin_ms, end_ms);
    record.wait = SHM_BARRIER;
    return record;
}

/*
 * The third thread opens a barrier at 20 ms. The first gets no CPU until the second, or the third,
 * has come again.
 */
TEST(an_arrival_of_the_next_round_opened_no_barrier)
{
    for (uint32_t again = 2; again <= 3; again++) {
        struct world w;
        begin(&w);
        for (uint32_t slot = 1; slot <= 3; slot++)
            put_thread(&w, slot);
        put(&w, 1, arrival(1, 9));
        put(&w, 2, arrival(2, 9));
        put(&w, 3, arrival(3, 20));
        if (again == 2)
            put(&w, 2, wait_at_barrier(3, 10, 21));
        put(&w, again, arrival(4, 30));
        put(&w, 1, wait_at_barrier(4, 10, 31));
        finish(&w);
        assert_int_equal(w.woken, again == 2 ? 2 : 1);
        assert_int_equal(w.wakers[3], w.woken);
    }
}

/* The last one to come opens it, whatever else has the slot. */
TEST(the_last_of_many_opens_a_barrier)
{
    const uint32_t count = 80;
    struct world w;
    begin(&w);
    for (uint32_t slot = 1; slot <= 4; slot++)
        put_thread(&w, slot);
    put(&w, 1, arrival(1, 9));
    for (uint32_t n = 2; n < count; n++)
        put(&w, 2 + n % 2, arrival(n, 10 + n));
    put(&w, 4, arrival(count, 10 + count));
    put(&w, 1, wait_at_barrier(count, 10, 11 + count));
    finish(&w);
    assert_int_equal(w.wakers[4], 1);
}

/* Opens a process of a trace that has several. */
static struct collect *open_labelled(struct world *w, struct shm_area *memory)
{
    const struct area_options options = {.groups = UINT32_MAX, .stacks = SHM_STACKS_UNWIND};
    trail_error err;
    struct collect *c = collect_open(
        &(struct collect_options){.trace = w->to,
                                  .area = area_over(memory, &options, &w->ticks, OPENED),
                                  .ticks = &w->ticks,
                                  .label = "program"},
        &err);
    assert_non_null(c);
    return c;
}

/* Such a child has no number confirmed by the kernel, only that of its claim. */
TEST(the_end_of_a_child_that_was_found_ended_wakes)
{
    struct world w, child = {.chunks = 0};
    begin(&w);
    collect_close(w.collect);
    w.collect = open_labelled(&w, w.memory);
    put_thread(&w, 1);
    child.memory = mmap(NULL, sizeof *child.memory, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(child.memory, MAP_FAILED);
    child.memory->header.threads_used = 16;
    put_thread(&child, 2);
    put(&child, 2, wait_at(2));
    w.next = open_labelled(&w, child.memory);
    child.memory->header.claimed = 102;
    put(&w, 1,
        (struct shm_record){.kind = SHM_WAITED,
                            .wait = SHM_CHILD,
                            .time = OPENED + 5 * MS,
                            .end = OPENED + 9 * MS,
                            .object = SHM_PROCESS | 102});
    collect_step(w.collect);
    collect_end(w.next, NULL);
    finish(&w);
    munmap(child.memory, sizeof *child.memory);
    assert_int_equal(w.woken, 1);
}

/* The holder of an OpenMP lock, which records the release after it, had no CPU for 60 ms. */
TEST(a_release_recorded_long_after_it_ended_a_wait)
{
    struct shm_record waits = wait_for(7, 505, 525), releases = post(7, 585);
    struct world w;
    begin_with_post(&w);
    waits.wait = releases.wait = SHM_OMP_LOCK;
    put(&w, 2, waits);
    for (now = OPENED + 530 * MS; now < OPENED + 590 * MS; now += 10 * MS)
        step(&w);
    put(&w, 1, releases);
    now += 500 * MS;
    step(&w);
    finish(&w);
    assert_int_equal(w.wakers[1], 1);
}

/* Puts a thread with handle 7 that runs for 5 ms. */
static void put_short_thread(struct world *w, uint32_t slot, uint64_t begin_ms)
{
    struct shm_record started = record_at(SHM_STARTED, begin_ms);
    w->memory->threads[slot].state = SHM_LIVE;
    w->memory->threads[slot].serial = slot;
    w->memory->threads[slot].tid = 100 + slot;
    started.object = HANDLE;
    put(w, slot, started);
    put(w, slot, record_at(SHM_EXITED, begin_ms + 5));
}

/* The C library reuses the handle of an ended thread for the next one, whose slot may come
 * earlier. */
TEST(a_join_is_for_the_last_thread_with_the_handle)
{
    struct world w;
    begin(&w);
    put_thread(&w, 1);
    put_short_thread(&w, 2, 20);
    put_short_thread(&w, 3, 10);
    put(&w, 1,
        (struct shm_record){.kind = SHM_WAITED,
                            .wait = SHM_JOIN,
                            .time = OPENED + 22 * MS,
                            .end = OPENED + 26 * MS,
                            .object = HANDLE});
    finish(&w);
    assert_int_equal(w.woken, 1);
    assert_int_equal(w.wakers[2], 1);
}
