/*
 * What locks have in common: a slot of the area with the lock that was taken last, when and where, the number of waiting
 * threads, and the number of the last release.
 */
#ifndef TRAIL_PRELOAD_OBJECTS_H
#define TRAIL_PRELOAD_OBJECTS_H

#include "preload/call.h"

ALWAYS struct shm_object *object_slot(const volatile void *object)
{
    return &preload.area->objects[shm_object_slot((uint64_t)(uintptr_t)object)];
}

/* `since` is as in struct shm_object. */
ALWAYS void object_held_since(const volatile void *object, enum shm_wait kind, uintptr_t pc,
                              uint64_t since)
{
    struct shm_object *slot = object_slot(object);
    self.slot->holds++;
    slot->held_since = since;
    slot->held_pc = pc;
    slot->holder = shm_holder(self.slot->serial, kind, (uint64_t)(uintptr_t)object);
    slot->held = (uint64_t)(uintptr_t)object;
}

/* object_held_alone with the exact clock: if a thread has waited here before, or there is no coarse clock. */
void object_held_exactly(const volatile void *object, enum shm_wait kind, uintptr_t pc);

/*
 * The calling thread holds the object now, which is not shared between processes. Races of locks that share a slot spoil
 * the length of a hold, nothing else.
 */
ALWAYS void object_held_alone(const volatile void *object, enum shm_wait kind, uintptr_t pc)
{
    uint64_t coarse = clock_coarse();
    if (UNLIKELY(!coarse || object_slot(object)->hot))
        object_held_exactly(object, kind, pc);
    else
        object_held_since(object, kind, pc, coarse);
}

/* The same of any object, where processes are recorded together. */
void object_held_together(const volatile void *object, enum shm_wait kind, uintptr_t pc);

ALWAYS void object_held(const volatile void *object, enum shm_wait kind, uintptr_t pc)
{
    if (UNLIKELY(board_of_several))
        object_held_together(object, kind, pc);
    else
        object_held_alone(object, kind, pc);
}

/*
 * What the object is in records, if it is shared between processes and they are recorded together: see board.h. 0: it is
 * its address. A futex is not known to be shared: see memory.h.
 */
uint64_t object_shared(enum shm_wait kind, const volatile void *object);

/* Whether a thread waits for it, in another process. */
ALWAYS bool object_awaited_outside(enum shm_wait kind, const volatile void *object)
{
    uint64_t shared = UNLIKELY(board != NULL) ? object_shared(kind, object) : 0;
    return UNLIKELY(shared != 0) && board_awaits(shared);
}

/* Whether a thread waits for it, by the slot's count. */
ALWAYS bool object_awaited(const volatile void *object)
{
    return __atomic_load_n(&object_slot(object)->waiters, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Whether its release may have to be recorded: a thread waits, or it may have been held for long; object_released checks
 * that exactly.
 */
ALWAYS bool object_released_matters(const volatile void *object, bool contended)
{
    struct shm_object *slot = object_slot(object);
    int64_t held;
    if (contended || slot->held != (uint64_t)(uintptr_t)object)
        return contended;
    /* Negative: taken after the coarse clock was stored. */
    held = (int64_t)(clock_cheap() - slot->held_since);
    if (UNLIKELY(held >= 0 && (uint64_t)held >= preload.hold_ticks))
        return true;
    slot->held = 0;
    return false;
}

/* The fast check: true if the release need not be recorded; if false, object_released_matters decides. */
ALWAYS bool object_released_unnoticed(const volatile void *object, bool contended)
{
    struct shm_object *slot = object_slot(object);
    uint64_t coarse = clock_coarse();
    if (UNLIKELY(contended || !coarse))
        return false;
    if (slot->held != (uint64_t)(uintptr_t)object)
        return true;
    if (UNLIKELY((int64_t)(coarse - slot->held_since) >= (int64_t)preload.hold_ticks))
        return false;
    slot->held = 0;
    return true;
}

/* Writes the record of a release that is about to happen, of an object that is called `shared` (0: by its address). */
void object_released_as(const volatile void *object, uint64_t shared, enum shm_wait kind,
                        uint8_t flags, const struct unwind_start *caller);

ALWAYS void object_released(const volatile void *object, enum shm_wait kind, uint8_t flags,
                            const struct unwind_start *caller)
{
    object_released_as(object, object_shared(kind, object), kind, flags, caller);
}

/*
 * Begins a wait. `certain`: the object was found taken: the wait is recorded in any case, with the stack of now; else it is
 * recorded if the thread is switched out.
 */
struct call object_wait_as(const struct unwind_start *caller, uint32_t group, enum shm_wait kind,
                           const volatile void *object, uint64_t shared, bool certain);

ALWAYS struct call object_wait(const struct unwind_start *caller, uint32_t group,
                               enum shm_wait kind, const volatile void *object, bool certain)
{
    return object_wait_as(caller, group, kind, object, object_shared(kind, object), certain);
}

/*
 * Whether a time limit is valid. With an invalid one the lock is not tried first, so that the real function, which may
 * check the limit even if it need not wait, can fail.
 */
ALWAYS bool is_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

ALWAYS bool is_time(clockid_t clock, const struct timespec *until)
{
    return is_clock(clock) && until && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

/* The call that waited has returned. `got`: the calling thread got the object, and has not timed out or failed. */
void object_got(struct call *call, const volatile void *object, bool got);

#endif
