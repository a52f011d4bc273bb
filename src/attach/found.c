/* Converts what `trail stuck` finds into waits of a recording: see found.h. */
#include "attach/found.h"

#include <gnu/libc-version.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/small_file.h"

/* A wait without a kind of its own is a wait in the kernel. */
static enum shm_wait wait_of(enum wire_wait kind)
{
    switch (kind) {
#define WAIT(name, group, its, ...)                                                                \
    case WIRE_WAIT_##its:                                                                          \
        return SHM_##name;
        WAIT(MUTEX, , MUTEX)
        WAIT(WRLOCK, , RWLOCK)
        WAIT(FUTEX, , FUTEX)
        WAIT(COND, , CONDITION)
        WAIT(SEMAPHORE, , SEMAPHORE)
        WAIT(BARRIER, , BARRIER)
        WAIT(JOIN, , JOIN)
        WAIT(READ, , READ)
        WAIT(WRITE, , WRITE)
        WAIT(ACCEPT, , ACCEPT)
        WAIT(CONNECT, , CONNECT)
        WAIT(POLL, , POLL)
        WAIT(FILE, , FILE)
        WAIT(CHILD, , CHILD)
        WAIT(SIGNAL, , SIGNAL)
        WAIT(SLEEP, , SLEEP)
#undef WAIT
    default:
        return SHM_KERNEL;
    }
}

/*
 * Returns the offset of the two words of a pthread_cond_t at which threads wait; glibc 2.41 removed
 * two words before them.
 */
static uint64_t condition_words(void)
{
    unsigned major = 0, minor = 0;
    bool known = sscanf(gnu_get_libc_version(), "%u.%u", &major, &minor) == 2;
    return known && (major > 2 || minor >= 41) ? 32 : 40;
}

/*
 * Returns the address by which the program knows the object; for a join, the thread's TID, which is
 * the value of the futex. In a pthread_barrier_t a thread waits at the second word, in a
 * pthread_rwlock_t at the third or the fourth. The layout is that of this C library: the process
 * can load a library built with it.
 */
static uint64_t object_of(enum shm_wait wait, const uint64_t *arguments)
{
    uint64_t futex = arguments[0];
    switch (wait) {
    case SHM_MUTEX:
    case SHM_SEMAPHORE:
    case SHM_FUTEX:
        return futex;
    case SHM_COND:
        return (futex - condition_words()) & ~UINT64_C(7);
    case SHM_BARRIER:
        return futex & ~UINT64_C(7);
    case SHM_WRLOCK:
        return (futex & ~UINT64_C(7)) - 8;
    case SHM_JOIN:
        return (uint32_t)arguments[2];
    default:
        return 0;
    }
}

static uint32_t descriptor_of(enum shm_wait wait, uint64_t argument)
{
    bool has = wait == SHM_READ || wait == SHM_WRITE || wait == SHM_ACCEPT || wait == SHM_CONNECT;
    return has && argument < SHM_DESCRIPTORS ? (uint32_t)argument + 1 : 0;
}

/* Frames of the C library before the call's caller are left out of its stack. */
static bool is_of_libc(const struct stuck_frame *frame)
{
    return strncmp(frame->module, "libc.so", 7) == 0 ||
           strncmp(frame->module, "libpthread", 10) == 0;
}

/* Reads the PCs from the call's caller outwards; inlined calls share one. Returns their number. */
static size_t read_stack(const struct stuck_thread *thread, uint64_t *pcs, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < thread->frame_count && count < most; i++) {
        const struct stuck_frame *frame = &thread->frames[i];
        if ((count == 0 && is_of_libc(frame)) || (count > 0 && pcs[count - 1] == frame->pc + 1))
            continue;
        pcs[count++] = frame->pc + 1;
    }
    return count;
}

/* Returns a PC of the outermost function outside of the C and C++ libraries; 0: none. */
static uint64_t find_start(const struct stuck_thread *thread)
{
    for (size_t i = thread->frame_count; i-- > 0;) {
        const struct stuck_frame *frame = &thread->frames[i];
        if (!is_of_libc(frame) && strncmp(frame->module, "libstdc++", 9) != 0 &&
            strncmp(frame->module, "libtrail-", 9) != 0)
            return frame->pc;
    }
    return 0;
}

/* What a thread does now; STILL_WAITS: it waits in the call in which it was found. */
enum now { RUNS, WAITS, STILL_WAITS };

static enum now look_again(pid_t pid, const struct held_thread *held)
{
    char text[256];
    uint64_t sp;
    if (!small_file_text(text, sizeof text, "/proc/%d/task/%d/syscall", (int)pid, (int)held->tid) ||
        *text < '0' || *text > '9')
        return RUNS;
    return sscanf(text, "%*d %*s %*s %*s %*s %*s %*s %" SCNx64, &sp) == 1 && sp == held->sp
               ? STILL_WAITS
               : WAITS;
}

/* A thread that was stopped for inspection needs a CPU to return to its call. */
#define BACK_TRIES 50

static enum now look_when_back(const struct stuck_process *process,
                               const struct stuck_thread *thread, int *tries)
{
    enum now now = look_again(process->held.pid, thread->held);
    while (now == RUNS && thread->state == STUCK_WAITS && *tries > 0) {
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        now = look_again(process->held.pid, thread->held);
        --*tries;
    }
    return now;
}

static void found_thread(const struct stuck_process *process, const struct stuck_thread *thread,
                         int *tries, attach_found_fn *found, void *context)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    struct shm_waiting its = {.tid = (uint32_t)thread->held->tid};
    if (thread->state == STUCK_ENDED)
        return;
    if (thread->held->tid != process->held.pid && !thread->is_cut)
        its.start = find_start(thread);
    enum now now = look_when_back(process, thread, tries);
    if (now != RUNS)
        its.wait = SHM_KERNEL;
    if (now == STILL_WAITS && thread->state == STUCK_WAITS && thread->held->in_call) {
        its.wait = wait_of(thread->kind);
        its.object = object_of(its.wait, thread->held->arguments);
        its.detail = descriptor_of(its.wait, thread->held->arguments[0]);
        its.pcs = pcs;
        its.count = read_stack(thread, pcs, SHM_STACK_FRAMES);
    }
    found(context, &its);
}

void found_threads(const struct stuck_process *process, attach_found_fn *found, void *context)
{
    int tries = BACK_TRIES;
    found(context, NULL);
    for (size_t i = 0; i < process->held.count; i++)
        found_thread(process, &process->threads[i], &tries, found, context);
}
