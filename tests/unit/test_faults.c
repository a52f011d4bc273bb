/*
 * Which waits outside of wrapped calls are page faults: those after whose end the kernel reports
 * one.
 */
#include <unistd.h>

#include "area_by_hand.h"
#include "collect/parts.h"

#define US (MS / 1000)

/* Adds a report of the kernel about the thread, at a time in us. */
static void give(struct world *w, enum switch_kind kind, uint64_t us)
{
    collect_switch(w->collect, &(struct switch_record){.ns = (int64_t)(OPENED + us * US),
                                                       .tid = 101,
                                                       .kind = kind,
                                                       .address = 0x7000});
}

/* Adds a thread that is off its CPU from 20 to 22 ms. */
static void off_at_20(struct world *w)
{
    begin_with(w, true);
    put_thread(w, 1);
    put(w, 1, record_at(SHM_EXITED, 50));
    give(w, SWITCH_OUT, 20000);
    give(w, SWITCH_IN, 22000);
}

TEST(a_wait_that_a_fault_follows_is_for_its_page)
{
    struct world w;
    off_at_20(&w);
    give(&w, SWITCH_FAULT, 22010);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_FAULT], 2 * MS);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 0);
    assert_int_equal(w.summary.faults, 1);
}

TEST(without_a_fault_it_is_not)
{
    struct world w;
    off_at_20(&w);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_FAULT], 0);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 2 * MS);
}

/* The thread has been running since: the wait was for something else. */
TEST(a_fault_long_afterwards_is_another)
{
    struct world w;
    off_at_20(&w);
    give(&w, SWITCH_FAULT, 23100);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_FAULT], 0);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 2 * MS);
}

/* For example, first for the lock of the address space, then for the page. */
TEST(a_fault_may_wait_several_times)
{
    struct world w;
    off_at_20(&w);
    give(&w, SWITCH_OUT, 22010);
    give(&w, SWITCH_IN, 25010);
    give(&w, SWITCH_FAULT, 25020);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_FAULT], 5 * MS);
}

TEST(what_the_thread_did_before_the_fault_ends_its_wait)
{
    struct world w;
    off_at_20(&w);
    put(&w, 1, record_at(SHM_EXITED, 50));
    give(&w, SWITCH_OUT, 50040);
    give(&w, SWITCH_IN, 50060);
    give(&w, SWITCH_FAULT, 50070);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_KERNEL], 2 * MS);
    assert_int_equal(w.summary.wait_ns[SHM_FAULT], 0);
}

/* The call explains the wait. */
TEST(a_fault_within_a_call_is_no_wait_of_its_own)
{
    struct world w;
    begin_with(&w, true);
    put_thread(&w, 1);
    put(&w, 1, wait_at(20));
    put(&w, 1, record_at(SHM_EXITED, 50));
    give(&w, SWITCH_OUT, 20100);
    give(&w, SWITCH_IN, 21500);
    give(&w, SWITCH_FAULT, 21510);
    finish(&w);
    assert_int_equal(w.summary.wait_ns[SHM_MUTEX], 1400 * US);
    assert_int_equal(w.summary.wait_ns[SHM_FAULT], 0);
}

/* Maps a new file of one page. */
static void *mapped(char *path)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(at, MAP_FAILED);
    unlink(path);
    close(fd);
    return at;
}

static const char *file_at(struct world *w, const void *at, int64_t in_ns)
{
    struct switch_record record = {.ns = (int64_t)clock_ns(CLOCK_MONOTONIC) + in_ns,
                                   .kind = SWITCH_FAULT,
                                   .address = (uint64_t)(uintptr_t)at};
    const char *file = faults_take(w->collect, &record).file;
    return file ? file : "none";
}

/* Also one that is mapped right after the list was read, and once the process has ended. */
TEST(a_fault_has_the_file_that_is_mapped_then)
{
    struct world w;
    char one[] = "/tmp/trail-faults-XXXXXX", two[] = "/tmp/trail-faults-XXXXXX";
    off_at_20(&w);
    w.collect->options.process.pid = getpid();
    const void *at = mapped(one);
    assert_memory_equal(file_at(&w, at, 0), one, strlen(one));
    at = mapped(two);
    w.collect->faults.due_ns = 0; /* however long it took to read the list, as under qemu */
    assert_memory_equal(file_at(&w, at, 0), two, strlen(two));
    w.collect->options.process.pid = INT32_MAX;
    assert_memory_equal(file_at(&w, at, 1000 * MS), two, strlen(two));
    finish(&w);
}
