/* Records calls that blocked: see call.h. */
#include "preload/call.h"

#include <string.h>

#define TEXT(x)  TEXT_(x)
#define TEXT_(x) #x

/* An empty sequence. The kernel requires the signature before the abort address. */
__asm__(".text\n"
#if defined(__x86_64__)
        ".byte 0x0f, 0xb9, 0x3d\n"
#endif
        ".long " TEXT(RSEQ_SIG) "\n"
                                ".hidden preload_abort\n"
                                ".globl preload_abort\n"
                                "preload_abort:\n"
                                "nop\n");
extern const char preload_abort[] __attribute__((visibility("hidden")));

const struct rseq_cs preload_no_sequence = {
    .start_ip = (uintptr_t)preload_abort + 1,
    .post_commit_offset = 0,
    .abort_ip = (uintptr_t)preload_abort,
};

/* Sets the number of the object's last release. */
static void record_released(struct shm_record *record)
{
    const struct shm_area *area = preload.area;
    if (!area)
        return;
    if (shm_is_descriptor(record->object))
        record->release = __atomic_load_n(&area->objects[shm_object_slot(record->object)].release,
                                          __ATOMIC_ACQUIRE);
    if (shm_is_shared(record->object))
        record->release = board_number(record->object);
    if (shm_is_signals(record->object))
        signals_record(record);
}

static void record_generation(struct shm_record *record)
{
    const struct shm_area *area = preload.area;
    if (area && record->detail && record->detail <= SHM_DESCRIPTORS) {
        /* The generation takes the place of the process group's signals. */
        if (shm_is_signals(record->object))
            record->release2 = 0;
        record->generation =
            __atomic_load_n(&area->generations[record->detail - 1], __ATOMIC_ACQUIRE);
    }
}

/* Adds a descriptor; there must be room. */
static void add_polled(struct shm_record *record, unsigned fd, bool ready)
{
    uint32_t generation = __atomic_load_n(&preload.area->generations[fd], __ATOMIC_ACQUIRE);
    uint32_t one = shm_polled(fd, generation, ready);
    memcpy((char *)&record->end + record->flags++ * sizeof one, &one, sizeof one);
}

/* Names the descriptors of a wait for several in a record before the wait's, ready ones first. */
static void record_polled(const struct shm_record *waited, uint64_t object, bool is_ready)
{
    struct shm_record record = {.kind = SHM_POLLED, .time = waited->time, .detail = waited->detail};
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): see pollfds_object. */
    const struct pollfd *polled = (const void *)(uintptr_t)(object & UINT64_MAX >> 9);
    size_t count = waited->detail & ~SHM_SEVERAL;
    if (!preload.area)
        return;
    if (object & SHM_POLLFDS_FEW && count > SHM_POLLED_MAX)
        count = SHM_POLLED_MAX;
    for (int ready = 1; ready >= 0; ready--) {
        for (size_t i = 0; i < count && record.flags < SHM_POLLED_MAX; i++) {
            bool its = is_ready && polled[i].revents != 0;
            if (its == ready && (unsigned)polled[i].fd < SHM_DESCRIPTORS)
                add_polled(&record, (unsigned)polled[i].fd, its);
        }
    }
    record_put(&record);
}

/*
 * Sets the number of the last cancellation of the calling thread, or of a thread that shares its
 * slot of the area: see threads.c.
 */
static void record_left(struct shm_record *record)
{
    const struct shm_area *area = preload.area;
    if (area)
        record->release = __atomic_load_n(
            &area->objects[shm_object_slot((uint64_t)pthread_self())].release, __ATOMIC_ACQUIRE);
}

/*
 * The frames of the open call's caller are intact even if a signal handler jumps out of the call:
 * the handler's frames lie beyond them or on another stack.
 */
static uint32_t stack_of_open(void)
{
    struct unwind_start caller = {self.slot->open_pc, self.slot->open_sp, self.slot->open_fp};
    /* Without a stack pointer: the function that opened an OpenMP wait has returned. */
    return caller.sp ? stack_of(&caller) : stack_of_place(caller.pc);
}

/* MARK: Time limits */

static uint64_t us_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000 + ((uint64_t)time->tv_nsec + 999) / 1000;
}

/* Longer limits do not fit into the record of a poll. */
static uint64_t limit_of_us(uint64_t us)
{
    return us <= UINT32_MAX ? shm_limit(SHM_LIMIT_LENGTH, us) : 0;
}

