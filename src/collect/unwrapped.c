/* Looks at the threads that sleep outside of wrapped calls: see unwrapped.h. */
#include "collect/unwrapped.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/small_file.h"
#include "collect/parts.h"

/* A wait that has lasted for less may end before it is looked at. */
#define ASLEEP_NS 20000000
#define LOOKS     64 /* per step */

/* Where a thread sleeps. */
struct place {
    long call; /* -1: in none */
    uint64_t arguments[6], sp, pc;
};

/* "NUMBER ARGUMENT... SP PC", or "-1 SP PC"; false: "running", or not permitted. */
static bool read_place(const struct collect *c, const struct thread *thread, struct place *place)
{
    char path[64], text[256];
    uint64_t *a = place->arguments;
    memset(place, 0, sizeof *place);
    (void)snprintf(path, sizeof path, "/proc/%d/task/%" PRIu64 "/syscall",
                   (int)c->options.process.pid, thread->tid);
    if (!small_file_text(path, text, sizeof text))
        return false;
    if (sscanf(text, "-1 %" SCNx64 " %" SCNx64, &place->sp, &place->pc) == 2) {
        place->call = -1;
        return true;
    }
    return sscanf(text,
                  "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                  " %" SCNx64 " %" SCNx64,
                  &place->call, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &place->sp,
                  &place->pc) == 9;
}

/* Whether the thread waits for a futex to change. */
static bool is_futex_wait(const struct place *place)
{
    if (place->call != SYS_futex)
        return false;
    switch (place->arguments[1] & (uint32_t)FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
        return true;
    default:
        return false;
    }
}

/*
 * Returns the holder of a lock of the C library, which has the same begin as its word: a mutex has
 * its owner's TID there, a stream's lock the owner's handle.
 */
static uint64_t owner_of(const struct collect *c, const struct thread *thread, uint64_t futex)
{
    struct {
        uint32_t word, count;
        uint64_t owner;
    } lock;
    const struct thread *owner;
    if (open_copy_memory(c, thread, futex, &lock, sizeof lock) != sizeof lock || !lock.word ||
        !lock.owner)
        return 0;
    owner = idmap_find(&c->threads.by_handle, lock.owner);
    if (!owner)
        owner = thread_with_tid(c, thread_tid(c, (uint32_t)lock.owner));
    return owner && owner != thread ? owner->serial : 0;
}

/* Determines what a thread waits for at a word, perhaps the lock of a stream; NULL: of none. */
static void describe_futex(struct collect *c, const struct thread *thread, uint64_t futex,
                           const char *stream, struct unwrapped *to)
{
    struct op op = {.kind = OP_BLOCK, .wait = SHM_FUTEX, .object = futex, .stack = to->stack};
    to->owner = owner_of(c, thread, futex);
    if (stream)
        lock_names_within(c, futex, stream);
    lock_names_wait(c, &op);
    if (op.wait == SHM_FUTEX && to->owner)
        op.wait = SHM_MUTEX;
    if (op.wait == SHM_FUTEX || op.wait == SHM_MUTEX)
        lock_names_unwrapped(c, &op);
    to->wait = op.wait;
    to->object = op.object;
    to->name = op.name;
}

static void look(struct collect *c, struct thread *thread)
{
    struct unwrapped *at = &thread->feed.unwrapped;
    struct unwrapped found = {.off_ns = thread->oncpu.newest_ns, .wait = SHM_KERNEL};
    struct place place, after;
    *at = found;
    if (!read_place(c, thread, &place))
        return;
    found.stack = open_read_stack(
        c, thread, &(struct cpu_sample){.pc = place.pc - (place.call >= 0), .sp = place.sp});
    if (is_futex_wait(&place))
        describe_futex(c, thread, place.arguments[0], NULL, &found);
    /* All of it belongs together if the thread has not moved. */
    if (read_place(c, thread, &after) && memcmp(&place, &after, sizeof place) == 0)
        *at = found;
}

/* Whether a thread has been asleep for a while. */
static bool is_asleep(const struct thread *thread, int64_t now_ns)
{
    return thread->slot && thread->tid && thread->oncpu.newest_out &&
           now_ns - thread->oncpu.newest_ns >= ASLEEP_NS;
}

void unwrapped_step(struct collect *c)
{
    int64_t now_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
    struct thread *thread;
    struct area_open open;
    unsigned looks = 0;
    if (c->refused || !c->options.process.pid || area_options(c->area)->stacks == SHM_STACKS_NONE)
        return;
    for (size_t at = 0; looks < LOOKS && (thread = threads_next(c, &at)) != NULL;) {
        if (!is_asleep(thread, now_ns) ||
            thread->feed.unwrapped.off_ns == thread->oncpu.newest_ns ||
            area_open_call(c->area, thread->slot, &open))
            continue;
        looks++;
        look(c, thread);
    }
}

static void stream_text(struct collect *c, const struct area_open *open, char *text, size_t size)
{
    bool has = open->detail && open->detail <= SHM_DESCRIPTORS;
    const char *name =
        has ? descriptors_name(c, open->detail, area_generation(c->area, open->detail - 1)) : NULL;
    (void)snprintf(text, size, "stream%s%s", name ? " " : "", name ? name : "");
}

/* Looks once, and then until the lock is taken: what comes after that makes the call a read or write
 * again, as the wait is one. */
void unwrapped_look_within(struct collect *c, struct thread *thread, const struct area_open *open)
{
    struct thread_feed *feed = &thread->feed;
    struct unwrapped found = {.wait = SHM_KERNEL, .stack = open->stack};
    struct place place;
    char stream[600];
    if ((open->wait != SHM_READ && open->wait != SHM_WRITE) || c->refused ||
        !c->options.process.pid || c->open_stacks.read == LOOKS || !open_is_long(c, open) ||
        (feed->within_time == open->time && feed->within.wait == SHM_KERNEL))
        return;
    c->open_stacks.read++;
    if (read_place(c, thread, &place) && is_futex_wait(&place)) {
        stream_text(c, open, stream, sizeof stream);
        describe_futex(c, thread, place.arguments[0], stream, &found);
    }
    feed->within = found;
    feed->within_time = open->time;
}

void unwrapped_replace(const struct thread *thread, uint64_t time, struct op *op)
{
    const struct unwrapped *within = &thread->feed.within;
    if (thread->feed.within_time != time || within->wait == SHM_KERNEL)
        return;
    op->wait = within->wait;
    op->object = within->object;
    op->name = within->name;
    op->detail = 0;
}

const struct unwrapped *unwrapped_now(const struct thread *thread, const struct area_open *open)
{
    const struct unwrapped *at = &thread->feed.unwrapped;
    if (open)
        return thread->feed.within_time == open->time ? &thread->feed.within : NULL;
    return at->off_ns && thread->oncpu.newest_out && at->off_ns == thread->oncpu.newest_ns ? at
                                                                                           : NULL;
}

void unwrapped_describe(const struct thread *thread, int64_t off_ns, struct op *op)
{
    const struct unwrapped *at = &thread->feed.unwrapped;
    if (!off_ns || at->off_ns != off_ns)
        return;
    op->stack = at->stack;
    op->wait = at->wait;
    op->object = at->object;
    op->name = at->name;
}
