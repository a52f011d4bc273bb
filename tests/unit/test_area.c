/*
 * The memory shared with a recorded program, filled by hand with contents that no correct program
 * writes: they are counted as damage, the rest is kept, and the reader accepts the trace.
 */
#include "area_by_hand.h"
#include "collect/executed.h"

/* A program without threads. finish() frees it. */
static struct world world;

static int set_up(void **state)
{
    (void)state;
    begin(&world);
    return 0;
}

/* MARK: Programs */

static bool none_is_recorded(const void *unused, pid_t pid)
{
    (void)unused;
    return pid == 1;
}

static void put_executed(struct world *w, uint32_t pid, char letter)
{
    struct shm_header *header = &w->memory->header;
    struct shm_executed *to = &header->executed[header->executed_count++ % SHM_EXECUTED];
    to->pid = pid;
    memset(to->name, letter, sizeof to->name);
}

/* Names without an end, a program that was never written, one that was withdrawn, more programs
 * than there is room for. */
TEST(programs_are_read_as_far_as_they_are_there)
{
    struct world *w = &world;
    struct executed_list list = {0};
    struct area *area = collect_area(w->collect);
    put_executed(w, 1, 'a'); /* it is recorded */
    put_executed(w, 2, 'b');
    put_executed(w, 0, 'c');
    put_executed(w, 4, 'd');
    executed_take(&list, area, none_is_recorded, NULL);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].pid, 2);
    assert_int_equal(strnlen(list.items[0].name, sizeof list.items[0].name),
                     sizeof list.items[0].name - 1);
    executed_take(&list, area, none_is_recorded, NULL);
    assert_int_equal(list.count, 2);
    put_executed(w, 2 | SHM_NOT_EXECUTED, 'b');
    executed_take(&list, area, none_is_recorded, NULL);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.items[0].pid, 4);
    for (uint32_t i = 0; i < SHM_EXECUTED + 3; i++)
        put_executed(w, 10 + i, 'e');
    executed_take(&list, area, none_is_recorded, NULL);
    assert_int_equal(list.count, 1 + SHM_EXECUTED);
    assert_int_equal(list.unknown, 3);
    w->memory->header.executed_count -= 5;
    executed_take(&list, area, none_is_recorded, NULL);
    assert_true(list.count <= 1 + SHM_EXECUTED);
    executed_arrived(&list, 4);
    assert_int_equal(list.count, SHM_EXECUTED);
    executed_free(&list);
    finish(w);
}

/* MARK: Lives */

TEST(a_thread_exits_once)
{
    struct world *w = &world;
    put_thread(w, 1);
    put(w, 1, record_at(SHM_EXITED, 20));
    put(w, 1, record_at(SHM_EXITED, 21));
    finish(w);
    assert_int_equal(w->summary.damage, 1);
    assert_int_equal(w->summary.threads, 1);
}

TEST(a_thread_starts_once_and_first)
{
    struct world *w = &world;
    put_thread(w, 1);
    put(w, 1, record_at(SHM_STARTED, 2));
    put(w, 1, wait_at(5));
    put(w, 1, record_at(SHM_STARTED, 10));
    finish(w);
    assert_int_equal(w->summary.damage, 2);
    assert_int_equal(w->summary.waits, 1);
}

TEST(nothing_comes_behind_an_exit)
{
    struct world *w = &world;
    put_thread(w, 1);
    put_thread(w, 2);
    put(w, 1, record_at(SHM_EXITED, 20));
    put(w, 1, wait_at(21));
    put(w, 1, record_at(SHM_RELEASED, 30));
    put(w, 2, wait_at(25));
    finish(w);
    assert_int_equal(w->summary.damage, 2);
    assert_int_equal(w->summary.waits, 1);
}

/* The end according to the kernel is earlier than the one in its records. */
TEST(a_thread_ends_once_for_kernel_and_records)
{
    struct world *w = &world;
    put_thread(w, 1);
    collect_switch(w->collect, &(struct switch_record){.kind = SWITCH_EXIT,
                                                       .tid = 101,
                                                       .ns = (int64_t)(OPENED + 50 * MS)});
    step(w);
    now += 500 * MS;
    step(w);
    put(w, 1, wait_at(900));
    put(w, 1, record_at(SHM_EXITED, 910));
    finish(w);
    assert_int_equal(w->summary.damage, 1);
    assert_int_equal(w->summary.threads, 1);
    assert_int_equal(w->summary.waits, 0);
}

