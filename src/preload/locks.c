/*
 * Wrappers for mutexes, reader-writer locks, spin locks, streams' locks and once.
 *
 * A lock is tried first: a free one costs no record. A thread that finds it taken opens a call in
 * its slot, waits, and writes a record with the number of the release that ended its wait. A thread
 * that releases a lock for which another one waits writes a record with that number before the
 * release.
 */
#include <linux/futex.h>
#include <sys/single_threaded.h>

#include "preload/call.h"
#include "preload/known.h"
#include "preload/objects.h"
#include "preload/streams.h"

/* MARK: Mutexes */

/* Bits of glibc's __kind, which <bits/struct_mutex.h> does not name. */
#define KIND_TYPE        3
#define KIND_ERRORCHECK  2
#define KIND_RECURSIVE   1
#define KIND_TID_IN_LOCK 0x30 /* robust, priority inheritance: the owner is in the lock's word */
#define KIND_OWNER_DIES  0x70 /* ..., priority protection */
#define KIND_SHARED      0x80 /* shared between processes */

/*
 * Whether trying first is equivalent to locking: errorcheck mutexes and those with an owner fail
 * differently.
 */
ALWAYS bool is_plain(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind;
    return !(kind & KIND_OWNER_DIES) && (kind & KIND_TYPE) != KIND_ERRORCHECK;
}

/* Whether this lock of a recursive mutex is nested, and so neither begins nor ends a hold. */
ALWAYS bool is_nested(const pthread_mutex_t *mutex)
{
    return (mutex->__data.__kind & KIND_TYPE) == KIND_RECURSIVE && mutex->__data.__count > 1;
}

/* Whether a thread waits or has waited for it in the kernel. */
ALWAYS bool is_contended(const pthread_mutex_t *mutex)
{
    int word = __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED);
    return is_plain(mutex) || (mutex->__data.__kind & KIND_TYPE) == KIND_ERRORCHECK
               ? word > 1
               : word & (int)0x80000000;
}

/* Tries to lock. True: the caller returns *result. */
ALWAYS bool lock_at_once(pthread_mutex_t *mutex, uintptr_t pc, int *result)
{
    if (!is_plain(mutex))
        return false;
    *result = REAL(pthread_mutex_trylock)(mutex);
    if (*result == EBUSY)
        return false;
    if (*result == 0 && !is_nested(mutex))
        object_held(mutex, SHM_MUTEX, pc);
    return true;
}

#define LOCK_MUTEX(valid, limit, ...)                                                              \
    struct unwind_start caller = CALLER();                                                         \
    int result;                                                                                    \
    if (!is_recorded(SHM_GROUP_LOCKS))                                                             \
        return __VA_ARGS__;                                                                        \
    if ((valid) && lock_at_once(mutex, caller.pc, &result))                                        \
        return result;                                                                             \
    return wait_for_lock(SHM_MUTEX, mutex, &caller, is_plain(mutex), limit, __VA_ARGS__)

/* The last owner ended without a release. It is known if the object's slot still names it. */
NOINLINE void owner_died(struct call *call, const volatile void *object)
{
    if (!self_has_slot())
        return;
    const struct shm_object *slot = object_slot(object);
    call->flags |= SHM_OWNER_DIED;
    /* The slot names only threads of this process. */
    if (object_shared(SHM_MUTEX, object))
        return;
    call->release2 = shm_holder_of(slot->holder, (uint64_t)(uintptr_t)object);
}

/* The real call is made between these two halves of a wait. */
#define wait_for_lock(kind, object, caller, certain, limit, ...)                                   \
    ({                                                                                             \
        struct call call CALL = object_wait(caller, SHM_GROUP_LOCKS, kind, object, certain);       \
        int status = __VA_ARGS__;                                                                  \
        bool got = status == 0 || status == EOWNERDEAD;                                            \
        object_got(&call, object, got);                                                            \
        if (UNLIKELY(status == EOWNERDEAD))                                                        \
            owner_died(&call, object);                                                             \
        CALL_LIMITED(&call, status == ETIMEDOUT || status == thrd_timedout, limit);                \
        if (got && self_has_slot())                                                                \
            object_held(object, kind, (caller)->pc);                                               \
        status;                                                                                    \
    })

