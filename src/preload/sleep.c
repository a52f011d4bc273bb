/* Wrappers for calls that sleep or wait for a signal. */
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

EXPORT int pause(void)
{
    WAIT_CALL(SHM_SIGNAL, REAL(pause)());
}

EXPORT int sigsuspend(const sigset_t *mask)
{
    WAIT_CALL(SHM_SIGNAL, REAL(sigsuspend)(mask));
}

EXPORT int sigwait(const sigset_t *restrict set, int *restrict number)
{
    WAIT_CALL(SHM_SIGNAL, REAL(sigwait)(set, number));
}

EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    WAIT_CALL(SHM_SIGNAL, REAL(sigwaitinfo)(set, info));
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                        const struct timespec *restrict time)
{
    TIMED_CALL(EAGAIN, SHM_GROUP_SLEEP, SHM_SIGNAL, 0, 0, REAL(sigtimedwait)(set, info, time));
}
