/*
 * Wrappers for condition variables, semaphores and barriers.
 *
 * Waiting for a condition variable is two waits: for the signal, then for the mutex. The record has
 * the numbers of both releases, of the condition variable and of the mutex, which the thread holds
 * when the call returns.
 */
#include "preload/objects.h"

/* MARK: Condition variables */

/* The wait is about to release the mutex, which may wake a thread that waits for it. */
static void give_mutex_up(pthread_mutex_t *mutex, const struct unwind_start *caller)
{
    struct shm_object *slot = object_slot(mutex);
    if (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) > 1)
        object_released(mutex, SHM_MUTEX, 0, caller);
    else
        slot->held = 0;
}

static void got_mutex(struct call *call, pthread_mutex_t *mutex, uintptr_t pc)
{
    if (!self_has_slot())
        return;
    uint64_t shared = object_shared(SHM_MUTEX, mutex);
    call->object2 = shared ? shared : (uint64_t)(uintptr_t)mutex;
    call->release2 = shared ? board_number(shared)
                            : __atomic_load_n(&object_slot(mutex)->release, __ATOMIC_ACQUIRE);
    object_held(mutex, SHM_MUTEX, pc);
}

/* A condition variable's clock, CLOCK_MONOTONIC or not: a bit of glibc's __wrefs. */
#define CONDITION_MONOTONIC 2

