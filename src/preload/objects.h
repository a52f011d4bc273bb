/*
 * What locks have in common: a slot of the area that knows who took the lock where and since when, how many
 * wait, and the number of its last release.
 */
#ifndef TRAIL_PRELOAD_OBJECTS_H
#define TRAIL_PRELOAD_OBJECTS_H

#include "preload/call.h"

ALWAYS struct shm_object *object_slot(const volatile void *object)
{
    return &preload.area->objects[shm_object_slot((uint64_t)(uintptr_t)object)];
}

/* `since` is as in struct shm_object. */
ALWAYS void object_held_since(const volatile void *object, uintptr_t pc, uint64_t since)
{
    struct shm_object *slot = object_slot(object);
    self.slot->holds++;
    slot->held_since = since;
    slot->held_pc = pc;
    slot->held = (uint64_t)(uintptr_t)object;
}

/* object_held by the clock itself: where somebody has waited before, and while there is no coarse clock. */
void object_held_exactly(const volatile void *object, uintptr_t pc);

/* This thread has it now. Races of locks that share a slot cost the length of a hold, nothing else. */
ALWAYS void object_held(const volatile void *object, uintptr_t pc)
{
    uint64_t coarse = clock_coarse();
    if (UNLIKELY(!coarse || object_slot(object)->hot))
        object_held_exactly(object, pc);
    else
        object_held_since(object, pc, coarse);
}

/* Somebody waits for it, by our own count. */
ALWAYS bool object_awaited(const volatile void *object)
{
    return __atomic_load_n(&object_slot(object)->waiters, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Whether its release is to be recorded: somebody waits, or it may have been held for long; object_released looks
 * more closely.
 */
ALWAYS bool object_released_matters(const volatile void *object, bool contended)
{
    struct shm_object *slot = object_slot(object);
    int64_t held;
    if (contended || slot->held != (uint64_t)(uintptr_t)object)
        return contended;
    /* Below 0: taken after the coarse clock was stored. */
    held = (int64_t)(clock_cheap() - slot->held_since);
    if (UNLIKELY(held >= 0 && (uint64_t)held >= preload.hold_ticks))
        return true;
    slot->held = 0;
    return false;
}

/* As quickly as can be: true, it need not be recorded; false, that is to be looked at by object_released_matters. */
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

/* Writes the record of a release, which is about to happen. */
void object_released(const volatile void *object, enum shm_wait kind, uint8_t flags,
                     const struct unwind_start *caller);

/*
 * Begins a wait. `certain`: it was found taken, so that the wait is recorded, with the stack of now; else
 * only if the thread is switched out.
 */
struct call object_wait(const struct unwind_start *caller, uint32_t group, enum shm_wait kind,
                        const volatile void *object, bool certain);

/*
 * Whether a time limit is one: the calls that look at it even if they need not wait are not tried first, so that
 * they can refuse it.
 */
ALWAYS bool is_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

ALWAYS bool is_time(clockid_t clock, const struct timespec *until)
{
    return is_clock(clock) && until && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

/* The wait's end: `got` says whether it is over because somebody let this thread in. */
void object_got(struct call *call, const volatile void *object, bool got);

#endif