TEST(a_serial_is_one_threads)
{
    struct world *w = &world;
    put_thread(w, 1);
    put_thread(w, 2);
    w->memory->threads[2].serial = 1;
    put_thread(w, 3);
    w->memory->threads[3].serial = 0;
    finish(w);
    assert_int_equal(w->summary.damage, 2);
    assert_int_equal(w->summary.threads, 1);
}

/* Both are shown, on different Ms: the reader rejects two goroutines that run on one. */
TEST(a_thread_number_is_one_threads)
{
    struct world *w = &world;
    put_thread(w, 1);
    put_thread(w, 2);
    w->memory->threads[2].tid = w->memory->threads[1].tid;
    put(w, 1, wait_at(10));
    put(w, 2, wait_at(11));
    finish(w);
    assert_int_equal(w->summary.threads, 2);
    assert_int_equal(w->summary.waits, 2);
    assert_int_equal(w->threads, 2);
}

/* There was no room for its last record. */
TEST(a_slot_that_has_ended_ends_its_thread)
{
    struct world *w = &world;
    put_thread(w, 1);
    w->memory->threads[1].state = SHM_ENDED;
    put_thread(w, 2);
    step(w);
    assert_int_equal(w->memory->threads[1].state, SHM_FREE);
    now += 1000 * MS;
    step(w);
    finish(w);
    assert_int_equal(w->summary.damage, 0);
    assert_int_equal(w->summary.threads, 2);
    /* Half a second, up to the time at which its end was noticed; the other one to the end. */
    assert_in_range(w->summary.running_ns, 1990 * MS, 2010 * MS);
}

/* MARK: Chains */

static void fill_chunk(struct world *w, uint32_t slot)
{
    put_thread(w, slot);
    while (shm_chunk(w->memory, w->memory->threads[slot].first)->used < SHM_CHUNK_RECORDS)
        put(w, slot, wait_at(10));
}

TEST(a_chunk_that_follows_itself_is_read_once)
{
    struct world *w = &world;
    fill_chunk(w, 1);
    shm_chunk(w->memory, 1)->next = 1;
    for (int i = 0; i < 100; i++)
        step(w);
    finish(w);
    assert_int_equal(w->summary.damage, 1);
    assert_int_equal(w->summary.waits, SHM_CHUNK_RECORDS - 1);
}

TEST(chunks_in_a_ring_are_read_once_at_the_end)
{
    struct world *w = &world;
    fill_chunk(w, 1);
    put(w, 1, wait_at(11));
    while (shm_chunk(w->memory, 2)->used < SHM_CHUNK_RECORDS)
        put(w, 1, wait_at(11));
    shm_chunk(w->memory, 2)->next = 1;
    finish(w);
    assert_int_equal(w->summary.damage, 1);
    assert_int_equal(w->summary.waits, 2 * SHM_CHUNK_RECORDS - 1);
}

/* A program whose chain leads there repeatedly has to fill the chunks again, too. */
TEST(chunks_in_a_ring_are_empty_when_they_come_again)
{
    struct world *w = &world;
    fill_chunk(w, 1);
    put(w, 1, wait_at(11));
    while (shm_chunk(w->memory, 2)->used < SHM_CHUNK_RECORDS)
        put(w, 1, wait_at(11));
    shm_chunk(w->memory, 2)->next = 1;
    for (int i = 0; i < 100; i++) {
        step(w);
        shm_chunk(w->memory, 1)->next = 2;
        shm_chunk(w->memory, 2)->next = 1;
    }
    finish(w);
    assert_in_range(w->summary.waits, 1, 2 * SHM_CHUNK_RECORDS);
}

/* The program may go on after the recording, and would put the chunk into another chain. */
TEST(the_last_step_gives_no_chunk_back)
{
    struct world *w = &world;
    fill_chunk(w, 1);
    put(w, 1, wait_at(11));
    w->memory->threads[1].state = SHM_ENDED;
    collect_end_with_trace(w->collect);
    assert_int_equal((uint32_t)w->memory->header.free_chunks, 0);
    finish(w);
    assert_int_equal(w->summary.waits, SHM_CHUNK_RECORDS);
}

TEST(a_chunk_is_one_threads)
{
    struct world *w = &world;
    put_thread(w, 1);
    put(w, 1, wait_at(10));
    put_thread(w, 2);
    w->memory->threads[2].first = 1;
    finish(w);
    assert_int_equal(w->summary.damage, 1);
    assert_int_equal(w->summary.waits, 1);
}

