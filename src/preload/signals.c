/*
 * Wrappers for calls that wait for signals or send them. All signals of a process are one object,
 * made from its PID. A wait records the signals that may have ended it, a release the signal and
 * its target (shm.h).
 */
#include <string.h>
#include <sys/signalfd.h>

#include "preload/descriptors.h"

/* MARK: Sending */

/* The process's group. */
static uint32_t group_now;

void signals_read_group(void)
{
    group_now = (uint32_t)getpgrp();
}

/* The process has made a group, or joined one. A shell may do that for its child as well, usually
 * before the child has executed a program. */
static void joined(uint32_t group)
{
    const struct shm_area *area = preload.area;
    if (area)
        group_now = group ? group : area->header.claimed;
}

EXPORT int setpgid(pid_t pid, pid_t group)
{
    const struct shm_area *area = preload.area;
    int result = REAL(setpgid)(pid, group);
    if (result == 0 && (pid == 0 || (area && (uint32_t)pid == area->header.claimed)))
        joined((uint32_t)group);
    return result;
}

EXPORT int setpgrp(void)
{
    int result = REAL(setpgrp)();
    if (result == 0)
        joined(0);
    return result;
}

EXPORT pid_t setsid(void)
{
    pid_t session = REAL(setsid)();
    if (session > 0)
        joined((uint32_t)session);
    return session;
}

/* Only while calls are recorded. */
static uint64_t object_of(pid_t pid)
{
    uint64_t space = preload.area->header.pid_namespace;
    return space ? SHM_SIGNALS | board_mix(space, (uint64_t)pid) << 4 : 0;
}

static bool is_wanted_now(void)
{
    return UNLIKELY(board != NULL) && is_recorded(SHM_GROUP_SLEEP);
}

/* Signals to all processes (-1) are ignored. */
static uint64_t object_of_target(pid_t pid)
{
    if (pid == 0)
        return shm_group_signals(group_now);
    if (pid < -1)
        return shm_group_signals((uint32_t)-pid);
    return pid > 0 ? object_of(pid) : 0;
}

/*
 * Called before a signal is sent to `pid`, as for kill(2), or to one `thread` of it. It is recorded
 * whatever the target does, because it may end any call, and the record costs little compared with
 * the system call.
 */
static void sends(pid_t pid, int number, uint64_t thread, const struct unwind_start *caller)
{
    uint64_t object = number > 0 && number <= 64 && is_wanted_now() ? object_of_target(pid) : 0;
    if (object)
        board_signal(object, shm_signal_sent((unsigned)number, thread), caller);
}

/* Wraps a call that sends `number` to `target` (as for kill(2)), or to one thread of it. */
#define SENDS(name, target, thread, parameters, arguments)                                         \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        struct unwind_start caller = CALLER();                                                     \
        sends(target, number, thread, &caller);                                                    \
        return REAL(name) arguments;                                                               \
    }

#define THIS_PROCESS (is_wanted_now() ? (pid_t)preload.area->header.claimed : -1)

SENDS(kill, pid, 0, (pid_t pid, int number), (pid, number))
SENDS(killpg, group > 1 ? -group : group, 0, (pid_t group, int number), (group, number))
SENDS(sigqueue, pid, 0, (pid_t pid, int number, const union sigval value), (pid, number, value))
SENDS(tgkill, pid, SHM_SIGNAL_TID | (uint32_t)tid, (pid_t pid, pid_t tid, int number),
      (pid, tid, number))
SENDS(pthread_kill, THIS_PROCESS, (uint64_t)thread, (pthread_t thread, int number),
      (thread, number))
SENDS(pthread_sigqueue, THIS_PROCESS, (uint64_t)thread,
      (pthread_t thread, int number, const union sigval value), (thread, number, value))

/* MARK: Waiting */

void signals_record(struct shm_record *record)
{
    record->object2 = self.signals;
    record->release = board_number(record->object);
    record->generation = group_now;
    record->release2 = board_number(shm_group_signals(record->generation));
}

uint64_t signals_object(void)
{
    return is_wanted_now() ? object_of((pid_t)preload.area->header.claimed) : 0;
}

static uint64_t bits_of(const sigset_t *set)
{
    uint64_t bits;
    /* The kernel's set is the first word. */
    memcpy(&bits, set, sizeof bits);
    return bits;
}