uint64_t limit_of_ms(int ms)
{
    return ms > 0 ? limit_of_us((uint64_t)ms * 1000) : 0;
}

uint64_t limit_of(const struct timespec *time)
{
    return time ? limit_of_us(us_of(time)) : 0;
}

uint64_t limit_until(clockid_t clock, const struct timespec *until)
{
    if (!until || until->tv_sec < 0 || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return 0;
    return shm_limit(clock == CLOCK_REALTIME ? SHM_LIMIT_REALTIME : SHM_LIMIT_MONOTONIC,
                     us_of(until));
}

/* MARK: Records */

/* Waits in which threads hand work to each other. */
#define HANDS_OVER (1u << SHM_READ | 1u << SHM_COND | 1u << SHM_SEMAPHORE | 1u << SHM_FUTEX)

/* In half steps of the coarse clock: a tally is recorded about every 10 ms. */
#define TALLY_STEPS 20

bool tally_add(struct tally *tally, uint64_t ticks, uint64_t now)
{
    if (tally->count++ == 0)
        tally->since = now;
    tally->ticks += ticks;
    return now - tally->since >= TALLY_STEPS * preload.half_step_ticks;
}

struct shm_record tally_record(struct tally *tally, enum shm_wait wait)
{
    struct shm_record record = {.kind = SHM_COUNTED,
                                .object = tally->count,
                                .object2 = tally->ticks,
                                .wait = (uint8_t)wait};
    *tally = (struct tally){0};
    return record;
}

/* Only this thread writes the slot. The wait is the open call. */
static void record_short(struct shm_thread *slot, uint64_t ticks, uint64_t now, bool writes)
{
    uint32_t before = __atomic_load_n(&slot->short_waits, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->short_waits, before + (uint32_t)(ticks / SHM_SHORT), __ATOMIC_RELAXED);
    if ((HANDS_OVER & 1u << slot->open_wait) && tally_add(&self.short_waits, ticks, now) &&
        writes) {
        struct shm_record record = tally_record(&self.short_waits, slot->open_wait);
        record.time = now;
        record.stack = slot->open_stack ? slot->open_stack : stack_of_open();
        record_put(&record);
    }
}

void call_record(const struct call *call)
{
    struct shm_thread *slot = self.slot;
    int old_errno = errno;
    uint64_t polled = call->polled ? call->polled : slot->open_object;
    struct shm_record record = {.kind = SHM_WAITED,
                                .time = slot->open_time,
                                .object = shm_is_pollfds(slot->open_object) ? 0 : slot->open_object,
                                .object2 = call->object2,
                                .stack = slot->open_stack,
                                .detail = slot->open_detail,
                                .release = call->release,
                                .release2 = call->release2,
                                .generation = call->limit,
                                .flags = call->flags,
                                .wait = slot->open_wait};
    /* The call was already recorded as left because of a jump, but the jump stayed within a signal
     * handler. */
    if (record.time == 0)
        return;
    /* Before the end time is read, because the collector matches waits in the order of their
     * ends. */
    bool writes = record_begin();
    record.end = clock_now();
    if (record.end < record.time)
        record.end = record.time;
    if (self.on_board)
        board_leaves();
    if (record.end - record.time < preload.min_wait_ticks && !call->blocks) {
        record_short(slot, record.end - record.time, record.end, writes);
    } else if (writes) {
        if (!record.stack)
            record.stack = stack_of_open();
        *call_place(slot->open_pc) = slot->open_pc;
        if (shm_is_pollfds(polled))
            record_polled(&record, polled, call->ready);
        if (!(record.flags & SHM_EXPIRED))
            record_released(&record);
        record_generation(&record);
        if (record.flags & SHM_LEFT)
            record_left(&record);
        record_put(&record);
    }
    if (writes)
        record_end();
    __atomic_store_n(&slot->open_time, 0, __ATOMIC_RELEASE);
    errno = old_errno;
}

void brief_record(bool returned)
{
    const struct call call = {.open = true, .flags = returned ? 0 : SHM_LEFT};
    call_record(&call);
}

void call_leave(void)
{
    struct shm_thread *slot = self.slot;
    struct call left = {.open = true, .blocks = true, .flags = SHM_LEFT};
    if (!self_has_slot())
        return;
    slot->writing = 0;
    if (!slot->open_time)
        return;
    if (self.counted)
        __atomic_fetch_sub(&self.counted->waiters, 1, __ATOMIC_RELEASE);
    self.counted = NULL;
    call_record(&left);
}
