/*
 * Waits in an io_uring ring, without liburing, for what the arguments select: 'r', a read from a
 * pipe; 's', from a socket; 'f', from the pipe through a registered descriptor. Two end at once:
 * 'n', a no-op, and 'R', a read of available data. The ring has four entries.
 *
 * usage: uring WHAT
 *        uring - WHAT              a thread writes to the pipe when standard input has a line, and it ends
 *        uring - WHAT registered   the same, and the ring is the first one of the thread's table
 */
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#define ENTRIES 4

static struct io_uring_params parameters;
static struct io_uring_sqe *entries;
static unsigned *tail, *indices, *completed;
static int ring, ends[2], pair[2];
/* Descriptor and flags for the wait. */
static int waits_for;
static unsigned how = IORING_ENTER_GETEVENTS;
static char byte;

static void *map(size_t size, uint64_t offset)
{
    void *at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, (off_t)offset);
    CHECK(at != MAP_FAILED);
    return at;
}

static void make_ring(void)
{
    size_t size;
    char *memory;
    ring = (int)syscall(SYS_io_uring_setup, ENTRIES, &parameters);
    if (ring < 0)
        _exit(77);
    size = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    if (size < parameters.sq_off.array + ENTRIES * sizeof *indices)
        size = parameters.sq_off.array + ENTRIES * sizeof *indices;
    memory = map(size, IORING_OFF_SQ_RING);
    entries = map(ENTRIES * sizeof *entries, IORING_OFF_SQES);
    tail = (unsigned *)(void *)(memory + parameters.sq_off.tail);
    indices = (unsigned *)(void *)(memory + parameters.sq_off.array);
    completed = (unsigned *)(void *)(memory + parameters.cq_off.head);
}

static struct io_uring_sqe entry_of(char what)
{
    struct io_uring_sqe entry = {.opcode = IORING_OP_READ,
                                 .fd = ends[0],
                                 .addr = (uint64_t)(uintptr_t)&byte,
                                 .len = 1,
                                 .user_data = 1};
    if (what == 's')
        entry = (struct io_uring_sqe){
            .opcode = IORING_OP_RECV, .fd = pair[0], .addr = (uint64_t)(uintptr_t)&byte, .len = 1};
    if (what == 'n')
        entry = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 1};
    if (what == 'f') {
        CHECK(syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &ends[0], 1) == 0);
        entry.fd = 0;
        entry.flags = IOSQE_FIXED_FILE;
    }
    return entry;
}

/* Submits one entry per system call, and consumes those that complete at once. */
static void submit(char what)
{
    unsigned at = *tail % ENTRIES;
    if (what == 'R')
        CHECK(write(ends[1], "", 1) == 1);
    entries[at] = entry_of(what);
    indices[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0) == 1);
    if (what == 'n' || what == 'R')
        __atomic_store_n(completed, *completed + 1, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static void waits_in_ring(void)
{
    CHECK(syscall(SYS_io_uring_enter, waits_for, 0, 1, how, NULL, 0) == 0);
    __asm__ volatile("");
}

static void *writes(void *unused)
{
    char line[8];
    CHECK(read(STDIN_FILENO, line, sizeof line) > 0);
    CHECK(write(ends[1], "", 1) == 1);
    return unused;
}

/* Threads have no table of rings before Linux 5.18. */
static void register_ring(void)
{
    struct io_uring_rsrc_update update = {.offset = UINT32_MAX, .data = (uint64_t)ring};
    if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_RING_FDS, &update, 1) != 1)
        _exit(77);
    waits_for = (int)update.offset;
    how |= IORING_ENTER_REGISTERED_RING;
}

int main(int argc, char **argv)
{
    const char *operations = argv[argc == 2 ? 1 : 2];
    pthread_t thread;
    CHECK(argc >= 2 && argc <= 4);
    make_ring();
    waits_for = ring;
    if (argc == 4)
        register_ring();
    CHECK(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (const char *what = operations; *what; what++)
        submit(*what);
    if (argc > 2)
        CHECK(pthread_create(&thread, NULL, writes, NULL) == 0);
    waits_in_ring();
    if (argc > 2)
        CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}