/*
 * The most frequent calls: wrapping an uncontended lock and unlock may cost 5 ns. The wrappers
 * handle only that case; otherwise they jump to a function that starts over, as if the program had
 * called that.
 */
ALWAYS bool is_usual(const pthread_mutex_t *mutex)
{
    return !(mutex->__data.__kind & (KIND_OWNER_DIES | KIND_TYPE | KIND_SHARED));
}

/*
 * In a single-threaded process glibc locks without atomic operations, but uses them for trylock. A
 * free mutex that is not shared between processes is then locked directly, which cannot wait.
 */
ALWAYS bool is_free_for_one(const pthread_mutex_t *mutex)
{
    return __libc_single_threaded && mutex->__data.__lock == 0;
}

ALWAYS int try_usual(pthread_mutex_t *mutex)
{
    return is_free_for_one(mutex) ? REAL(pthread_mutex_lock)(mutex)
                                  : REAL(pthread_mutex_trylock)(mutex);
}

NOINLINE int lock_mutex(pthread_mutex_t *mutex)
{
    LOCK_MUTEX(true, 0, REAL(pthread_mutex_lock)(mutex));
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (LIKELY(is_wanted(SHM_GROUP_LOCKS) && self_has_slot() && is_usual(mutex)) &&
        LIKELY(try_usual(mutex) == 0)) {
        object_held_alone(mutex, SHM_MUTEX, (uintptr_t)__builtin_return_address(0));
        return 0;
    }
    return lock_mutex(mutex);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    LOCK_MUTEX(true, limit_until(CLOCK_REALTIME, until),
               REAL(pthread_mutex_timedlock)(mutex, until));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
                                   const struct timespec *until)
{
    LOCK_MUTEX(is_clock(clock), limit_until(clock, until),
               REAL(pthread_mutex_clocklock)(mutex, clock, until));
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    int result = REAL(pthread_mutex_trylock)(mutex);
    if (result == 0 && is_recorded(SHM_GROUP_LOCKS) && !is_nested(mutex))
        object_held(mutex, SHM_MUTEX, (uintptr_t)__builtin_return_address(0));
    return result;
}

/* Whether the C library will refuse to unlock it: another thread holds it, or none does. */
static bool is_refused(const pthread_mutex_t *mutex)
{
    int kind = mutex->__data.__kind, type = kind & KIND_TYPE;
    if (kind & KIND_TID_IN_LOCK)
        return (uint32_t)(mutex->__data.__lock & FUTEX_TID_MASK) != self.slot->tid;
    return (type == KIND_RECURSIVE || type == KIND_ERRORCHECK) &&
           (uint32_t)mutex->__data.__owner != self.slot->tid;
}

/* Called in a wrapper that is about to release a mutex. */
ALWAYS void record_release(pthread_mutex_t *mutex)
{
    if (is_wanted(SHM_GROUP_LOCKS) && LIKELY(self_has_slot()) && !is_nested(mutex) &&
        !is_refused(mutex) && UNLIKELY(object_released_matters(mutex, is_contended(mutex)))) {
        struct unwind_start caller = CALLER();
        object_released(mutex, SHM_MUTEX, 0, &caller);
    }
}

NOINLINE int unlock_mutex(pthread_mutex_t *mutex)
{
    record_release(mutex);
    return REAL(pthread_mutex_unlock)(mutex);
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (LIKELY(is_wanted(SHM_GROUP_LOCKS) && is_usual(mutex)) &&
        LIKELY(object_released_unnoticed(
            mutex, __atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) > 1)))
        return REAL(pthread_mutex_unlock)(mutex);
    return unlock_mutex(mutex);
}

/* MARK: Reader-writer locks */

#define LOCK_RWLOCK(kind, try, valid, limit, ...)                                                  \
    struct unwind_start caller = CALLER();                                                         \
    int result;                                                                                    \
    if (!is_recorded(SHM_GROUP_LOCKS))                                                             \
        return __VA_ARGS__;                                                                        \
    result = (valid) ? REAL(try)(lock) : EBUSY;                                                    \
    if (result == 0)                                                                               \
        object_held(lock, kind, caller.pc);                                                        \
    if (result != EBUSY)                                                                           \
        return result;                                                                             \
    return wait_for_lock(kind, lock, &caller, true, limit, __VA_ARGS__)

