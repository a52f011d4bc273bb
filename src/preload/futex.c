/*
 * Wraps syscall(2), for futexes, io_uring and what prctl.c wraps only. std::atomic::wait,
 * std::latch, Rust's locks and channels, Wine (for several futexes at once) and programs that use
 * io_uring without liburing wait through it; libseccomp installs filters through it.
 *
 * The wrapper is a filter: for all other numbers it jumps to the real function with stack and
 * registers unchanged, so clone, vfork and other calls that return twice, or elsewhere, work. A
 * futex call continues in preload_futex_call() or preload_futexes_call(), an io_uring call in
 * preload_uring_call(), the others in prctl.c, as if the program had called these.
 */
#include <linux/futex.h>
#include <sys/syscall.h>

#include "preload/memory.h"
#include "preload/objects.h"

/* The filter reads the real function from the beginning of `real`. */
_Static_assert(offsetof(struct real, syscall) == 0, "the first row of symbols.def");
_Static_assert(SYS_futex == 202 || SYS_futex == 98, "the number in the filter");
_Static_assert(SYS_io_uring_enter == 426, "the second one");
_Static_assert(SYS_prctl == 157 || SYS_prctl == 167, "a number in the filter");
_Static_assert(SYS_seccomp == 317 || SYS_seccomp == 277, "a number in the filter");
#ifdef SYS_futex_waitv
_Static_assert(SYS_futex_waitv == 449, "the third one");
#endif

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "cmp $202, %rdi\n"
        "je preload_futex_call\n"
        "cmp $426, %rdi\n"
        "je preload_uring_call\n"
        "cmp $449, %rdi\n"
        "je preload_futexes_call\n"
        "cmp $157, %rdi\n"
        "je preload_prctl_call\n"
        "cmp $317, %rdi\n"
        "je preload_seccomp_call\n"
        "mov real(%rip), %rax\n" /* rax is free: it only counts unused vector registers */
        "test %rax, %rax\n"
        "jz 1f\n"
        "jmp *%rax\n"
        /* Called before the library's constructor. */
        "1: push %rdi\n"
        "push %rsi\n"
        "push %rdx\n"
        "push %rcx\n"
        "push %r8\n"
        "push %r9\n"
        "sub $8, %rsp\n"
        ".cfi_adjust_cfa_offset 56\n"
        "call real_find\n"
        "add $8, %rsp\n"
        "pop %r9\n"
        "pop %r8\n"
        "pop %rcx\n"
        "pop %rdx\n"
        "pop %rsi\n"
        "pop %rdi\n"
        ".cfi_adjust_cfa_offset -56\n"
        "jmp *real(%rip)\n"
        ".cfi_endproc\n"
        ".size syscall, . - syscall\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl syscall\n"
        ".type syscall, %function\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "hint 34\n" /* bti c; a no-op on older processors */
        "cmp x0, 98\n"
        "b.eq preload_futex_call\n"
        "cmp x0, 426\n"
        "b.eq preload_uring_call\n"
        "cmp x0, 449\n"
        "b.eq preload_futexes_call\n"
        "cmp x0, 167\n"
        "b.eq preload_prctl_call\n"
        "cmp x0, 277\n"
        "b.eq preload_seccomp_call\n"
        "adrp x16, real\n"
        "ldr x16, [x16, :lo12:real]\n"
        "cbz x16, 1f\n"
        "br x16\n"
        /* Before the library's constructor. */
        "1: stp x29, x30, [sp, -80]!\n"
        ".cfi_adjust_cfa_offset 80\n"
        ".cfi_rel_offset x29, 0\n"
        ".cfi_rel_offset x30, 8\n"
        "stp x0, x1, [sp, 16]\n"
        "stp x2, x3, [sp, 32]\n"
        "stp x4, x5, [sp, 48]\n"
        "str x6, [sp, 64]\n"
        "bl real_find\n"
        "ldp x0, x1, [sp, 16]\n"
        "ldp x2, x3, [sp, 32]\n"
        "ldp x4, x5, [sp, 48]\n"
        "ldr x6, [sp, 64]\n"
        "ldp x29, x30, [sp], 80\n"
        ".cfi_adjust_cfa_offset -80\n"
        ".cfi_restore x29\n"
        ".cfi_restore x30\n"
        "adrp x16, real\n"
        "ldr x16, [x16, :lo12:real]\n"
        "br x16\n"
        ".cfi_endproc\n"
        ".size syscall, . - syscall\n");
#endif

enum futex_role { FUTEX_OTHER, FUTEX_WAITS, FUTEX_WAKES };

static enum futex_role role_of(int operation)
{
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
        return FUTEX_WAITS;
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_WAKE_OP:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_CMP_REQUEUE_PI:
    case FUTEX_UNLOCK_PI:
        return FUTEX_WAKES;
    default:
        return FUTEX_OTHER;
    }
}

/* Returns the futex's identity if processes share it: see object_shared. */
static uint64_t shared_futex(const uint32_t *word, int operation)
{
    return board_of_several && !(operation & FUTEX_PRIVATE_FLAG) ? memory_object(word) : 0;
}

