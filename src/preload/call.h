/*
 * A call that may block. Before the call the wrapper writes it into the thread's slot, with the
 * time; after the call it writes a record if the call blocked. So a call that does not block costs
 * no record, and a call that never returns is visible.
 *
 *     ssize_t read(int fd, ...)
 *     {
 *         struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_READ, object, fd, 0);
 *         return RETURNED(REAL(read)(fd, ...));
 *     }
 *
 * A brief call has nothing to set after its return and is a few ns faster.
 *
 * The variable's clean-up ends the call, also on cancellation and exceptions; for longjmp see
 * jumps.c. A wrapper marks the return of the function (call_returned, RETURNED); a call that ends
 * without it is recorded as left.
 *
 * Whether it blocked: the kernel clears the thread's pointer to its restartable sequence when it
 * switches the thread out (rseq(2)). The wrapper points it to an empty sequence before the call and
 * reads it afterwards. That is two instructions; reading the clock again would cost as much as
 * everything else. Without rseq the duration decides.
 */
#pragma once

#include "preload/board.h"

struct call {
    bool open;
    bool blocks; /* known to block: the record is written in any case */
    bool ready;  /* `revents` of the polled descriptors were set by this call */
    uint8_t flags;
    uint32_t release, release2; /* set by the wrapper after the call */
    uint32_t limit;             /* the upper half, if the time limit ended it: see SHM_EXPIRED */
    uint64_t object2;
    uint64_t polled; /* the object with which the call was opened, if it was SHM_POLLFDS */
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
 * Whether a wrapper may read what the program passes before the kernel does. The kernel only fails
 * if nothing is mapped there; most such addresses are NULL, -1 or small numbers.
 */
ALWAYS bool is_address(const void *pointer)
{
    return (intptr_t)pointer >= 4096;
}

/* Adds a call to a tally. True: it is time for a record, which resets the tally. */
bool tally_add(struct tally *tally, uint64_t ticks, uint64_t now);
struct shm_record tally_record(struct tally *tally, enum shm_wait wait);

/*
 * Kinds of calls that nearly always block: their stack is taken before the call. For other kinds it
 * is taken if the last call from the same place blocked. So a long wait has its stack while it
 * lasts, and calls that do not block, as in a busy event loop, do not pay for one.
 */
#define STACK_BEFORE                                                                               \
    (1u << SHM_SLEEP | 1u << SHM_JOIN | 1u << SHM_CHILD | 1u << SHM_SIGNAL | 1u << SHM_CONNECT |   \
     1u << SHM_LOOKUP)

ALWAYS uintptr_t *call_place(uintptr_t pc)
{
    return &self.blocked_at[pc / 4 % SELF_PLACES];
}

/* Called before a jump, which leaves the open call and any record being written. */
void call_leave(void);
/* Writes the record of a call that was switched out or took long. */
void call_record(const struct call *call);

/* Opens the call in the thread's slot. False: it is not recorded. */
ALWAYS bool call_open(const struct unwind_start *caller, uint32_t group, enum shm_wait wait,
                      uint64_t object, uint32_t detail, uint32_t stack)
{
    if (!is_recorded(group))
        return false;
    struct shm_thread *slot = self.slot;
    /* A signal handler interrupted an open call or the writing of a record. */
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

/* Marks that the real function returned rather than being left by a cancellation or an
 * exception. */
ALWAYS void call_returned(struct call *call)
{
    call->flags &= (uint8_t)~SHM_LEFT;
}

/* Evaluates a call of the real function and marks its return. */
#define RETURNED(...)                                                                              \
    ({                                                                                             \
        __typeof__(__VA_ARGS__) returned = __VA_ARGS__;                                            \
        call_returned(&call);                                                                      \
        returned;                                                                                  \
    })

/* Limits of waits (shm_limit); 0: not known. The kernel has already accepted the arguments. */
uint64_t limit_of_ms(int ms);
uint64_t limit_of(const struct timespec *time);
uint64_t limit_until(clockid_t clock, const struct timespec *until);

/* Marks a call that blocked as ended by its time limit. */
ALWAYS void call_limited(struct call *call, uint64_t limit)
{
    call->release = (uint32_t)limit;
    call->limit = (uint32_t)(limit >> 32);
}

/* Marks the return, and whether the time limit ended the call. `limit` is evaluated only if that
 * blocked: event loops poll without waiting. */
#define CALL_LIMITED(call, expired, limit)                                                         \
    do {                                                                                           \
        call_returned(call);                                                                       \
        if (UNLIKELY(expired)) {                                                                   \
            (call)->flags |= SHM_EXPIRED;                                                          \
            if (call_blocked(call))                                                                \
                call_limited(call, limit);                                                         \
        }                                                                                          \
    } while (0)

/* Whether the open call has blocked; without rseq, whether it may have. */
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
    /* No slot remains after a fork in a signal handler or after the end of the recording. */
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
#define TIMED_CALL(error, limit, group, wait, object, detail, ...)                                 \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, group, wait, object, detail, 0);                   \
    __typeof__(__VA_ARGS__) result = __VA_ARGS__;                                                  \
    CALL_LIMITED(&call, result < 0 && errno == (error), limit);                                    \
    return result

/* Defines a wrapper; `body` is a macro that takes the call of the real function. */
#define WRAP(body, result, name, parameters, arguments)                                            \
    EXPORT result name parameters                                                                  \
    {                                                                                              \
        body(REAL(name) arguments);                                                                \
    }