/* As for mutexes, the wrappers of the most frequent calls handle a free lock only. */
#define RWLOCK_WRAPPERS(kind, lock_, timedlock, clocklock, trylock)                                \
    NOINLINE int slow_##lock_(pthread_rwlock_t *lock)                                              \
    {                                                                                              \
        LOCK_RWLOCK(kind, trylock, true, 0, REAL(lock_)(lock));                                    \
    }                                                                                              \
    EXPORT int lock_(pthread_rwlock_t *lock)                                                       \
    {                                                                                              \
        if (LIKELY(is_wanted(SHM_GROUP_LOCKS) && self_has_slot()) &&                               \
            LIKELY(REAL(trylock)(lock) == 0)) {                                                    \
            object_held(lock, kind, (uintptr_t)__builtin_return_address(0));                       \
            return 0;                                                                              \
        }                                                                                          \
        return slow_##lock_(lock);                                                                 \
    }                                                                                              \
    EXPORT int timedlock(pthread_rwlock_t *lock, const struct timespec *until)                     \
    {                                                                                              \
        LOCK_RWLOCK(kind, trylock, is_time(CLOCK_REALTIME, until),                                 \
                    limit_until(CLOCK_REALTIME, until), REAL(timedlock)(lock, until));             \
    }                                                                                              \
    EXPORT int clocklock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)    \
    {                                                                                              \
        LOCK_RWLOCK(kind, trylock, is_time(clock, until), limit_until(clock, until),               \
                    REAL(clocklock)(lock, clock, until));                                          \
    }                                                                                              \
    EXPORT int trylock(pthread_rwlock_t *lock)                                                     \
    {                                                                                              \
        int result = REAL(trylock)(lock);                                                          \
        if (result == 0 && is_recorded(SHM_GROUP_LOCKS))                                           \
            object_held(lock, kind, (uintptr_t)__builtin_return_address(0));                       \
        return result;                                                                             \
    }

RWLOCK_WRAPPERS(SHM_RDLOCK, pthread_rwlock_rdlock, pthread_rwlock_timedrdlock,
                pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock)
RWLOCK_WRAPPERS(SHM_WRLOCK, pthread_rwlock_wrlock, pthread_rwlock_timedwrlock,
                pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock)

NOINLINE int unlock_rwlock(pthread_rwlock_t *lock)
{
    if (is_wanted(SHM_GROUP_LOCKS) && LIKELY(self_has_slot())) {
        struct shm_reading *reading = object_reading(lock);
        bool awaited = object_awaited(lock) || object_awaited_outside(SHM_WRLOCK, lock);
        struct unwind_start caller = CALLER();
        if (reading)
            object_reading_ends(lock, reading, awaited, &caller);
        else if (object_released_matters(lock, awaited))
            object_released(lock, SHM_WRLOCK, SHM_ALL, &caller);
    }
    return REAL(pthread_rwlock_unlock)(lock);
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (LIKELY(is_wanted(SHM_GROUP_LOCKS) && self_has_slot()) && !object_is_read_together(lock) &&
        LIKELY(object_reading_unnoticed(lock)))
        return REAL(pthread_rwlock_unlock)(lock);
    return unlock_rwlock(lock);
}

/* MARK: Spin locks */

/* Most locks are free again after this many tries; a shorter wait is not recorded. */
#define SPIN_TRIES 100

static void pause_spinning(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

NOINLINE int spin_longer(pthread_spinlock_t *lock)
{
    struct unwind_start caller = CALLER();
    if (!is_recorded(SHM_GROUP_LOCKS))
        return REAL(pthread_spin_lock)(lock);
    for (int tries = 0; tries < SPIN_TRIES; tries++) {
        if (REAL(pthread_spin_trylock)(lock) == 0) {
            object_held_alone(lock, SHM_SPIN, caller.pc);
            return 0;
        }
        pause_spinning();
    }
    return wait_for_lock(SHM_SPIN, lock, &caller, true, 0, REAL(pthread_spin_lock)(lock));
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (LIKELY(is_wanted(SHM_GROUP_LOCKS) && self_has_slot()) &&
        LIKELY(REAL(pthread_spin_trylock)(lock) == 0)) {
        object_held_alone(lock, SHM_SPIN, (uintptr_t)__builtin_return_address(0));
        return 0;
    }
    return spin_longer(lock);
}

EXPORT int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    int result = REAL(pthread_spin_trylock)(lock);
    if (result == 0 && is_recorded(SHM_GROUP_LOCKS))
        object_held_alone(lock, SHM_SPIN, (uintptr_t)__builtin_return_address(0));
    return result;
}

