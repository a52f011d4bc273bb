/*
 * Common to all kinds of locks: the area's slot with the lock last taken, when and where, the
 * number of waiting threads and the number of the last release.
 */
#pragma once

#include "preload/call.h"

ALWAYS struct shm_object *object_slot(const volatile void *object)
{
    return &preload.area->objects[shm_object_slot((uint64_t)(uintptr_t)object)];
}

/*
 * Returns the object's identity in records if recorded processes share it (board.h); 0: its address
 * is used. A futex does not show whether it is shared: see memory.h.
 */
uint64_t object_shared(enum shm_wait kind, const volatile void *object);

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

/* object_held_alone by the exact clock: for contended locks, and without a coarse clock. */
void object_held_exactly(const volatile void *object, enum shm_wait kind, uintptr_t pc);

/* Whether a thread of this process waits for the object, by the slot's count. */
ALWAYS bool object_awaited(const volatile void *object)
{
    return __atomic_load_n(&object_slot(object)->waiters, __ATOMIC_ACQUIRE) != 0;
}

/* `since` is as in struct shm_object, `shared` as in struct shm_reading. */
ALWAYS void object_reads_since(const volatile void *object, uintptr_t pc, uint64_t since,
                               uint64_t shared)
{
    uint32_t index = self.readings++;
    struct shm_reading *reading = &self.slot->reading[index];
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.slot->holds++;
    /* A signal handler has taken the last one. */
    if (UNLIKELY(index >= SHM_READINGS)) {
        self.readings--;
        return;
    }
    reading->since = since;
    reading->pc = pc;
    reading->shared = shared;
    __atomic_store_n(&reading->object, (uint64_t)(uintptr_t)object, __ATOMIC_RELEASE);
}

/* Whether the value belongs to this lock. */
ALWAYS bool object_is_first_read(uint64_t first_read, const volatile void *object)
{
    return first_read != 0 &&
           (first_read ^ shm_first_read((uint64_t)(uintptr_t)object, 0)) >> 48 == 0;
}

/* Whether recorded processes may share the lock. */
ALWAYS bool object_is_read_together(const volatile void *rwlock)
{
    return UNLIKELY(board_of_several) &&
           ((const volatile pthread_rwlock_t *)rwlock)->__data.__shared != 0;
}

/* object_reads for new, contended and shared locks, and when there is no coarse clock. */
void object_reads_exactly(const volatile void *object, uintptr_t pc);

/* Notes that the calling thread holds the lock for reading, as other threads may, too. */
ALWAYS void object_reads(const volatile void *object, uintptr_t pc)
{
    const struct shm_object *slot = object_slot(object);
    uint64_t coarse = clock_coarse();
    if (UNLIKELY(!coarse || slot->hot || object_is_read_together(object) ||
                 self.readings == SHM_READINGS || !object_is_first_read(slot->first_read, object)))
        object_reads_exactly(object, pc);
    else
        object_reads_since(object, pc, coarse, 0);
}

/* Returns the calling thread's last hold of the lock for reading; NULL: none is known. */
struct shm_reading *object_reading(const volatile void *object);

/* Forgets the calling thread's holds of the lock: another thread has released it. */
void object_reads_no_more(const volatile void *object);

/* Called for a new lock, or when one ends: what is known about the address belongs to another
 * lock. */
void object_renewed(const volatile void *object);

/*
 * The fast check of a release: true if it releases the lock that the thread last took for reading,
 * and need not be recorded.
 */
ALWAYS bool object_reading_unnoticed(const volatile void *object)
{
    uint64_t coarse = clock_coarse();
    if (UNLIKELY(self.readings == 0))
        return false;
    struct shm_reading *last = &self.slot->reading[self.readings - 1];
    if (UNLIKELY(last->object != (uint64_t)(uintptr_t)object || !coarse || object_awaited(object) ||
                 (int64_t)(coarse - last->since) >= (int64_t)preload.hold_ticks))
        return false;
    last->object = 0;
    self.readings--;
    return true;
}

