/*
 * A call that may block. Before the call the wrapper writes it into the thread's slot, with the time; after the call it
 * writes a record if the call blocked. So a call that does not block costs no record, and one that does not return is
 * seen.
 *
 *     ssize_t read(int fd, ...)
 *     {
 *         struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_READ, object, fd, 0);
 *         return RETURNED(REAL(read)(fd, ...));
 *     }
 *
 * A call that sets nothing after its return is a brief one: the same, but a few ns faster.
 *
 * The call ends with the variable's clean-up, so that cancellation and exceptions end it as well; longjmp does not: see
 * jumps.c. A wrapper says that the function has returned (call_returned, or what includes it); a call that ends without is
 * recorded as left.
 *
 * Whether it blocked: the kernel clears the thread's pointer to its restartable sequence when it switches the thread out
 * (rseq(2)). The wrapper sets the pointer to a sequence of no instructions before the call, and reads it after: two
 * instructions, while reading the clock again would cost as much as all the rest. Without rseq the time decides.
 */
#ifndef TRAIL_PRELOAD_CALL_H
#define TRAIL_PRELOAD_CALL_H

#include "preload/board.h"

struct call {
    bool open;
    bool blocks; /* known to block: the record is written in any case */
    bool ready;  /* of a wait for several descriptors: `revents` are of this call */
    uint8_t flags;
    uint32_t release, release2; /* set by the wrapper after the call */
    uint64_t object2;
    uint64_t polled; /* the object that the open call began with, if that was SHM_POLLFDS */
    struct shm_object *counted; /* this thread is one of its waiters */
};

struct brief_call {
    bool open, returned;
};

/* MARK: Switches */

extern const struct rseq_cs preload_no_sequence __attribute__((visibility("hidden")));