NOINLINE int unlock_spin(pthread_spinlock_t *lock)
{
    if (is_wanted(SHM_GROUP_LOCKS) && LIKELY(self_has_slot()) &&
        UNLIKELY(object_released_matters(lock, object_awaited(lock)))) {
        struct unwind_start caller = CALLER();
        object_released(lock, SHM_SPIN, 0, &caller);
    }
    return REAL(pthread_spin_unlock)(lock);
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    if (LIKELY(is_wanted(SHM_GROUP_LOCKS) && self_has_slot()) &&
        LIKELY(object_released_unnoticed(lock, object_awaited(lock))))
        return REAL(pthread_spin_unlock)(lock);
    return unlock_spin(lock);
}

/* MARK: Streams */

/* The count of a lock that is taken once: 0 or, in older versions of the C library, 1. */
static int taken_once;

/* Takes the lock in a wait, which has the stream's descriptor. */
static int lock_stream(FILE *file, const struct call *wait)
{
    if (wait->open && file->_fileno >= 0)
        self.slot->open_detail = (uint32_t)file->_fileno + 1;
    REAL(flockfile)(file);
    return 0;
}

static void wait_for_stream(FILE *file, const struct unwind_start *caller)
{
    struct stream_lock *lock = stream_lock_of(file);
    (void)wait_for_lock(SHM_MUTEX, lock, caller, true, 0, lock_stream(file, &call));
}

void stream_take(FILE *file, const struct unwind_start *caller)
{
    struct stream_lock *lock = stream_lock_of(file);
    if (!lock || !is_recorded(SHM_GROUP_LOCKS) || stream_is_own(lock)) {
        REAL(flockfile)(file);
        return;
    }
    if (REAL(ftrylockfile)(file) == 0)
        object_held(lock, SHM_MUTEX, caller->pc);
    else
        wait_for_stream(file, caller);
    taken_once = lock->count;
}

void stream_leave(FILE *file, const struct unwind_start *caller)
{
    struct stream_lock *lock = stream_lock_of(file);
    if (lock && is_wanted(SHM_GROUP_LOCKS) && self_has_slot() && stream_is_own(lock) &&
        lock->count == taken_once && object_released_matters(lock, lock->word > 1))
        object_released(lock, SHM_MUTEX, 0, caller);
    REAL(funlockfile)(file);
}

EXPORT void flockfile(FILE *file)
{
    struct unwind_start caller = CALLER();
    stream_take(file, &caller);
}

EXPORT int ftrylockfile(FILE *file)
{
    int result = REAL(ftrylockfile)(file);
    struct stream_lock *lock = stream_lock_of(file);
    if (result == 0 && lock && is_recorded(SHM_GROUP_LOCKS) && lock->count == taken_once)
        object_held(lock, SHM_MUTEX, (uintptr_t)__builtin_return_address(0));
    return result;
}

EXPORT void funlockfile(FILE *file)
{
    struct unwind_start caller = CALLER();
    stream_leave(file, &caller);
}

/* MARK: C11's mutexes, which are glibc's under other names */

/* Converts the result of pthread_mutex_trylock, whose errors differ from those of C11. */
ALWAYS int c11_result(int result)
{
    return result == EAGAIN || result == EINVAL ? thrd_error : result;
}

ALWAYS int lock_c11(mtx_t *c11)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)c11;
    LOCK_MUTEX(true, 0, REAL(mtx_lock)(c11));
}

ALWAYS int timedlock_c11(mtx_t *restrict c11, const struct timespec *restrict until)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)c11;
    LOCK_MUTEX(true, limit_until(CLOCK_REALTIME, until), REAL(mtx_timedlock)(c11, until));
}

