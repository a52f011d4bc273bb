/* Wrappers for calls that sleep. */
#include "preload/board.h"
#include "preload/call.h"

/* `interrupted`: whether a signal has ended the sleep, by the `result`. */
#define SLEEP_CALL(interrupted, ...)                                                               \
    struct unwind_start caller = CALLER();                                                         \
    struct brief_call call BRIEF = brief_begin(&caller, SHM_GROUP_SLEEP, SHM_SLEEP, 0, 0);         \
    __typeof__(__VA_ARGS__) result = BRIEF_RETURNED(__VA_ARGS__);                                  \
    if (UNLIKELY(interrupted) && call.open)                                                        \
        signals_interrupted(NULL);                                                                 \
    return result

#define FAILED (result < 0 && errno == EINTR)

EXPORT int nanosleep(const struct timespec *time, struct timespec *rest)
{
    SLEEP_CALL(FAILED, REAL(nanosleep)(time, rest));
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *rest)
{
    SLEEP_CALL(result == EINTR, REAL(clock_nanosleep)(clock, flags, time, rest));
}

EXPORT int usleep(useconds_t time)
{
    SLEEP_CALL(FAILED, REAL(usleep)(time));
}

EXPORT unsigned sleep(unsigned time)
{
    SLEEP_CALL(result > 0, REAL(sleep)(time));
}

EXPORT int thrd_sleep(const struct timespec *time, struct timespec *rest)
{
    SLEEP_CALL(result == -1, REAL(thrd_sleep)(time, rest));
}
