/* Reads the stacks of open calls from outside: see open_stacks.h. */
#include "collect/open_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

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
    ssize_t got;
    if (from > UINT64_MAX - 2 * size)
        return 0;
    while (at < from + size && parts < PAGES + 1) {
        uint64_t end = (at | (PAGE - 1)) + 1;
        if (end > from + size)
            end = from + size;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the other process's. */
        there[parts++] = (struct iovec){(void *)(uintptr_t)at, (size_t)(end - at)};
        at = end;
    }
    got = process_vm_readv(pid, &here, 1, there, parts, 0);
    return got > 0 ? (size_t)got : 0;
}

/* Uses the TID, because the first thread may have ended. It must belong to the process before and
 * after the copy. */
size_t open_copy_memory(const struct collect *c, const struct thread *thread, uint64_t from,
                        void *to, size_t size)
{
    size_t got;
    errno = 0;
    if (thread->tid > UINT32_MAX || !process_has_thread(&c->options.process, (uint32_t)thread->tid))
        return 0;
    got = read_pages((int)thread->tid, from, to, size);
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

uint32_t open_read_stack(struct collect *c, const struct thread *thread,
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
    struct cpu_sample sample;
    size_t count;
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
    sample = copy_stack(c, thread, open, stack, sizeof stack);
    count = code_guards(c, &sample, found, MOST_GUARDS);
    free(thread->feed.guards);
    thread->feed.guards = count ? malloc(count * sizeof *found) : NULL;
    if (!thread->feed.guards)
        return;
    memcpy(thread->feed.guards, found, count * sizeof *found);
    thread->feed.guard_count = count;
}