TEST(a_chunk_lies_in_the_table)
{
    struct world *w = &world;
    static const uint32_t wrong[] = {SHM_CHUNKS, UINT32_MAX};
    for (uint32_t i = 0; i < 2; i++) {
        put_thread(w, 1 + i);
        w->memory->threads[1 + i].first = wrong[i];
    }
    finish(w);
    assert_int_equal(w->summary.damage, 2);
}

/* Puts a named thread that begins at `ms`, with a handle that earlier threads may have had. */
static void put_named(struct world *w, uint32_t slot, uint64_t ms, uint64_t handle,
                      const char *name)
{
    struct shm_record named = record_at(SHM_NAMED, ms), started = record_at(SHM_STARTED, ms);
    w->memory->threads[slot].state = SHM_LIVE;
    w->memory->threads[slot].serial = slot;
    w->memory->threads[slot].tid = 100 + slot;
    named.object = 0;
    memcpy(&named.object, name, strlen(name));
    started.object = handle;
    put(w, slot, started);
    put(w, slot, named);
    put(w, slot, record_at(SHM_EXITED, ms + 3));
}

static void put_join(struct world *w, uint64_t ms, uint64_t handle)
{
    struct shm_record join = wait_at(ms);
    join.wait = SHM_JOIN;
    join.object = handle;
    join.end = OPENED + (ms + 8) * MS;
    put(w, 1, join);
}

/* The joined thread may not have begun to run yet, and the last thread with its handle is a
 * different one. */
TEST(a_join_is_of_the_thread_that_was_created)
{
    struct world *w = &world;
    const uint64_t handle = UINT64_C(0x7f0000000000);
    put_thread(w, 1);
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t ms = 10 * (i + 1);
        struct shm_record created = record_at(SHM_CREATED, ms);
        created.object = 2 + i;
        put(w, 1, created);
        put_join(w, ms + 1, handle);
        put_named(w, 2 + i, ms + 4, handle, i ? "second" : "first");
    }
    finish(w);
    assert_int_equal(w->summary.damage, 0);
    assert_string_equal(w->logged[0], "join first");
    assert_string_equal(w->logged[1], "join second");
}

/* MARK: Records */

TEST(times_lie_within_the_recording)
{
    struct world *w = &world;
    struct shm_record late = wait_at(10), early = wait_at(10), back = wait_at(10);
    put_thread(w, 1);
    late.end = now + 2 * MS;
    early.time = OPENED - 2 * MS;
    back.end = back.time - 1;
    put(w, 1, late);
    put(w, 1, early);
    put(w, 1, back);
    put(w, 1, (struct shm_record){.kind = SHM_EXITED, .time = UINT64_MAX});
    put(w, 1, wait_at(20));
    finish(w);
    assert_int_equal(w->summary.damage, 4);
    assert_int_equal(w->summary.waits, 1);
    assert_in_range(w->summary.wall_ns, 1, 500 * MS);
}

TEST(kinds_and_waits_are_of_their_tables)
{
    struct world *w = &world;
    struct shm_record wait = wait_at(10);
    put_thread(w, 1);
    put(w, 1, record_at(0, 10));
    put(w, 1, record_at(SHM_KINDS, 10));
    wait.wait = SHM_NO_WAIT;
    put(w, 1, wait);
    wait.wait = SHM_WAITS;
    put(w, 1, wait);
    wait.kind = SHM_RELEASED;
    put(w, 1, wait);
    put(w, 1, (struct shm_record){.kind = SHM_TEXT, .flags = SHM_TEXT_PIECE + 1});
    put(w, 1, (struct shm_record){.kind = SHM_HEAP, .time = OPENED + MS, .object = UINT64_MAX / 2});
    put(w, 1, (struct shm_record){.kind = SHM_INTERRUPTED, .time = OPENED + MS, .object = 1});
    finish(w);
    assert_int_equal(w->summary.damage, 8);
    assert_int_equal(w->summary.waits, 0);
}

