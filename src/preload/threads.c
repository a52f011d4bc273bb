/* Wrappers that create, name, join and cancel threads. */
#include <dlfcn.h>
#include <string.h>

#include "preload/objects.h"

/* MARK: Creation */

/* libstdc++ starts all threads with a function of its own, which receives a std::thread::_State. */
static bool is_of_libstdcxx(uint64_t routine)
{
    /* Cached results: one routine of each kind. */
    static uint64_t its, other;
    Dl_info info;
    if (routine == __atomic_load_n(&its, __ATOMIC_RELAXED))
        return true;
    if (routine == __atomic_load_n(&other, __ATOMIC_RELAXED) ||
        !dladdr((void *)(uintptr_t)routine, &info) || !info.dli_fname)
        return false;
    const char *slash = strrchr(info.dli_fname, '/');
    bool is = strncmp(slash ? slash + 1 : info.dli_fname, "libstdc++.so", 12) == 0;
    __atomic_store_n(is ? &its : &other, routine, __ATOMIC_RELAXED);
    return is;
}

/*
 * Returns the vtable of the object that a libstdc++ thread runs, whose name contains the callable;
 * 0: not such a thread.
 */
static uint64_t vtable_of(uint64_t routine, const void *argument)
{
    return routine && argument && is_of_libstdcxx(routine) ? *(const uint64_t *)argument : 0;
}

#define PAGE 4096

/* Returns a word of the object; 0: it is on the next page, which may be unmapped. */
static uint64_t word_of(uint64_t object, unsigned index)
{
    uint64_t at = object + index * sizeof(uint64_t);
    return at / PAGE == object / PAGE ? *(const uint64_t *)(uintptr_t)at : 0;
}

/*
 * How the name of the type begins that std::async runs in a thread: a member function of its shared
 * state, and that state.
 */
static const char async_type[] =
    "NSt6thread11_State_implINS_8_InvokerISt5tupleIJMNSt13__future_base17_Async_state_implI";

/* How many words of the shared state precede the callable. */
#define ASYNC_WORDS 7

/*
 * Returns the address before the callable's words: the object itself, or a place in the shared
 * state of std::async, whose pointer is the object's last argument and so its first word. Without
 * run-time type information the type has no name.
 */
static uint64_t callable_of(uint64_t object, const uint64_t *vtable)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the layout of the C++ ABI. */
    const uint64_t *type = (const uint64_t *)(uintptr_t)vtable[-1];
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the name follows the type's own vtable. */
    const char *name = type ? (const char *)(uintptr_t)type[1] : "";
    uint64_t state = strncmp(name, async_type, sizeof async_type - 1) == 0 ? word_of(object, 1) : 0;
    return state ? state + (ASYNC_WORDS - 1) * sizeof(uint64_t) : object;
}

/* Records the object that the new thread will run. */
static void record_runs(const void *argument, const uint64_t *vtable)
{
    uint64_t object = callable_of((uint64_t)(uintptr_t)argument, vtable);
    uint64_t third = word_of(object, 3);
    /* std::thread::_State has two destructors, then the function that runs the object. */
    struct shm_record record = {.kind = SHM_RUNS,
                                .end = vtable[2],
                                .release = (uint32_t)third,
                                .release2 = (uint32_t)(third >> 32),
                                .object = word_of(object, 1),
                                .object2 = word_of(object, 2)};
    record_now(&record);
}

struct start {
    uint64_t routine;
    void *argument;
};

/*
 * Begins the thread of a slot, in the function whose frame is `here`. Returns a copy of what it is
 * to run, because the area may be left once the slot shows that the thread has begun.
 */
static struct start begin(struct shm_thread *slot, uintptr_t here)
{
    const struct start start = {slot->routine, (void *)(uintptr_t)slot->argument};
    ptrdiff_t index = slot - preload.area->threads;
    /* In the meantime the recording may have ended and another begun in another area. */
    if (index > 0 && index < SHM_THREADS && preload.recording)
        self_begin((uint32_t)index, here - slot->stack_size, here, start.routine);
    else
        __atomic_store_n(&slot->tid, own_tid(), __ATOMIC_RELEASE);
    return start;
}