EXPORT int mtx_lock(mtx_t *mutex)
{
    return c11_result(lock_c11(mutex));
}

EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict until)
{
    return c11_result(timedlock_c11(mutex, until));
}

EXPORT int mtx_trylock(mtx_t *c11)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)c11;
    int result = REAL(mtx_trylock)(c11);
    if (result == thrd_success && is_recorded(SHM_GROUP_LOCKS) && !is_nested(mutex))
        object_held(mutex, SHM_MUTEX, (uintptr_t)__builtin_return_address(0));
    return result;
}

EXPORT int mtx_unlock(mtx_t *c11)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)c11;
    record_release(mutex);
    return REAL(mtx_unlock)(c11);
}

/* MARK: The ends of locks, and new ones in their place */

#define KNOWN_END(...)                                                                             \
    known_end(lock);                                                                               \
    return __VA_ARGS__

#define RWLOCK_END(...)                                                                            \
    object_renewed(lock);                                                                          \
    KNOWN_END(__VA_ARGS__)

EXPORT void mtx_destroy(mtx_t *lock)
{
    known_end(lock);
    REAL(mtx_destroy)(lock);
}

/* MARK: Once */

/* glibc's value of a pthread_once_t whose routine has returned. */
#define ONCE_DONE 2

/* The once whose routine the calling thread runs, or will run if the thread that runs it fails. */
struct once {
    int *control;
    void (*routine)(void);
    struct unwind_start caller;
    struct once *outer;
    struct call *wait; /* NULL: the thread has not waited for it */
};

static PER_THREAD struct once *running_once;

static void once_left(const struct once *once)
{
    running_once = once->outer;
}

/* Records the release before waiting threads continue; if the routine was left, one of them runs
 * it. */
static void once_over(struct once *const *over)
{
    const struct once *once = *over;
    if (self_recorded() && object_awaited(once->control))
        object_released(once->control, SHM_ONCE, SHM_ALL, &once->caller);
}

static void once_waited(struct call *call, int *control)
{
    if (call->counted)
        object_got(call, control, true);
}

/* The wait is over: its thread runs the routine itself, which may have other waits within it. */
static void end_wait(struct once *once)
{
    once_waited(once->wait, once->control);
    call_end(once->wait);
    *once->wait = (struct call){0};
}

/* Called instead of the routine. */
static void run_once(void)
{
    struct once *once __attribute__((cleanup(once_over))) = running_once;
    if (once->wait)
        end_wait(once);
    once->routine();
}

/* Makes `call` of the real function with run_once. Only a thread that finds the routine running
 * waits for the once. */
#define RUN_ONCE(...)                                                                              \
    struct call call CALL = {0};                                                                   \
    struct once once                                                                               \
        __attribute__((cleanup(once_left))) = {control, routine, caller, running_once, NULL};      \
    if (__atomic_load_n(control, __ATOMIC_RELAXED) != 0) {                                         \
        call = object_wait(&caller, SHM_GROUP_LOCKS, SHM_ONCE, control, false);                    \
        once.wait = &call;                                                                         \
    }                                                                                              \
    running_once = &once;                                                                          \
    __VA_ARGS__;                                                                                   \
    once_waited(&call, control)

EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    struct unwind_start caller = CALLER();
    if (LIKELY(__atomic_load_n(control, __ATOMIC_ACQUIRE) == ONCE_DONE) ||
        !is_recorded(SHM_GROUP_LOCKS))
        return REAL(pthread_once)(control, routine);
    RUN_ONCE(int status = REAL(pthread_once)(control, run_once));
    return status;
}

EXPORT void call_once(once_flag *flag, void (*routine)(void))
{
    struct unwind_start caller = CALLER();
    int *control = &flag->__data;
    if (LIKELY(__atomic_load_n(control, __ATOMIC_ACQUIRE) == ONCE_DONE) ||
        !is_recorded(SHM_GROUP_LOCKS)) {
        REAL(call_once)(flag, routine);
        return;
    }
    RUN_ONCE(REAL(call_once)(flag, run_once));
}

/* MARK: The wrappers in symbols.def */

#define LOCKS WRAP
#include "preload/symbols.def"