/* A hold that began before the recording, or after its end, has no length. */
TEST(holds_begin_within_the_recording)
{
    struct world *w = &world;
    static const uint64_t begins[] = {1, OPENED + 31 * MS, OPENED + 10 * MS};
    put_thread(w, 1);
    for (size_t i = 0; i < 3; i++) {
        struct shm_record release = record_at(SHM_RELEASED, 30);
        release.wait = SHM_MUTEX;
        release.end = begins[i];
        put(w, 1, release);
    }
    finish(w);
    assert_int_equal(w->counts[TRAIL_LOG], 1);
}

/* A log begins with the kind of lock; only in a damaged area does a hold have none. */
TEST(a_hold_of_no_kind_is_not_logged)
{
    struct world *w = &world;
    static const uint8_t kinds[] = {SHM_NO_WAIT, SHM_MUTEX};
    put_thread(w, 1);
    for (size_t i = 0; i < sizeof kinds; i++) {
        struct shm_record release = record_at(SHM_RELEASED, 30 + i);
        release.wait = kinds[i];
        release.end = OPENED + 10 * MS;
        put(w, 1, release);
    }
    finish(w);
    assert_int_equal(w->summary.damage, 0);
    assert_int_equal(w->counts[TRAIL_LOG], 1);
}

/* Locks released at one place may have been acquired at several. */
TEST(each_hold_is_logged_where_it_began)
{
    struct world *w = &world;
    static const uint64_t places[] = {0xa001, 0xb001, 0xa001, 0xc001, 0xd001, 0xe001, 0xb001};
    const size_t n = sizeof places / sizeof places[0];
    w->memory->stack_words[1] = 2;
    w->memory->stack_words[2] = 0x1001;
    w->memory->stack_words[3] = 0x2001;
    put_thread(w, 1);
    for (size_t i = 0; i < n; i++) {
        struct shm_record release = record_at(SHM_RELEASED, 30 + i);
        release.wait = SHM_MUTEX;
        release.end = OPENED + 10 * MS;
        release.object2 = places[i];
        release.stack = 1;
        put(w, 1, release);
    }
    finish(w);
    assert_int_equal(w->counts[TRAIL_LOG], n);
    assert_memory_equal(w->logged_at, places, sizeof places);
}

/* Threads, and therefore processes, are not read in order of time. */
TEST(a_shared_lock_is_named_after_the_first_hold)
{
    struct world *w = &world;
    static const char module[] =
        "trail.module start=0xa000 end=0xc000 bias=0x0 build-id=- path=/x\n";
    static const uint64_t places[] = {0xb001, 0xa001};
    char *place;
    memcpy(w->memory->modules, module, sizeof module - 1);
    w->memory->header.modules_used = sizeof module - 1;
    w->memory->header.modules_version = 2;
    for (uint32_t i = 0; i < 2; i++) {
        struct shm_record release = record_at(SHM_RELEASED, 40 - 10 * i), wait = wait_at(29);
        put_thread(w, 1 + i);
        wait.object = release.object = SHM_MEMORY | 0x1000;
        if (i == 0)
            put(w, 1, wait);
        release.wait = SHM_MUTEX;
        release.end = release.time - 9 * MS;
        release.object2 = places[i];
        put(w, 1 + i, release);
    }
    finish(w);
    assert_int_equal(w->summary.damage, 0);
    place = strstr(w->logged[0], "first seen locked in ");
    assert_non_null(place);
    assert_string_equal(place, "first seen locked in x+0xa000)");
}

/* Threads have not waited longer than they were observed. */
TEST(short_waits_are_no_longer_than_the_recording)
{
    struct world *w = &world;
    put_thread(w, 1);
    step(w);
    now += 100 * MS;
    w->memory->threads[1].short_waits = UINT32_MAX;
    finish(w);
    assert_in_range(w->summary.short_ns, 0, 100 * MS);
}

/* The first step may be late. */
TEST(short_waits_before_the_first_step_count)
{
    struct world *w = &world;
    put_thread(w, 1);
    w->memory->header.claimed_at = now;
    now += 20 * MS;
    w->memory->threads[1].short_waits = 15 * MS / SHM_SHORT;
    finish(w);
    assert_in_range(w->summary.short_ns, 15 * MS - SHM_SHORT, 15 * MS);
}

/* One that ends in a step may have begun several steps before. */
TEST(a_short_wait_may_be_longer_than_a_step)
{
    struct world *w = &world;
    put_thread(w, 1);
    step(w);
    for (int i = 0; i < 3; i++) {
        now += 10 * MS;
        step(w);
    }
    w->memory->threads[1].short_waits = 25 * MS / SHM_SHORT;
    now += MS;
    finish(w);
    assert_in_range(w->summary.short_ns, 25 * MS - SHM_SHORT, 25 * MS);
}