/* Depending on how many threads it may wake, the release ends one wait or all. */
static void record_wake(const uint32_t *word, int operation, uint32_t count, const uint32_t *word2,
                        const struct unwind_start *caller)
{
    uint64_t shared = shared_futex(word, operation);
    if (object_awaited(word) || (shared && board_awaits(shared)))
        object_released_as(word, shared, SHM_FUTEX, count > 1 ? SHM_ALL : 0, caller);
    if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE_OP && object_awaited(word2))
        object_released(word2, SHM_FUTEX, SHM_ALL, caller);
}

/* Only FUTEX_WAIT takes a duration, and only PI futexes ignore the flag that selects the clock. */
static uint64_t futex_limit(int operation, const struct timespec *timeout)
{
    int command = operation & FUTEX_CMD_MASK;
    bool is_date = (operation & FUTEX_CLOCK_REALTIME) || command == FUTEX_LOCK_PI;
    if (command == FUTEX_WAIT)
        return limit_of(timeout);
    return limit_until(is_date ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout);
}

/* Called instead of syscall(SYS_futex, ...): see the filter. */
long preload_futex_call(long number, uint32_t *word, int operation, uint32_t value, void *timeout,
                        uint32_t *word2, uint32_t value3) __attribute__((visibility("hidden")));

long preload_futex_call(long number, uint32_t *word, int operation, uint32_t value, void *timeout,
                        uint32_t *word2, uint32_t value3)
{
    struct unwind_start caller = CALLER();
    enum futex_role role = role_of(operation);
    if (role == FUTEX_OTHER || !is_recorded(SHM_GROUP_LOCKS))
        return REAL(syscall)(number, word, operation, value, timeout, word2, value3);
    if (role == FUTEX_WAKES) {
        record_wake(word, operation, value, word2, &caller);
        return REAL(syscall)(number, word, operation, value, timeout, word2, value3);
    }
    struct call call CALL = object_wait_as(&caller, SHM_GROUP_LOCKS, SHM_FUTEX, word,
                                           shared_futex(word, operation), false);
    long status = REAL(syscall)(number, word, operation, value, timeout, word2, value3);
    object_got(&call, word, false);
    /* object2 would name the futex that ended a wait for several. */
    call.object2 = 0;
    CALL_LIMITED(&call, status < 0 && errno == ETIMEDOUT, futex_limit(operation, timeout));
    if (status == 0)
        call.flags = 0;
    return status;
}

/* struct futex_waitv, which older headers do not have. */
struct one_futex {
    uint64_t value, word;
    uint32_t flags, unused;
};

enum { MAX_FUTEXES = 128 };

/* Changes the number of waiters of all futexes but the first, so that their wakes are recorded. */
static void count_others(const struct one_futex *futexes, unsigned count, int change)
{
    for (unsigned i = 1; i < count; i++) {
        struct shm_object *slot = object_slot((const void *)(uintptr_t)futexes[i].word);
        (void)__atomic_add_fetch(&slot->waiters, (uint32_t)change, __ATOMIC_ACQ_REL);
    }
}

/*
 * Called instead of syscall(SYS_futex_waitv, ...), which returns the index of the futex whose wake
 * ended the wait. Until then the wait is recorded for the first futex.
 */
long preload_futexes_call(long number, const struct one_futex *futexes, unsigned count,
                          unsigned flags, const struct timespec *until, clockid_t clock)
    __attribute__((visibility("hidden")));

long preload_futexes_call(long number, const struct one_futex *futexes, unsigned count,
                          unsigned flags, const struct timespec *until, clockid_t clock)
{
    struct unwind_start caller = CALLER();
    if (!is_recorded(SHM_GROUP_LOCKS) || !futexes || count == 0 || count > MAX_FUTEXES)
        return REAL(syscall)(number, futexes, count, flags, until, clock);
    const void *ended = (const void *)(uintptr_t)futexes[0].word;
    struct call call CALL = object_wait(&caller, SHM_GROUP_LOCKS, SHM_FUTEX, ended, false);
    count_others(futexes, count, 1);
    long status = REAL(syscall)(number, futexes, count, flags, until, clock);
    if (!self_has_slot())
        return status;
    count_others(futexes, count, -1);
    if (status >= 0 && status < (long)count)
        ended = (const void *)(uintptr_t)futexes[status].word;
    object_got(&call, ended, status >= 0);
    CALL_LIMITED(&call, status < 0 && errno == ETIMEDOUT, limit_until(clock, until));
    call.object2 = (uint64_t)(uintptr_t)ended;
    return status;
}

/* Flag of io_uring_enter: the ring is an index into the thread's registered rings, not a
 * descriptor. */
#define REGISTERED_RING (1u << 4)

/* Called instead of syscall(SYS_io_uring_enter, ...). A call that only submits does not wait. */
long preload_uring_call(long number, int ring, unsigned submit, unsigned least, unsigned flags,
                        void *argument, size_t size) __attribute__((visibility("hidden")));

long preload_uring_call(long number, int ring, unsigned submit, unsigned least, unsigned flags,
                        void *argument, size_t size)
{
    if (!least)
        return REAL(syscall)(number, ring, submit, least, flags, argument, size);
    BRIEF_CALL(SHM_GROUP_IO, SHM_POLL, 0, flags & REGISTERED_RING ? 0 : (uint32_t)ring + 1,
               REAL(syscall)(number, ring, submit, least, flags, argument, size));
}