/* Prevents a tail call, so that the frame at which stacks end stays. */
#define STAY() __asm__ volatile("" ::: "memory")

static void *run(void *slot)
{
    struct start start = begin(slot, (uintptr_t)__builtin_frame_address(0));
    void *result = ((void *(*)(void *))(uintptr_t)start.routine)(start.argument);
    STAY();
    return result;
}

static int run_c11(void *slot)
{
    struct start start = begin(slot, (uintptr_t)__builtin_frame_address(0));
    int result = ((thrd_start_t)(uintptr_t)start.routine)(start.argument);
    STAY();
    return result;
}

/*
 * Takes a slot for a thread that is about to be created and records the creation, before the thread
 * can write. 0: not recorded.
 */
static uint32_t announce(uint64_t routine, const void *argument, size_t stack_size,
                         const struct unwind_start *caller)
{
    struct shm_record record = {.kind = SHM_CREATED, .object2 = routine};
    uint32_t index;
    if (!preload.recording || !self_recorded() || (index = thread_slot_take()) == 0)
        return 0;
    preload.area->threads[index].routine = routine;
    preload.area->threads[index].argument = (uint64_t)(uintptr_t)argument;
    preload.area->threads[index].stack_size = stack_size;
    record.object = preload.area->threads[index].serial;
    record.stack = stack_of(caller);
    record.end = vtable_of(routine, argument);
    if (record.end)
        record_runs(argument, (const uint64_t *)(uintptr_t)record.end);
    record_now(&record);
    return index;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    struct unwind_start caller = CALLER();
    size_t size = preload.stack_size;
    if (preload.area && attributes)
        (void)pthread_attr_getstacksize(attributes, &size);
    uint32_t index = announce((uint64_t)(uintptr_t)routine, argument, size, &caller);
    if (!index)
        return REAL(pthread_create)(thread, attributes, routine, argument);
    int status = REAL(pthread_create)(thread, attributes, run, &preload.area->threads[index]);
    /* Frees the slot if the thread was not created. */
    if (status != 0)
        thread_slot_give_back(index);
    return status;
}

EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
    struct unwind_start caller = CALLER();
    uint32_t index = announce((uint64_t)(uintptr_t)routine, argument, preload.stack_size, &caller);
    if (!index)
        return REAL(thrd_create)(thread, routine, argument);
    int status = REAL(thrd_create)(thread, run_c11, &preload.area->threads[index]);
    if (status != thrd_success)
        thread_slot_give_back(index);
    return status;
}

/* MARK: Joining */

/* The object is the thread's pthread_t, which is also in the thread's first record. */
#define JOIN_LIMITED(limit, ...)                                                                   \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL =                                                                        \
        call_begin(&caller, SHM_GROUP_THREADS, SHM_JOIN, (uint64_t)thread, 0, 0);                  \
    int status = __VA_ARGS__;                                                                      \
    CALL_LIMITED(&call, status == ETIMEDOUT, limit);                                               \
    return status

#define JOIN(...)       JOIN_LIMITED(0, __VA_ARGS__)
#define JOIN_UNTIL(...) JOIN_LIMITED(limit_until(CLOCK_REALTIME, until), __VA_ARGS__)
#define JOIN_CLOCK(...) JOIN_LIMITED(limit_until(clock, until), __VA_ARGS__)

/* MARK: Cancelling */

/* The object is the thread's pthread_t: this ended a wait of the thread that does not return. */
EXPORT int pthread_cancel(pthread_t thread)
{
    struct unwind_start caller = CALLER();
    if (is_recorded(SHM_GROUP_THREADS))
        object_released((const void *)(uintptr_t)thread, SHM_JOIN, SHM_ALL, &caller);
    return REAL(pthread_cancel)(thread);
}

/* MARK: Names */

EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
    int status = REAL(pthread_setname_np)(thread, name);
    if (status == 0 && preload.area && self_recorded())
        record_name(pthread_equal(thread, pthread_self()) ? 0 : thread, name);
    return status;
}

/* MARK: The wrappers in symbols.def */

#define THREADS WRAP
#include "preload/symbols.def"