TEST(a_call_of_the_future_is_not_open)
{
    struct world *w = &world;
    put_thread(w, 1);
    w->memory->threads[1].open_wait = SHM_MUTEX;
    w->memory->threads[1].open_time = UINT64_MAX / 2;
    put_thread(w, 2);
    w->memory->threads[2].open_wait = SHM_WAITS;
    w->memory->threads[2].open_time = OPENED + 10 * MS;
    put_thread(w, 3);
    w->memory->threads[3].open_wait = SHM_MUTEX;
    w->memory->threads[3].open_time = OPENED + 10 * MS;
    finish(w);
    assert_int_equal(w->summary.waits, 1);
}

/* MARK: A recording that stops while its program continues */

static void stops_at(struct world *w, uint64_t ms)
{
    trace_stop(w->to, OPENED + ms * MS);
    now = OPENED + (ms + 700) * MS;
    finish(w);
}

/* However late its records are read. */
TEST(the_trace_ends_when_its_recording_stops)
{
    struct world *w = &world;
    put_thread(w, 1);
    put(w, 1, wait_at(100));
    put(w, 1, wait_at(250));
    stops_at(w, 200);
    assert_int_equal(w->summary.wall_ns, 199 * MS);
    assert_int_equal(w->summary.waits, 1);
    assert_in_range(w->summary.running_ns, 197 * MS - 100, 197 * MS);
}

TEST(a_wait_that_ends_later_lasts_to_the_stop)
{
    struct world *w = &world;
    struct shm_thread *waits = &w->memory->threads[2];
    put_thread(w, 1);
    put(w, 1, wait_at(199));
    put_thread(w, 2);
    waits->open_wait = SHM_MUTEX;
    waits->open_time = OPENED + 150 * MS;
    stops_at(w, 200);
    assert_int_equal(w->summary.waits, 2);
    assert_in_range(w->summary.wait_ns[SHM_MUTEX], 51 * MS, 51 * MS + 100);
}

/* A step reads a thread's counter as 10 MB, and then its later record of 20 MB; the next step reads
 * the final counter. */
static void counter_is_read_before_record(struct world *w, uint64_t later, int64_t bytes)
{
    uint64_t begin = now;
    put_thread(w, 1);
    w->memory->threads[1].heap = 10000000;
    put(w, 1, (struct shm_record){.kind = SHM_HEAP, .time = begin + 2 * MS, .object = 20000000});
    passes_ns = MS; /* with each reading of the clock */
    step(w);
    passes_ns = 0;
    put(w, 1,
        (struct shm_record){.kind = SHM_HEAP, .time = begin + later, .object = (uint64_t)bytes});
    w->memory->threads[1].heap = bytes;
    now += 500 * MS;
    step(w);
    finish(w);
}

TEST(a_counter_does_not_replace_a_later_record)
{
    struct world *w = &world;
    counter_is_read_before_record(w, 20 * MS, 5000000);
    assert_int_equal(w->summary.heap_peak, 20000000);
}

TEST(a_counter_is_not_added_to_a_record_of_the_next_step)
{
    struct world *w = &world;
    counter_is_read_before_record(w, 2 * MS + 1, 30000000);
    assert_int_equal(w->summary.heap_peak, 30000000);
}

TEST(heaps_are_no_larger_than_addresses)
{
    struct world *w = &world;
    for (uint32_t slot = 1; slot < 9; slot++) {
        put_thread(w, slot);
        w->memory->threads[slot].heap = INT64_MAX;
    }
    w->memory->header.heap_rest = INT64_MIN;
    step(w);
    finish(w);
    assert_in_range(w->summary.heap_peak, 1, INT64_C(9) << 47);
}

/* MARK: Annotations */

TEST(a_task_begins_once)
{
    struct world *w = &world;
    put_thread(w, 1);
    put(w, 1, record_at(SHM_TASK_BEGAN, 10));
    put(w, 1, record_at(SHM_TASK_BEGAN, 11));
    put(w, 1, record_at(SHM_TASK_ENDED, 12));
    put(w, 1, record_at(SHM_TASK_BEGAN, 13));
    put(w, 1, (struct shm_record){.kind = SHM_TASK_BEGAN, .time = OPENED + 14 * MS});
    put(w, 1,
        (struct shm_record){
            .kind = SHM_TASK_BEGAN, .time = OPENED + 14 * MS, .object = UINT64_MAX});
    finish(w);
    assert_int_equal(w->summary.damage, 3);
    assert_int_equal(w->counts[TRAIL_TASK_BEGIN], 2);
}

