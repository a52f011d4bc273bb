/*
 * Records OpenMP's tasks, regions, waits and locks: see shm/openmp.h.
 *
 * The run-time library spins before it sleeps, and sleeps in its own condition variables. Only
 * OpenMP's wait is recorded, not the calls within it, as for every open call. Its length decides
 * whether it counts as a wait, because a spinning thread is not switched out.
 *
 * A release is reported after it happened: a waiting thread may take the lock and continue before
 * the release is recorded. So a release gets its number when the lock is taken, and the next thread
 * that takes the lock uses the number of the previous hold.
 */
#include "shm/openmp.h"

#include "preload/known.h"
#include "preload/objects.h"

/* Numbers of locks differ from those of all other objects in the same slot. */
#define LOCK_NUMBER UINT32_C(0x80000000)

/* A release is recorded only after this fraction of the shortest recorded wait. */
#define HARDLY 8

static PER_THREAD void *own_pointer;

static void **own(void)
{
    return &own_pointer;
}

static uint32_t number(void)
{
    return self.slot ? self.slot->serial : 0;
}

static bool is_recorded_here(void)
{
    return preload.area != NULL;
}

/* MARK: Stacks */

static uint32_t stack_at(const void *place, bool alone, const struct unwind_start *caller)
{
    if (!place)
        return stack_of(caller);
    return alone ? stack_of_place((uintptr_t)place) : stack_from(caller, (uintptr_t)place);
}

/* MARK: Threads, tasks, regions */

static void name_thread(const char *name)
{
    if (preload.area && self_recorded())
        record_name(0, name);
}

static uint64_t task_begin(uint64_t parent, const char *name, const void *place)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_TASK_BEGAN, .flags = SHM_WITH_PLACE, .object2 = parent};
    if (!is_recorded(SHM_GROUP_OPENMP))
        return 0;
    record.object = task_number();
    record.release = text_of(name);
    record.stack = stack_at(place, false, &caller);
    record_now(&record);
    return record.object;
}

static void task_end(uint64_t task)
{
    struct shm_record record = {.kind = SHM_TASK_ENDED, .object = task};
    if (task && is_recorded(SHM_GROUP_OPENMP))
        record_now(&record);
}

static void region_begin(uint64_t task, const char *name, const void *place, bool alone)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_REGION_BEGAN, .object = task};
    if (!is_recorded(SHM_GROUP_OPENMP))
        return;
    record.release = text_of(name);
    record.stack = stack_at(place, alone, &caller);
    record_now(&record);
}

static void region_end(uint64_t task, const char *name)
{
    struct shm_record record = {.kind = SHM_REGION_ENDED, .object = task};
    if (!is_recorded(SHM_GROUP_OPENMP))
        return;
    record.release = text_of(name);
    record_now(&record);
}

/* MARK: Waits */

/* Like call_begin, but marks the place rather than the call as one that blocked. */
ALWAYS void open_wait(struct openmp_wait *wait, const struct unwind_start *caller)
{
    uintptr_t pc = wait->place ? (uintptr_t)wait->place : caller->pc;
    wait->begin = 0;
    if (!is_recorded(SHM_GROUP_OPENMP))
        return;
    struct shm_thread *slot = self.slot;
    if (UNLIKELY(slot->open_time != 0 || slot->writing))
        return;
    slot->open_object = (uint64_t)(uintptr_t)wait->object;
    slot->open_pc = pc;
    slot->open_stack = *call_place(pc) == pc ? stack_at(wait->place, wait->alone, caller) : 0;
    slot->open_detail = 0;
    slot->open_wait = (uint8_t)wait->wait;
    slot->open_held_pc = 0;
    slot->open_sp = slot->open_fp = 0;
    wait->begin = clock_now();
    /* Pairs with the collector's load: the other fields are complete. */
    __atomic_store_n(&slot->open_time, wait->begin, __ATOMIC_RELEASE);
}

/* Writes the record if the wait was long; `record` says what ended it. Returns the time. */
ALWAYS uint64_t close_wait(struct openmp_wait *wait, struct shm_record *record,
                           const struct unwind_start *caller)
{
    struct shm_thread *slot = self.slot;
    uint64_t now = clock_now();
    /* The process has forked, or a jump has left the call. */
    if (!slot || slot->open_time != wait->begin) {
        wait->begin = 0;
        return now;
    }
    uintptr_t pc = slot->open_pc;
    if (now - wait->begin >= preload.min_wait_ticks && record_begin()) {
        record->kind = SHM_WAITED;
        record->wait = (uint8_t)wait->wait;
        record->time = wait->begin;
        record->end = now;
        record->object = (uint64_t)(uintptr_t)wait->object;
        record->stack = slot->open_stack;
        if (!record->stack)
            record->stack = stack_at(wait->place, wait->alone, caller);
        *call_place(pc) = pc;
        if (shm_is_lock(wait->wait))
            known_add(wait->object);
        record_put(record);
        record_end();
    } else if (slot->open_stack) {
        *call_place(pc) = 0;
    }
    wait->begin = 0;
    __atomic_store_n(&slot->open_time, 0, __ATOMIC_RELEASE);
    return now;
}