ALWAYS volatile struct rseq *thread_rseq(void)
{
    return (volatile struct rseq *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Whether the calling thread has a registered rseq. */
ALWAYS bool has_rseq(void)
{
    return __rseq_size != 0 && (int)thread_rseq()->cpu_id >= 0;
}

ALWAYS void switches_begin(void)
{
    thread_rseq()->rseq_cs = (uint64_t)(uintptr_t)&preload_no_sequence;
}

ALWAYS bool switches_happened(void)
{
    return thread_rseq()->rseq_cs != (uint64_t)(uintptr_t)&preload_no_sequence;
}

/* MARK: Calls */

/*
 * Kinds of calls whose stack is taken before the call: those that nearly always block. For others it is taken where the
 * last call blocked. So a long wait is shown with its stack while it lasts, and a call that does not block does not pay
 * for the stack, as in event loops that find descriptors ready.
 */
#define STACK_BEFORE                                                                               \
    (1u << SHM_SLEEP | 1u << SHM_JOIN | 1u << SHM_CHILD | 1u << SHM_SIGNAL | 1u << SHM_CONNECT |   \
     1u << SHM_LOOKUP)

ALWAYS uintptr_t *call_place(uintptr_t pc)
{
    return &self.blocked_at[pc / 4 % SELF_PLACES];
}

/* A jump leaves the open call, and a record that was being written. */
void call_leave(void);
/* The call was switched out, or took long: writes its record. */
void call_record(const struct call *call);

/* Opens the call in the thread's slot. False: it is not recorded. */
ALWAYS bool call_open(const struct unwind_start *caller, uint32_t group, enum shm_wait wait,
                      uint64_t object, uint32_t detail, uint32_t stack)
{
    struct shm_thread *slot;
    if (!is_recorded(group))
        return false;
    slot = self.slot;
    /* In a signal handler while a call is open, or while a record is written. */
    if (UNLIKELY(slot->open_time != 0 || slot->writing))
        return false;
    slot->open_object = object;
    slot->open_pc = caller->pc;
    if (stack == 0 &&
        ((STACK_BEFORE & 1u << wait) || UNLIKELY(*call_place(caller->pc) == caller->pc))) {
        /* A copy, so that the compiler can keep the caller's in registers. */
        struct unwind_start start = *caller;
        stack = stack_of(&start);
    }
    slot->open_stack = stack;
    slot->open_detail = detail;
    slot->open_wait = (uint8_t)wait;
    slot->open_sp = caller->sp;
    slot->open_fp = caller->fp;
    if (LIKELY(self.has_rseq))
        switches_begin();
    /* Pairs with the collector's load: the other fields are complete. */
    __atomic_store_n(&slot->open_time, clock_now(), __ATOMIC_RELEASE);
    return true;
}

ALWAYS struct call call_begin(const struct unwind_start *caller, uint32_t group, enum shm_wait wait,
                              uint64_t object, uint32_t detail, uint32_t stack)
{
    struct call call = {.blocks = stack != 0, .flags = SHM_LEFT};
    call.open = call_open(caller, group, wait, object, detail, stack);
    return call;
}

ALWAYS struct brief_call brief_begin(const struct unwind_start *caller, uint32_t group,
                                     enum shm_wait wait, uint64_t object, uint32_t detail)
{
    return (struct brief_call){.open = call_open(caller, group, wait, object, detail, 0)};
}

/* The real function has returned: neither a cancellation nor an exception ends the call. */
ALWAYS void call_returned(struct call *call)
{
    call->flags &= (uint8_t)~SHM_LEFT;
}

/* The same around the call of the real function. */
#define RETURNED(...)                                                                              \
    ({                                                                                             \
        __typeof__(__VA_ARGS__) returned = __VA_ARGS__;                                            \
        call_returned(&call);                                                                      \
        returned;                                                                                  \
    })

/* It has returned; its time limit has ended it, or not. */
ALWAYS void call_expired(struct call *call, bool expired)
{
    call_returned(call);
    call->flags |= expired ? SHM_EXPIRED : 0;
}

/* Whether the open call has blocked, as far as is known now. */
ALWAYS bool open_blocked(void)
{
    return UNLIKELY(!self.has_rseq) || switches_happened();
}

ALWAYS bool call_blocked(const struct call *call)
{
    return call->open && (call->blocks || open_blocked());
}

/* Closes the open call, which did not block. */
ALWAYS void call_close(void)
{
    struct shm_thread *slot = self.slot;
    if (UNLIKELY(self.on_board))
        board_leaves();
    if (UNLIKELY(slot->open_stack))
        *call_place(slot->open_pc) = 0;
    __atomic_store_n(&slot->open_time, 0, __ATOMIC_RELEASE);
}

ALWAYS void call_end(const struct call *call)
{
    /* After a fork in a signal handler, and after the recording, there is no slot. */
    if (UNLIKELY(!self_has_slot()))
        return;
    if (UNLIKELY(call->counted != NULL)) {
        __atomic_fetch_sub(&call->counted->waiters, 1, __ATOMIC_RELEASE);
        if (call->open)
            self.counted = NULL;
    }
    if (!call->open)
        return;
    if (UNLIKELY(call_blocked(call)))
        call_record(call);
    else
        call_close();
}

/* call_record for a brief call. */
void brief_record(bool returned);

ALWAYS void brief_end(const struct brief_call *call)
{
    if (!call->open || UNLIKELY(!self_has_slot()))
        return;
    if (UNLIKELY(open_blocked()))
        brief_record(call->returned);
    else
        call_close();
}

#define CALL  __attribute__((cleanup(call_end), unused))
#define BRIEF __attribute__((cleanup(brief_end), unused))

/* The body of a wrapper of a brief call; `object` may refer to `caller`. */
#define BRIEF_CALL(group, wait, object, detail, ...)                                               \
    struct unwind_start caller = CALLER();                                                         \
    struct brief_call call BRIEF = brief_begin(&caller, group, wait, object, detail);              \
    return BRIEF_RETURNED(__VA_ARGS__)

/* RETURNED for a brief call. */
#define BRIEF_RETURNED(...)                                                                        \
    ({                                                                                             \
        __typeof__(__VA_ARGS__) returned = __VA_ARGS__;                                            \
        call.returned = true;                                                                      \
        returned;                                                                                  \
    })

/* The same for a call with a time limit, which then fails with `error`. */
#define TIMED_CALL(error, group, wait, object, detail, ...)                                        \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, group, wait, object, detail, 0);                   \
    __typeof__(__VA_ARGS__) result = __VA_ARGS__;                                                  \
    call_expired(&call, result < 0 && errno == (error));                                           \
    return result

/* Defines a wrapper; `body` is a macro that takes the call of the real function. */
#define WRAP(body, result, name, parameters, arguments)                                            \
    EXPORT result name parameters                                                                  \
    {                                                                                              \
        body(REAL(name) arguments);                                                                \
    }

#endif