ALWAYS struct brief_call signal_begin(const struct unwind_start *caller)
{
    uint64_t object = signals_object();
    self.signals = 0;
    return brief_begin(caller, SHM_GROUP_SLEEP, SHM_SIGNAL, object, 0);
}

/* The call itself took a signal; 0: none. */
static void taken(int number)
{
    self.signals = number > 0 && number <= 64 ? shm_signal_bit((unsigned)number) : 0;
    self.signals |= SHM_SIGNALS_OF_PROCESS;
}

static uint64_t handled(void)
{
    uint64_t bits = 0;
    for (unsigned number = 1; number <= 64; number++) {
        struct sigaction action;
        if (sigaction((int)number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
            action.sa_handler != SIG_IGN)
            bits |= shm_signal_bit(number);
    }
    return bits;
}

/* Whether a signal was sent to the process or its group at or after `time`. */
static bool was_sent_since(uint64_t object, uint64_t time)
{
    return board_released_since(object, time) ||
           board_released_since(shm_group_signals(group_now), time);
}

/* Returns the signals that may have come, without asking the kernel: it sends one itself when a
 * child ends. */
static uint64_t sent_by_kernel(const sigset_t *mask)
{
    uint64_t bit = shm_signal_bit(SIGCHLD);
    return mask && bits_of(mask) & bit ? 0 : bit | SHM_SIGNALS_OF_PROCESS;
}

static uint64_t sent_by_threads(const sigset_t *mask)
{
    sigset_t now;
    if (!mask)
        (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    uint64_t bits = handled() & ~bits_of(mask ? mask : &now) & ~SHM_SIGNALS_OF_PROCESS;
    return self.slot->tid == preload.area->header.claimed ? bits | SHM_SIGNALS_OF_PROCESS : bits;
}

/*
 * A handler ran for a signal that was not blocked. Which signal is unknown: if a recorded thread
 * has sent one in the meantime, all that have a handler and are not blocked are candidates. A
 * signal to the process is handled by its first thread if possible.
 */
void signals_interrupted(const sigset_t *mask)
{
    struct shm_record record = {.kind = SHM_INTERRUPTED, .object = signals_object()};
    int old_errno = errno;
    self.signals = 0;
    if (!self_has_slot() || !record.object)
        return;
    if (is_confined())
        return;
    self.signals = was_sent_since(record.object, self.slot->open_time) ? sent_by_threads(mask)
                                                                       : sent_by_kernel(mask);
    errno = old_errno;
    if (!self.signals || !record_begin())
        return;
    record.time = self.slot->open_time;
    signals_record(&record);
    record_put(&record);
    record_end();
}

EXPORT int pause(void)
{
    struct unwind_start caller = CALLER();
    struct brief_call call BRIEF = signal_begin(&caller);
    int result = BRIEF_RETURNED(REAL(pause)());
    if (call.open)
        signals_interrupted(NULL);
    return result;
}

EXPORT int sigsuspend(const sigset_t *mask)
{
    struct unwind_start caller = CALLER();
    struct brief_call call BRIEF = signal_begin(&caller);
    int result = BRIEF_RETURNED(REAL(sigsuspend)(mask));
    if (call.open && result == -1 && errno == EINTR)
        signals_interrupted(mask);
    return result;
}

EXPORT int sigwait(const sigset_t *restrict set, int *restrict number)
{
    struct unwind_start caller = CALLER();
    struct brief_call call BRIEF = signal_begin(&caller);
    int status = BRIEF_RETURNED(REAL(sigwait)(set, number));
    taken(status == 0 ? *number : 0);
    return status;
}

EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    struct unwind_start caller = CALLER();
    struct brief_call call BRIEF = signal_begin(&caller);
    int number = BRIEF_RETURNED(REAL(sigwaitinfo)(set, info));
    taken(number);
    return number;
}

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                        const struct timespec *restrict time)
{
    struct unwind_start caller = CALLER();
    struct call call CALL =
        call_begin(&caller, SHM_GROUP_SLEEP, SHM_SIGNAL, signals_object(), 0, 0);
    int number = REAL(sigtimedwait)(set, info, time);
    CALL_LIMITED(&call, number < 0 && errno == EAGAIN, limit_of(time));
    taken(number);
    return number;
}

/* MARK: A descriptor of signals */

EXPORT int signalfd(int fd, const sigset_t *mask, int flags)
{
    int made = REAL(signalfd)(fd, mask, flags);
    if (made >= 0)
        descriptor_of_signals(made, bits_of(mask), fd >= 0);
    return made;
}
