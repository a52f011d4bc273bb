/* Looks at the calls in which threads are from outside: see open_stacks.h. */
#include "collect/open_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/present_memory.h"
#include "base/small_file.h"
#include "collect/calls.h"
#include "collect/parts.h"

/* A call that has been open for less may still return. */
#define OPEN_NS     20000000
#define OPEN_STACKS 64 /* per step */
#define PAGE        4096
#define PAGES       16

/* Copies memory page by page, because it may end at any page. Returns the number of bytes. */
static size_t read_pages(int pid, uint64_t from, void *to, size_t size)
{
    struct iovec here = {to, size}, there[PAGES + 1];
    uint64_t at = from;
    size_t parts = 0;
    if (from > UINT64_MAX - 2 * size)
        return 0;
    size = present_memory(pid, from, size);
    while (at < from + size && parts < PAGES + 1) {
        uint64_t end = (at | (PAGE - 1)) + 1;
        if (end > from + size)
            end = from + size;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the other process's. */
        there[parts++] = (struct iovec){(void *)(uintptr_t)at, (size_t)(end - at)};
        at = end;
    }
    ssize_t got = process_vm_readv(pid, &here, 1, there, parts, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Uses the TID, because the first thread may have ended. It must belong to the process before and
 * after the copy. */
size_t open_copy_memory(const struct collect *c, const struct thread *thread, uint64_t from,
                        void *to, size_t size)
{
    errno = 0;
    if (thread->tid > UINT32_MAX || !process_has_thread(&c->options.process, (uint32_t)thread->tid))
        return 0;
    size_t got = read_pages((int)thread->tid, from, to, size);
    return got > 0 && process_has_thread(&c->options.process, (uint32_t)thread->tid) ? got : 0;
}

size_t open_copy(struct collect *c, const struct thread *thread, const struct area_open *open,
                 uint64_t from, void *to, size_t size)
{
    struct area_open after;
    size_t got = open_copy_memory(c, thread, from, to, size);
    return got > 0 && area_open_call(c->area, thread->slot, &after) && after.time == open->time
               ? got
               : 0;
}

/* A sample's PC is the interrupted instruction; a call's is its return address. */
static struct cpu_sample copy_stack(struct collect *c, const struct thread *thread,
                                    const struct area_open *open, uint8_t *stack, size_t size)
{
    struct cpu_sample sample = {.pc = open->pc - 1, .sp = open->sp, .fp = open->fp, .stack = stack};
    sample.stack_size = open_copy(c, thread, open, open->sp, stack, size);
    return sample;
}

static uint32_t add_copied(struct collect *c, const struct cpu_sample *sample)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count = sample->stack_size ? code_walk(c, sample, pcs) : 0;
    return count ? area_add_stack(c->area, pcs, count) : 0;
}

static uint32_t read_open(struct collect *c, const struct thread *thread,
                          const struct area_open *open)
{
    uint8_t stack[PAGES * PAGE];
    struct cpu_sample sample = copy_stack(c, thread, open, stack, sizeof stack);
    if (sample.stack_size == 0 && (errno == EPERM || errno == ENOSYS))
        c->summary.refused_stacks++;
    return add_copied(c, &sample);
}

/* Returns the number of the stack that a thread has at the sample's registers; 0: it cannot be
 * read. The caller checks that the thread does not move meanwhile. */
static uint32_t open_read_stack(struct collect *c, const struct thread *thread,
                                const struct cpu_sample *registers)
{
    uint8_t stack[PAGES * PAGE];
    struct cpu_sample sample = *registers;
    sample.stack = stack;
    sample.stack_size = open_copy_memory(c, thread, sample.sp, stack, sizeof stack);
    return add_copied(c, &sample);
}

void open_stacks_step(struct collect *c)
{
    c->open_stacks.read = 0;
}

bool open_is_long(const struct collect *c, const struct area_open *open)
{
    return ticks_now(c->ticks) - open->time >= ticks_of_ns(c->ticks, OPEN_NS);
}

uint32_t open_stack(struct collect *c, struct thread *thread, const struct area_open *open)
{
    if (open->stack || area_options(c->area)->stacks == SHM_STACKS_NONE)
        return open->stack;
    /* An OpenMP wait: the call that reported it has returned, so its place is the stack. */
    if (open->sp == 0)
        return area_add_stack(c->area, &open->pc, 1);
    if (thread->feed.stack_time == open->time)
        return thread->feed.stack_number;
    if (!open_is_long(c, open) || c->open_stacks.read == OPEN_STACKS)
        return 0;
    c->open_stacks.read++;
    thread->feed.stack_number = read_open(c, thread, open);
    thread->feed.stack_time = open->time;
    return thread->feed.stack_number;
}

void open_guards(struct collect *c, struct thread *thread, const struct area_open *open)
{
    struct guarded_lock found[MOST_GUARDS];
    uint8_t stack[PAGES * PAGE];
    if (!c->options.guards || open->sp == 0 || thread->feed.guards_time == open->time ||
        !open_is_long(c, open))
        return;
    if (open->stack && lock_names_hides_holder(c, open->stack))
        c->open_stacks.guards_matter = true;
    if (!c->open_stacks.guards_matter || c->open_stacks.read == OPEN_STACKS)
        return;
    thread->feed.guards_time = open->time;
    thread->feed.guard_count = 0;
    if (open->stack && lock_names_gives_up(c, open->stack))
        return;
    c->open_stacks.read++;
    struct cpu_sample sample = copy_stack(c, thread, open, stack, sizeof stack);
    size_t count = code_guards(c, &sample, found, MOST_GUARDS);
    free(thread->feed.guards);
    thread->feed.guards = count ? malloc(count * sizeof *found) : NULL;
    if (!thread->feed.guards)
        return;
    memcpy(thread->feed.guards, found, count * sizeof *found);
    thread->feed.guard_count = count;
}

/* MARK: Waits outside of wrapped calls */

/* Where a thread sleeps. */
struct place {
    long call; /* -1: in none */
    uint64_t arguments[6], sp, pc;
};

/* "NUMBER ARGUMENT... SP PC", or "-1 SP PC"; false: "running", or not permitted. */
static bool read_place(const struct collect *c, const struct thread *thread, struct place *place)
{
    char text[256];
    memset(place, 0, sizeof *place);
    uint64_t *a = place->arguments;
    if (!small_file_text(text, sizeof text, "/proc/%d/task/%" PRIu64 "/syscall",
                         (int)c->options.process.pid, thread->tid))
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
 * Returns the holder of a C library lock whose word is at `futex`. The owner is at the same offset
 * in all of them: of a mutex its TID, of a stream's lock its handle.
 */
static uint64_t owner_of(const struct collect *c, const struct thread *thread, uint64_t futex)
{
    struct {
        uint32_t word, count;
        uint64_t owner;
    } lock;
    if (open_copy_memory(c, thread, futex, &lock, sizeof lock) != sizeof lock || !lock.word ||
        !lock.owner)
        return 0;
    const struct thread *owner = idmap_find(&c->threads.by_handle, lock.owner);
    if (!owner)
        owner = thread_with_tid(c, thread_tid(c, (uint32_t)lock.owner));
    return owner && owner != thread ? owner->serial : 0;
}

/* Determines what a thread waits for at a futex, which may be the lock of `stream` (NULL: none). */
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

/* Sets the kind of wait of a system call, and what it is for if that is a descriptor or lock. */
static void describe_call(struct collect *c, const struct place *place, struct unwrapped *to)
{
    const struct call *call = calls_find(place->call);
    uint64_t fd = place->arguments[0];
    if (!call || call->argument == ARGUMENT_LOCKED || call->argument == ARGUMENT_FUTEX ||
        !area_has_group(c->area, wait_kinds[call->wait].group))
        return;
    to->wait = call->wait;
    if (call->argument < ARGUMENT_FD || fd >= SHM_DESCRIPTORS)
        return;
    to->detail = (uint32_t)fd + 1;
    to->name = descriptors_name(c, to->detail, area_generation(c->area, (uint32_t)fd));
}

static void add_look(struct collect *c, struct thread *thread, const struct glance *look)
{
    struct glances *looks = thread->feed.glances;
    if (!looks && !(looks = thread->feed.glances = calloc(1, sizeof *looks))) {
        collect_no_memory(c);
        return;
    }
    looks->at[looks->count++ % GLANCES] = *look;
}

static void look(struct collect *c, struct thread *thread)
{
    struct glance look = {.began_ns = (int64_t)clock_ns(CLOCK_MONOTONIC),
                          .found = {.wait = SHM_KERNEL}};
    struct place place, after;
    thread->feed.looked_ns = look.began_ns;
    if (!read_place(c, thread, &place))
        return;
    look.found.stack = open_read_stack(
        c, thread, &(struct cpu_sample){.pc = place.pc - (place.call >= 0), .sp = place.sp});
    if (is_futex_wait(&place))
        describe_futex(c, thread, place.arguments[0], NULL, &look.found);
    else
        describe_call(c, &place, &look.found);
    /* All of it belongs together if the thread has not moved. */
    if (!read_place(c, thread, &after) || memcmp(&place, &after, sizeof place) != 0)
        return;
    look.ended_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
    add_look(c, thread, &look);
}

/*
 * Whether a thread sleeps outside of wrapped calls, and has not been looked at since it began to.
 */
static bool is_unknown(const struct collect *c, const struct thread *thread)
{
    struct area_open open;
    return thread->slot && thread->tid && thread->oncpu.newest_out &&
           thread->feed.looked_ns < thread->oncpu.newest_ns &&
           !area_open_call(c->area, thread->slot, &open);
}

/* Looks take at most this part of a CPU. */
#define LOOK_PART 50

void open_look_at_sleepers(struct collect *c)
{
    struct open_stacks *o = &c->open_stacks;
    int64_t cost_ns, begin_ns = (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t now_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
    struct thread *thread = NULL;
    o->looks = 0;
    o->before_ns = now_ns;
    if (now_ns < o->due_ns || c->refused || !c->options.process.pid ||
        area_options(c->area)->stacks == SHM_STACKS_NONE)
        return;
    while (o->looks < OPEN_STACKS && (thread = threads_next(c, &o->next)) != NULL) {
        if (!is_unknown(c, thread))
            continue;
        o->looks++;
        look(c, thread);
    }
    if (!thread)
        o->next = 0;
    cost_ns = (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    o->due_ns = o->looks ? now_ns + cost_ns * LOOK_PART : 0;
}

static void stream_text(struct collect *c, uint32_t detail, uint32_t generation, char *text,
                        size_t size)
{
    const char *name =
        detail && detail <= SHM_DESCRIPTORS ? descriptors_name(c, detail, generation) : NULL;
    (void)snprintf(text, size, "stream%s%s", name ? " " : "", name ? name : "");
}

void open_name_stream(struct collect *c, uint64_t lock, uint32_t detail, uint32_t generation)
{
    char text[600];
    stream_text(c, detail, generation, text, sizeof text);
    lock_names_within(c, lock, text);
}

/* Looks once, and then until the lock is taken: what the call does after that is a read or write
 * again. */
void open_look_within(struct collect *c, struct thread *thread, const struct area_open *open)
{
    struct thread_feed *feed = &thread->feed;
    struct unwrapped found = {.wait = SHM_KERNEL, .stack = open->stack};
    struct place place;
    char stream[600];
    if ((open->wait != SHM_READ && open->wait != SHM_WRITE) || c->refused ||
        !c->options.process.pid || c->open_stacks.read == OPEN_STACKS || !open_is_long(c, open) ||
        (feed->within_time == open->time && feed->within.wait == SHM_KERNEL))
        return;
    c->open_stacks.read++;
    if (read_place(c, thread, &place) && is_futex_wait(&place)) {
        bool has = open->detail && open->detail <= SHM_DESCRIPTORS;
        stream_text(c, open->detail, has ? area_generation(c->area, open->detail - 1) : 0, stream,
                    sizeof stream);
        describe_futex(c, thread, place.arguments[0], stream, &found);
    }
    feed->within = found;
    feed->within_time = open->time;
}

void open_replace(const struct thread *thread, uint64_t time, struct op *op)
{
    const struct unwrapped *within = &thread->feed.within;
    if (thread->feed.within_time != time || within->wait == SHM_KERNEL)
        return;
    op->wait = within->wait;
    op->object = within->object;
    op->name = within->name;
    op->detail = 0;
}

const struct unwrapped *open_wait_now(const struct thread *thread, const struct area_open *open)
{
    const struct glances *looks = thread->feed.glances;
    const struct glance *last = looks ? &looks->at[(looks->count - 1) % GLANCES] : NULL;
    if (open)
        return thread->feed.within_time == open->time ? &thread->feed.within : NULL;
    return last && thread->oncpu.newest_out && last->began_ns >= thread->oncpu.newest_ns
               ? &last->found
               : NULL;
}

void open_describe(const struct collect *c, const struct thread *thread, int64_t off_ns,
                   struct op *op)
{
    const struct glances *looks = thread->feed.glances;
    int64_t until_ns = oncpu_off_until(c, thread, off_ns, c->open_stacks.before_ns);
    for (unsigned i = 0; off_ns && looks && i < GLANCES && i < looks->count; i++) {
        const struct glance *at = &looks->at[i];
        if (at->began_ns < off_ns || at->ended_ns > until_ns)
            continue;
        op->stack = at->found.stack;
        op->wait = at->found.wait;
        op->object = at->found.object;
        op->name = at->found.name;
        op->detail = at->found.detail;
        return;
    }
}
