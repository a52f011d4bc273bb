/* Wrappers for calls that sleep or yield. */
#include <errno.h>
#include <sched.h>
#include <threads.h>
#include <time.h>

#include "preload/board.h"
#include "preload/call.h"

/* Lengths in microseconds, rounded up; 0: too long for a record. */
static uint32_t of_us(uint64_t us)
{
    return us <= UINT32_MAX ? (uint32_t)us : 0;
}

static uint32_t of_time(const struct timespec *time)
{
    uint64_t s = (uint64_t)time->tv_sec;
    return s <= UINT32_MAX / 1000000 ? of_us(s * 1000000 + ((uint64_t)time->tv_nsec + 999) / 1000)
                                     : 0;
}

/* The end of a sleep until a given time is not known from its arguments alone. */
static bool is_relative(clockid_t clock, int flags)
{
    return !(flags & TIMER_ABSTIME) && (clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME);
}

/* Called after a sleep by a clock, when the kernel has accepted its time. */
static void slept_by(clockid_t clock, int flags, const struct timespec *time)
{
    if (is_relative(clock, flags))
        self.slot->open_detail = of_time(time);
    else if (flags & TIMER_ABSTIME)
        self.slot->open_object = limit_until(clock, time);
}

/* `interrupted` reads `result`: whether a signal ended the sleep. */
#define SLEEP_CALL(interrupted, at, length, is_over, ...)                                          \
    struct unwind_start caller = CALLER();                                                         \
    struct brief_call call BRIEF =                                                                 \
        brief_begin(&caller, SHM_GROUP_SLEEP, SHM_SLEEP, (uint64_t)(uintptr_t)(at), (length));     \
    __typeof__(__VA_ARGS__) result = BRIEF_RETURNED(__VA_ARGS__);                                  \
    if (UNLIKELY(interrupted) && call.open)                                                        \
        signals_interrupted(NULL);                                                                 \
    is_over;                                                                                       \
    return result

/*
 * A sleep whose length is at an address. The kernel may refuse to read it, so it is read only after
 * the kernel has, and by the recorder if the sleep lasts.
 */
#define SLEEP_AT(interrupted, at, ...)                                                             \
    SLEEP_CALL(interrupted, at, 0,                                                                 \
               if ((at) && result == 0 && call.open && self_has_slot()) self.slot->open_detail =   \
                   of_time(time),                                                                  \
               __VA_ARGS__)

#define SLEEP_SPEC(...) SLEEP_AT(result < 0 && errno == EINTR, time, __VA_ARGS__)
/* For a sleep until a time, the object of its record is that time. */
#define SLEEP_CLOCK(...)                                                                           \
    bool relative = is_relative(clock, flags);                                                     \
    SLEEP_CALL(result == EINTR, relative ? time : NULL, 0,                                         \
               if (result == 0 && call.open && self_has_slot()) slept_by(clock, flags, time),      \
               __VA_ARGS__)
#define SLEEP_THREAD(...) SLEEP_AT(result == -1, time, __VA_ARGS__)
#define SLEEP_US(...)     SLEEP_CALL(result < 0 && errno == EINTR, 0, time, (void)0, __VA_ARGS__)
#define SLEEP_S(...)                                                                               \
    SLEEP_CALL(result > 0, 0, of_us((uint64_t)time * 1000000), (void)0, __VA_ARGS__)

/* MARK: Yields */

/* A half step of the coarse clock divided by this is about 10 us: yields no further apart belong to
 * a loop that only checks whether something has changed. */
#define SPIN_PARTS 50

/* Counts a yield that follows another one at once. */
static void count_yield(const struct unwind_start *caller, uint64_t before, uint64_t now)
{
    if (before - self.yielded > preload.half_step_ticks / SPIN_PARTS ||
        !tally_add(&self.yields, now - self.yielded, now))
        return;
    struct shm_record record = tally_record(&self.yields, SHM_NO_WAIT);
    record.stack = stack_of(caller);
    record_now(&record);
}

/* Called before a yield, which is a system call, so that reading the clock hardly counts. Returns
 * the time; 0: the call is not recorded, or a signal handler in another one. */
ALWAYS uint64_t yield_begin(void)
{
    return is_recorded(SHM_GROUP_SLEEP) && self.slot->open_time == 0 ? clock_now() : 0;
}

ALWAYS void yield_end(const struct unwind_start *caller, uint64_t before)
{
    int old_errno = errno;
    if (before == 0 || !self_has_slot())
        return;
    uint64_t now = clock_now();
    count_yield(caller, before, now);
    self.yielded = now;
    errno = old_errno;
}

EXPORT int sched_yield(void)
{
    struct unwind_start caller = CALLER();
    uint64_t before = yield_begin();
    int result = REAL(sched_yield)();
    yield_end(&caller, before);
    return result;
}

EXPORT void thrd_yield(void)
{
    struct unwind_start caller = CALLER();
    uint64_t before = yield_begin();
    REAL(thrd_yield)();
    yield_end(&caller, before);
}

/* MARK: The wrappers in symbols.def */

#define SLEEPS WRAP
#include "preload/symbols.def"