/* Its end has the name of its begin, even if the program has changed the text. */
TEST(a_region_keeps_its_name)
{
    struct world *w = &world;
    struct shm_record region = record_at(SHM_REGION_BEGAN, 10);
    put_thread(w, 1);
    put_text(w, 100, "first");
    region.release = 100;
    put(w, 1, region);
    step(w);
    put_text(w, 100, "other");
    region.kind = SHM_REGION_ENDED;
    region.time = OPENED + 20 * MS;
    put(w, 1, region);
    put(w, 1, region);
    finish(w);
    assert_int_equal(w->counts[TRAIL_REGION_BEGIN], 1);
    assert_int_equal(w->counts[TRAIL_REGION_END], 1);
}

/* MARK: Tables */

/* As many stacks as there are words, each of maximum length: more than fit. */
TEST(stacks_fit_into_their_table)
{
    struct world *w = &world;
    put_thread(w, 1);
    for (uint32_t i = 0; i < SHM_STACK_WORDS; i++)
        w->memory->stack_words[i] = SHM_STACK_FRAMES;
    for (uint32_t i = 0; i < SHM_STACK_WORDS / SHM_STACK_FRAMES + 100; i++) {
        struct shm_record wait = wait_at(10);
        wait.stack = 1 + i;
        put(w, 1, wait);
    }
    finish(w);
    assert_in_range(w->summary.damage, 1, SHM_STACK_WORDS);
}

TEST(modules_are_limited)
{
    struct world *w = &world;
    int used = 0;
    put_thread(w, 1);
    for (int i = 0; i < 5000; i++)
        used += snprintf(w->memory->modules + used, 128,
                         "trail.module start=0x%d end=0x%d bias=0x0 build-id=- path=/x%d\n",
                         1000 + i, 1001 + i, i);
    w->memory->header.modules_used = (uint32_t)used;
    w->memory->header.modules_version = 2;
    finish(w);
    assert_int_equal(w->summary.damage, 5000 - 4096);
}

TEST(a_module_ends_behind_its_begin)
{
    struct world *w = &world;
    static const char line[] = "trail.module start=0x2 end=0x1 bias=0x0 build-id=- path=/x\n";
    put_thread(w, 1);
    memcpy(w->memory->modules, line, sizeof line);
    w->memory->header.modules_used = sizeof line - 1;
    w->memory->header.modules_version = 2;
    finish(w);
    assert_int_equal(w->summary.damage, 1);
}

/* MARK: Ends */

/* A thread that has begun to write and never continues delays the others for at most two
 * seconds. */
TEST(one_that_never_writes_does_not_stop_all)
{
    struct world *w = &world;
    uint64_t before;
    put_thread(w, 1);
    put_thread(w, 2);
    w->memory->threads[1].writing = 1;
    step(w);
    for (uint64_t i = 0; i < 50; i++)
        put(w, 2, wait_at(10 + 3 * i));
    now += 400 * MS;
    step(w);
    before = trace_bytes(w->to);
    now += 4000 * MS;
    step(w);
    assert_true(trace_bytes(w->to) > before + 50);
    finish(w);
    assert_int_equal(w->summary.waits, 50);
}

TEST(a_full_area_is_read_to_its_end)
{
    struct world *w = &world;
    put_thread(w, 1);
    for (uint32_t i = 0; w->chunks < SHM_CHUNKS - 2; i++)
        put(w, 1, record_at(SHM_FORGOTTEN, 10));
    step(w);
    step(w);
    finish(w);
    assert_int_equal(w->summary.damage, 0);
    assert_int_equal(w->summary.lost_records, 0);
}

/* Records that could not be written in time are reported as lost. */
TEST(a_hurried_end_tells_what_is_lost)
{
    struct world *w = &world;
    put_thread(w, 1);
    put(w, 1, wait_at(10));
    w->hurried = true;
    finish(w);
    assert_int_equal(w->summary.lost_records, 0);
    assert_int_equal(w->summary.waits, 1);
}

int main(void)
{
    each_test(set_up, NULL);
    return run_all_tests(NULL, NULL);
}
