/* Records waits for locks and their releases: see objects.h. */
#include "preload/objects.h"

#include "preload/known.h"
#include "preload/memory.h"

void object_held_exactly(const volatile void *object, enum shm_wait kind, uintptr_t pc)
{
    object_held_since(object, kind, pc, clock_now() | SHM_EXACT);
}

/* glibc's layout, declared in no header. */
struct shown_semaphore {
    uint64_t value;
    uint32_t shared; /* not 0: between processes */
};

struct shown_barrier {
    uint32_t in, round, count, shared, out;
};

static bool is_declared_shared(enum shm_wait kind, const volatile void *object)
{
    switch (kind) {
    case SHM_MUTEX:
        return ((const volatile pthread_mutex_t *)object)->__data.__kind & 0x80;
    case SHM_RDLOCK:
    case SHM_WRLOCK:
        return ((const volatile pthread_rwlock_t *)object)->__data.__shared != 0;
    case SHM_COND:
        return ((const volatile pthread_cond_t *)object)->__data.__wrefs & 1;
    case SHM_SEMAPHORE:
        return ((const volatile struct shown_semaphore *)object)->shared != 0;
    case SHM_BARRIER:
        return ((const volatile struct shown_barrier *)object)->shared != 0;
    default:
        return false;
    }
}

uint64_t object_shared(enum shm_wait kind, const volatile void *object)
{
    return board_of_several && is_declared_shared(kind, object) ? memory_object(object) : 0;
}

void object_held_together(const volatile void *object, enum shm_wait kind, uintptr_t pc)
{
    struct shm_object *slot = object_slot(object);
    uint64_t shared = object_shared(kind, object);
    object_held_alone(object, kind, pc);
    if (!shared)
        return;
    slot->shared = shared;
    slot->holder =
        shm_holder(self.slot->serial, kind | SHM_HELD_SHARED, (uint64_t)(uintptr_t)object);
}

/*
 * Writes the record of a release, and of the hold that ends with it: `since` as in struct
 * shm_object; 0: not known. `holder`: the serial of the thread that took the lock. False: the
 * thread is in the middle of another record.
 */
static bool release(const volatile void *object, uint64_t shared, enum shm_wait kind, uint8_t flags,
                    const struct unwind_start *caller, uint64_t since, uint64_t pc, uint32_t holder)
{
    struct shm_record record = {.kind = SHM_RELEASED,
                                .wait = (uint8_t)kind,
                                .flags = flags,
                                .release2 = holder == self.slot->serial ? 0 : holder,
                                .object = (uint64_t)(uintptr_t)object};
    int old_errno = errno;
    if (!record_begin())
        return false;
    if (shm_is_lock(kind))
        known_add(object);
    record.stack = stack_of(caller);
    record.time = clock_now();
    if (since) {
        record.end = since;
        record.object2 = pc;
        if (!(since & SHM_EXACT)) {
            /* On average the coarse clock lags by half its step. */
            record.end += preload.half_step_ticks;
            record.flags |= SHM_COARSE;
        }
    }
    if (shared)
        record.object = shared;
    record.release = shared
                         ? board_next_number(shared, record.time)
                         : __atomic_add_fetch(&object_slot(object)->release, 1, __ATOMIC_RELEASE);
    record_put(&record);
    record_end();
    errno = old_errno;
    return true;
}

void object_released_as(const volatile void *object, uint64_t shared, enum shm_wait kind,
                        uint8_t flags, const struct unwind_start *caller)
{
    struct shm_object *slot = object_slot(object);
    bool is_held = slot->held == (uint64_t)(uintptr_t)object;
    if (release(object, shared, kind, flags, caller, is_held ? slot->held_since : 0, slot->held_pc,
                is_held ? shm_holder_of(slot->holder, (uint64_t)(uintptr_t)object) : 0) &&
        is_held)
        slot->held = 0;
}

/* MARK: Reading */

void object_reads_exactly(const volatile void *object, uintptr_t pc)
{
    struct shm_object *slot = object_slot(object);
    if (!object_is_first_read(slot->first_read, object))
        slot->first_read = shm_first_read((uint64_t)(uintptr_t)object, pc);
    if (self.readings < SHM_READINGS)
        object_reads_since(object, pc, clock_now() | SHM_EXACT, object_shared(SHM_RDLOCK, object));
}

struct shm_reading *object_reading(const volatile void *object)
{
    for (uint32_t i = self.readings; i-- > 0;)
        if (self.slot->reading[i].object == (uint64_t)(uintptr_t)object)
            return &self.slot->reading[i];
    return NULL;
}

/* The last entry moves into the freed place. */
static void leave_reading(struct shm_reading *reading)
{
    struct shm_reading *last = &self.slot->reading[self.readings - 1];
    __atomic_store_n(&reading->object, 0, __ATOMIC_RELEASE);
    if (reading != last) {
        reading->since = last->since;
        reading->pc = last->pc;
        reading->shared = last->shared;
        __atomic_store_n(&reading->object, last->object, __ATOMIC_RELEASE);
        last->object = 0;
    }
    /* A signal handler that takes a lock in between releases it again. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.readings--;
}

void object_reads_no_more(const volatile void *object)
{
    struct shm_reading *reading;
    while ((reading = object_reading(object)) != NULL)
        leave_reading(reading);
}

void object_renewed(const volatile void *object)
{
    if (!self_has_slot() || !preload.area)
        return;
    struct shm_object *slot = object_slot(object);
    if (object_is_first_read(slot->first_read, object))
        slot->first_read = 0;
    object_reads_no_more(object);
}

void object_reading_ends(const volatile void *object, struct shm_reading *reading, bool contended,
                         const struct unwind_start *caller)
{
    if (contended || object_held_long(reading->since))
        (void)release(object, object_shared(SHM_RDLOCK, object), SHM_RDLOCK, SHM_ALL, caller,
                      reading->since, reading->pc, self.slot->serial);
    leave_reading(reading);
}

/* MARK: Waits */

struct call object_wait_as(const struct unwind_start *caller, uint32_t group, enum shm_wait kind,
                           const volatile void *object, uint64_t shared, bool certain)
{
    struct shm_object *slot = object_slot(object);
    uint64_t held_pc = slot->held == (uint64_t)(uintptr_t)object ? slot->held_pc : 0;
    if (!held_pc && (kind == SHM_RDLOCK || kind == SHM_WRLOCK || kind == SHM_COND) &&
        object_is_first_read(slot->first_read, object))
        held_pc = (slot->first_read & UINT64_MAX >> 16) | (kind == SHM_COND ? 0 : SHM_FIRST_READER);
    slot->hot = 1;
    if (shm_is_lock(kind))
        known_add(object);
    if (self.slot->open_time == 0)
        self.slot->open_held_pc = held_pc;
    __atomic_fetch_add(&slot->waiters, 1, __ATOMIC_ACQ_REL);
    if (shared)
        board_waits(shared, shared);
    struct call call =
        call_begin(caller, group, kind, shared ? shared : (uint64_t)(uintptr_t)object, 0,
                   certain ? stack_of(caller) : 0);
    call.blocks = certain;
    call.object2 = held_pc;
    call.counted = slot;
    if (call.open)
        self.counted = slot;
    return call;
}

void object_got(struct call *call, const volatile void *object, bool got)
{
    /* A signal handler forked during the wait. */
    if (!self_has_slot())
        return;
    call_returned(call);
    call->release = __atomic_load_n(&object_slot(object)->release, __ATOMIC_ACQUIRE);
    if (!got)
        call->flags |= SHM_TIMED_OUT;
}