static void wait_begin(struct openmp_wait *wait)
{
    struct unwind_start caller = CALLER();
    open_wait(wait, &caller);
}

static void wait_end(struct openmp_wait *wait, const void *next, uint32_t by)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.release2 = by};
    if (!wait->begin || !preload.area)
        return;
    record.release = __atomic_load_n(&object_slot(wait->object)->release, __ATOMIC_ACQUIRE);
    if (next) {
        record.object2 = (uint64_t)(uintptr_t)next;
        record.release2 = __atomic_load_n(&object_slot(next)->release, __ATOMIC_ACQUIRE);
    }
    (void)close_wait(wait, &record, &caller);
}

static void let_in(enum shm_wait wait, const void *object, uint64_t since, const void *place,
                   bool alone)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_RELEASED,
                                .wait = (uint8_t)wait,
                                .flags = SHM_ALL,
                                .object = (uint64_t)(uintptr_t)object};
    if (!since || !is_recorded(SHM_GROUP_OPENMP) ||
        clock_now() - since < preload.min_wait_ticks / HARDLY || !record_begin())
        return;
    record.stack = stack_at(place, alone, &caller);
    record.time = clock_now();
    record.release = __atomic_add_fetch(&object_slot(object)->release, 1, __ATOMIC_RELEASE);
    record_put(&record);
    record_end();
}

/* MARK: Locks */

static void lock_wait(struct openmp_wait *wait)
{
    struct unwind_start caller = CALLER();
    open_wait(wait, &caller);
    if (wait->begin)
        __atomic_fetch_add(&object_slot(wait->object)->waiters, 1, __ATOMIC_ACQ_REL);
}

ALWAYS void leave_lock(const struct openmp_wait *wait)
{
    __atomic_fetch_sub(&object_slot(wait->object)->waiters, 1, __ATOMIC_RELEASE);
}

static void lock_got(struct openmp_wait *wait, struct openmp_hold *hold)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {0};
    *hold = (struct openmp_hold){.object = wait->object, .place = wait->place};
    if (!preload.area)
        return;
    if (wait->begin)
        leave_lock(wait);
    else if (!is_recorded(SHM_GROUP_OPENMP))
        return;
    struct shm_object *slot = object_slot(wait->object);
    /* Only this thread has the lock; races between locks that share a slot only give wrong
     * wakers. */
    record.release = __atomic_load_n(&slot->hold, __ATOMIC_RELAXED);
    hold->number = LOCK_NUMBER | (record.release + 1);
    __atomic_store_n(&slot->hold, hold->number, __ATOMIC_RELAXED);
    hold->since = wait->begin ? close_wait(wait, &record, &caller) : clock_now();
}

static void lock_gone(const void *object)
{
    if (preload.area)
        known_forget((uintptr_t)object, (uintptr_t)object + 1);
}

static void lock_nested(struct openmp_wait *wait)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {0};
    if (!wait->begin || !preload.area)
        return;
    leave_lock(wait);
    (void)close_wait(wait, &record, &caller);
}

/* Whether a thread waits for the lock, or it was held for long. */
ALWAYS bool release_matters(const struct openmp_hold *hold)
{
    return preload.all_holds || object_awaited(hold->object) ||
           (int64_t)(clock_cheap() - hold->since) >= (int64_t)preload.hold_ticks;
}

static void lock_released(enum shm_wait wait, const struct openmp_hold *hold, const void *place)
{
    struct unwind_start caller = CALLER();
    struct shm_record record = {.kind = SHM_RELEASED,
                                .wait = (uint8_t)wait,
                                .end = hold->since,
                                .object = (uint64_t)(uintptr_t)hold->object,
                                .object2 = (uint64_t)(uintptr_t)hold->place,
                                .release = hold->number};
    if (!hold->number || !is_recorded(SHM_GROUP_OPENMP) || !release_matters(hold))
        return;
    known_add(hold->object);
    record.stack = stack_at(place, false, &caller);
    record_now(&record);
}

EXPORT const struct openmp_recorder trail_preload_openmp = {
    .version = OPENMP_VERSION,
    .is_recorded = is_recorded_here,
    .own = own,
    .number = number,
    .name_thread = name_thread,
    .task_begin = task_begin,
    .task_end = task_end,
    .region_begin = region_begin,
    .region_end = region_end,
    .wait_begin = wait_begin,
    .wait_end = wait_end,
    .let_in = let_in,
    .lock_wait = lock_wait,
    .lock_got = lock_got,
    .lock_nested = lock_nested,
    .lock_gone = lock_gone,
    .lock_released = lock_released,
};