ALWAYS clockid_t clock_of(const pthread_cond_t *condition)
{
    return condition->__data.__wrefs & CONDITION_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

#define WAIT_LIMITED(limit, ...)                                                                   \
    struct unwind_start caller = CALLER();                                                         \
    if (!is_recorded(SHM_GROUP_CONDITIONS))                                                        \
        return __VA_ARGS__;                                                                        \
    give_mutex_up(mutex, &caller);                                                                 \
    struct call call CALL = object_wait(&caller, SHM_GROUP_CONDITIONS, SHM_COND, condition, true); \
    int status = __VA_ARGS__;                                                                      \
    object_got(&call, condition, status == 0);                                                     \
    CALL_LIMITED(&call, status == ETIMEDOUT || status == thrd_timedout, limit);                    \
    got_mutex(&call, mutex, caller.pc);                                                            \
    return status

#define WAIT_CONDITION(...) WAIT_LIMITED(0, __VA_ARGS__)
#define WAIT_UNTIL(...)     WAIT_LIMITED(limit_until(clock_of(condition), until), __VA_ARGS__)
#define WAIT_CLOCK(...)     WAIT_LIMITED(limit_until(clock, until), __VA_ARGS__)

/* Whether a thread waits for the object and the calling thread is recorded. */
ALWAYS bool is_awaited(enum shm_wait kind, const volatile void *object)
{
    return is_wanted(SHM_GROUP_CONDITIONS) &&
           (object_awaited(object) || object_awaited_outside(kind, object)) && self_recorded();
}

#define RELEASE(kind, flags, object, ...)                                                          \
    if (is_awaited(kind, object)) {                                                                \
        struct unwind_start caller = CALLER();                                                     \
        object_released(object, kind, flags, &caller);                                             \
    }                                                                                              \
    return __VA_ARGS__

/*
 * A signal is lost if no thread waits for it. The first lost one of a condition variable is
 * recorded: a wait that never ends may have needed it.
 */
static void keep_lost_signal(const volatile void *condition, const struct unwind_start *caller)
{
    struct shm_object *slot = object_slot(condition);
    int old_errno = errno;
    uint32_t stack = slot->first_read == 0 && self_recorded() ? stack_of(caller) : 0;
    errno = old_errno;
    if (stack)
        slot->first_read = shm_first_read((uint64_t)(uintptr_t)condition, stack);
}

/* Whether a thread may wait for the signal, or the signal is the first lost one. */
ALWAYS bool signal_matters(const volatile void *condition)
{
    return is_wanted(SHM_GROUP_CONDITIONS) &&
           (object_awaited(condition) || UNLIKELY(object_slot(condition)->first_read == 0) ||
            UNLIKELY(board != NULL));
}

static __attribute__((noinline)) void signalled(const volatile void *condition, uint8_t flags,
                                                const struct unwind_start *caller)
{
    if (is_awaited(SHM_COND, condition))
        object_released(condition, SHM_COND, flags, caller);
    else
        keep_lost_signal(condition, caller);
}

#define SIGNAL_WITH(flags, ...)                                                                    \
    if (signal_matters(condition)) {                                                               \
        struct unwind_start caller = CALLER();                                                     \
        signalled(condition, flags, &caller);                                                      \
    }                                                                                              \
    return __VA_ARGS__

#define SIGNAL(...)    SIGNAL_WITH(0, __VA_ARGS__)
#define BROADCAST(...) SIGNAL_WITH(SHM_ALL, __VA_ARGS__)
#define POST(...)      RELEASE(SHM_SEMAPHORE, 0, semaphore, __VA_ARGS__)

/* MARK: C11's condition variables */

#define WAIT_C11_LIMITED(limit, ...)                                                               \
    pthread_mutex_t *mutex = (pthread_mutex_t *)c11;                                               \
    WAIT_LIMITED(limit, __VA_ARGS__)

#define WAIT_C11(...)       WAIT_C11_LIMITED(0, __VA_ARGS__)
#define WAIT_C11_UNTIL(...) WAIT_C11_LIMITED(limit_until(CLOCK_REALTIME, until), __VA_ARGS__)

/* MARK: Semaphores */

/* Makes known that a post does not end the wait of the thread that it was to wake. */
static __attribute__((noinline)) void record_taken(const sem_t *semaphore)
{
    struct shm_record record = {
        .kind = SHM_TAKEN, .wait = SHM_SEMAPHORE, .object = (uint64_t)(uintptr_t)semaphore};
    record.release = __atomic_load_n(&object_slot(semaphore)->release, __ATOMIC_ACQUIRE);
    record_now(&record);
}

/* Takes a positive semaphore, without a record unless others wait for it; keeps errno. */
static bool take_semaphore(sem_t *semaphore)
{
    int old_errno = errno;
    if (REAL(sem_trywait)(semaphore) == 0) {
        if (UNLIKELY(object_awaited(semaphore)))
            record_taken(semaphore);
        return true;
    }
    errno = old_errno;
    return false;
}

#define WAIT_SEMAPHORE(valid, limit, ...)                                                          \
    struct unwind_start caller = CALLER();                                                         \
    if (!is_recorded(SHM_GROUP_CONDITIONS))                                                        \
        return __VA_ARGS__;                                                                        \
    /* Like the real function, acts on a pending cancellation first. */                            \
    pthread_testcancel();                                                                          \
    if ((valid) && take_semaphore(semaphore))                                                      \
        return 0;                                                                                  \
    struct call call CALL =                                                                        \
        object_wait(&caller, SHM_GROUP_CONDITIONS, SHM_SEMAPHORE, semaphore, true);                \
    int status = __VA_ARGS__;                                                                      \
    object_got(&call, semaphore, status == 0);                                                     \
    CALL_LIMITED(&call, status != 0 && errno == ETIMEDOUT, limit);                                 \
    if (UNLIKELY(status != 0) && errno == EINTR && call.open)                                      \
        signals_interrupted(NULL);                                                                 \
    return status

EXPORT int sem_wait(sem_t *semaphore)
{
    WAIT_SEMAPHORE(true, 0, REAL(sem_wait)(semaphore));
}

EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    WAIT_SEMAPHORE(is_time(CLOCK_REALTIME, until), limit_until(CLOCK_REALTIME, until),
                   REAL(sem_timedwait)(semaphore, until));
}

EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
    WAIT_SEMAPHORE(is_time(clock, until), limit_until(clock, until),
                   REAL(sem_clockwait)(semaphore, clock, until));
}

/* MARK: Barriers */

/* Every arrival is recorded: the last one before a wait's end ended that wait. */
EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct unwind_start caller = CALLER();
    if (!is_recorded(SHM_GROUP_CONDITIONS))
        return REAL(pthread_barrier_wait)(barrier);
    object_released(barrier, SHM_BARRIER, SHM_ALL, &caller);
    struct call call CALL = object_wait(&caller, SHM_GROUP_CONDITIONS, SHM_BARRIER, barrier, false);
    int status = REAL(pthread_barrier_wait)(barrier);
    object_got(&call, barrier, false);
    call.flags = 0;
    return status;
}

/* MARK: The wrappers in symbols.def */

#define CONDITIONS WRAP
#include "preload/symbols.def"