/*
 * Notes that the calling thread holds the object, which is not shared between processes. Races
 * between locks that share a slot only spoil the length of a hold.
 */
ALWAYS void object_held_alone(const volatile void *object, enum shm_wait kind, uintptr_t pc)
{
    uint64_t coarse = clock_coarse();
    if (UNLIKELY(!coarse || object_slot(object)->hot))
        object_held_exactly(object, kind, pc);
    else
        object_held_since(object, kind, pc, coarse);
}

/* The same for any object while several processes are recorded. */
void object_held_together(const volatile void *object, enum shm_wait kind, uintptr_t pc);

ALWAYS void object_held(const volatile void *object, enum shm_wait kind, uintptr_t pc)
{
    if (kind == SHM_WRLOCK && UNLIKELY(self.readings != 0))
        object_reads_no_more(object);
    if (kind == SHM_RDLOCK)
        object_reads(object, pc);
    else if (UNLIKELY(board_of_several))
        object_held_together(object, kind, pc);
    else
        object_held_alone(object, kind, pc);
}

/* Whether a thread of another process waits for it. */
ALWAYS bool object_awaited_outside(enum shm_wait kind, const volatile void *object)
{
    uint64_t shared = UNLIKELY(board != NULL) ? object_shared(kind, object) : 0;
    return UNLIKELY(shared != 0) && board_awaits(shared);
}

/* Whether a hold since `since` is long enough to be recorded. */
ALWAYS bool object_held_long(uint64_t since)
{
    /* Negative: taken after the coarse clock was stored. */
    int64_t held = (int64_t)(clock_cheap() - since);
    return held >= 0 && (uint64_t)held >= preload.hold_ticks;
}

/*
 * Whether the release may have to be recorded: a thread waits, or the hold may have been long,
 * which object_released checks exactly.
 */
ALWAYS bool object_released_matters(const volatile void *object, bool contended)
{
    struct shm_object *slot = object_slot(object);
    if (contended || slot->held != (uint64_t)(uintptr_t)object)
        return contended;
    if (UNLIKELY(object_held_long(slot->held_since)))
        return true;
    slot->held = 0;
    return false;
}

/* The fast check: true if the release need not be recorded; else ask object_released_matters. */
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

/*
 * Writes the record of a release that is about to happen, of an object whose identity is `shared`
 * (0: its address).
 */
void object_released_as(const volatile void *object, uint64_t shared, enum shm_wait kind,
                        uint8_t flags, const struct unwind_start *caller);

ALWAYS void object_released(const volatile void *object, enum shm_wait kind, uint8_t flags,
                            const struct unwind_start *caller)
{
    object_released_as(object, object_shared(kind, object), kind, flags, caller);
}

/* Releases a lock held for reading: writes its record if it matters. */
void object_reading_ends(const volatile void *object, struct shm_reading *reading, bool contended,
                         const struct unwind_start *caller);

/*
 * Begins a wait. `certain`: the object was found taken, so the wait is recorded in any case, with
 * the current stack; otherwise only if the thread is switched out.
 */
struct call object_wait_as(const struct unwind_start *caller, uint32_t group, enum shm_wait kind,
                           const volatile void *object, uint64_t shared, bool certain);

ALWAYS struct call object_wait(const struct unwind_start *caller, uint32_t group,
                               enum shm_wait kind, const volatile void *object, bool certain)
{
    return object_wait_as(caller, group, kind, object, object_shared(kind, object), certain);
}

/*
 * Whether a time limit is valid. With an invalid one the lock is not tried first, so that the real
 * function can reject it.
 */
ALWAYS bool is_clock(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

ALWAYS bool is_time(clockid_t clock, const struct timespec *until)
{
    return is_clock(clock) && until && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

/* Called when the wait has returned. `got`: without a time-out or error. */
void object_got(struct call *call, const volatile void *object, bool got);
