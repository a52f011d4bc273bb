/* Wrappers for calls that sleep. */
#include "preload/call.h"

#define WAIT_CALL(kind, ...) BRIEF_CALL(SHM_GROUP_SLEEP, kind, 0, 0, __VA_ARGS__)

EXPORT int nanosleep(const struct timespec *time, struct timespec *rest)
{
    WAIT_CALL(SHM_SLEEP, REAL(nanosleep)(time, rest));
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *rest)
{
    WAIT_CALL(SHM_SLEEP, REAL(clock_nanosleep)(clock, flags, time, rest));
}

EXPORT int usleep(useconds_t time)
{
    WAIT_CALL(SHM_SLEEP, REAL(usleep)(time));
}

EXPORT unsigned sleep(unsigned time)
{
    WAIT_CALL(SHM_SLEEP, REAL(sleep)(time));
}

EXPORT int thrd_sleep(const struct timespec *time, struct timespec *rest)
{
    WAIT_CALL(SHM_SLEEP, REAL(thrd_sleep)(time, rest));
}
