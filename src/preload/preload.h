/*
 * What the wrappers in the recorded program share. symbols.def lists the wrappers and their files.
 *
 * Rules for every wrapper: errno, return values and cancellation points are those of the real
 * function; nothing is allocated; nothing blocks that would not block without the wrapper. If the
 * program is not recorded, or a call is made within another wrapped call (by a signal handler),
 * only the real function is called.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/rseq.h>
#include <time.h>

#include "host/unwind.h"
#include "preload/real.h"
#include "shm/shm.h"

#define EXPORT      __attribute__((visibility("default")))
#define ALWAYS      static inline __attribute__((always_inline))
#define NOINLINE    static __attribute__((noinline))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Removes the parentheses around a list: EXPAND (a, b) is a, b. */
#define EXPAND(...) __VA_ARGS__
/* Avoids __tls_get_addr, which could allocate: the library is loaded with the program. */
#define PER_THREAD __thread __attribute__((tls_model("initial-exec")))

/* MARK: The process */

/*
 * `preload` has its own pages, which the kernel clears in every child process, so that even a child
 * made without the C library's fork (syscall(SYS_clone), _Fork) cannot write into its parent's
 * area.
 */
#if defined(__x86_64__)
#define PRELOAD_PAGE 4096
#else
#define PRELOAD_PAGE 65536
#endif

struct preload {
    struct shm_area *area; /* NULL: the process is not recorded */
    /* The number of the current recording, from 1; 0: none. There may be several in turn. */
    uint32_t recording;
    bool has_counter;
    bool has_rseq;            /* switches of a thread with rseq can be seen: see call.h */
    uint64_t stack_size;      /* the default of threads */
    uint64_t half_step_ticks; /* of the coarse clock */
    uint64_t hold_ticks;
    uint64_t min_wait_ticks;
    bool all_holds;
    uint64_t sample_ns;
} __attribute__((aligned(PRELOAD_PAGE)));

extern struct preload preload __attribute__((visibility("hidden")));

/* Maps and claims the area that `word` names (see SHM_VARIABLE); false if there is none. */
bool preload_attach(const char *word);

/*
 * Ends the recording of a process that keeps running. No wrapper will be called any more, but
 * threads may still be inside one.
 */
void preload_detach(void);

/* Installs fork handlers: each child decides for itself whether it is recorded. */
void preload_survive_forks(void);

/*
 * Whether the program has installed a seccomp filter, which may end it for a system call that it
 * does not make itself. From then on the library makes none, and processes that this one forks and
 * programs that it executes are not recorded. Set just before the filter; the process's children
 * inherit it.
 */
extern bool preload_confined __attribute__((visibility("hidden")));

ALWAYS bool is_confined(void)
{
    return UNLIKELY(__atomic_load_n(&preload_confined, __ATOMIC_RELAXED));
}

/* MARK: The thread */

/* How many places of blocking calls a thread remembers. */
#define SELF_PLACES 8

/* Calls of a thread that have no records of their own; since when, and how long in all. */
struct tally {
    uint64_t count, since, ticks;
};

struct self {
    struct shm_thread *slot;
    struct shm_chunk *chunk;           /* the last of its chain */
    uintptr_t stack_low, stack_end;    /* the thread's own stack, approximately; 0: not known */
    struct shm_object *counted;        /* the open call is one of its waiters */
    uint32_t index;                    /* of the slot */
    uint32_t round;                    /* of destructors when the thread ends */
    uint32_t recording;                /* the slot's recording: see self_has_slot */
    uint32_t readings;                 /* how many of the slot's readings are in use */
    uintptr_t blocked_at[SELF_PLACES]; /* by return address; see call.h */
    bool has_rseq;                     /* the kernel clears its rseq pointer on a switch */
    bool over;                         /* the thread has ended, or is not recorded */
    uint32_t vforks;                   /* vforks in progress: the running code may be a child in the
                                        * thread's memory */
    uint32_t fork;                     /* the number of its last fork, which the child has, too */
    bool on_board;                     /* its word on the board is set */
    uint16_t word;                     /* ... the word; 0: none yet */
    uint64_t signals;                  /* that may have ended its last wait for a signal: see
                                        * shm.h */
    int64_t heap_recorded;             /* the slot's heap in the last record, */
    uint64_t heap_recorded_at;         /* ... and its time: the coarse clock */
    struct tally short_waits, yields;
    uint64_t yielded; /* when its last yield returned */
    bool has_timer;
    timer_t timer; /* of its samples */
};

extern PER_THREAD struct self self __attribute__((visibility("hidden")));

/* Claims a slot for a thread that was not announced; false: none is free, or recording is off. */
bool self_attach(void);

/* Whether the calling thread has a slot of the current recording, not an earlier one. */
ALWAYS bool self_has_slot(void)
{
    return self.slot != NULL && self.recording == preload.recording;
}

ALWAYS bool self_recorded(void)
{
    return LIKELY(self_has_slot()) || self_attach();
}

/* Whether calls of the group are being recorded. Pairs with the collector's store. */
ALWAYS bool is_wanted(uint32_t group)
{
    return LIKELY(preload.area != NULL) &&
           (__atomic_load_n(&preload.area->header.groups, __ATOMIC_RELAXED) & group);
}

/* Whether calls of the group are being recorded, and the calling thread is. */
ALWAYS bool is_recorded(uint32_t group)
{
    return is_wanted(group) && self_recorded();
}

/* Takes a slot for a new thread; 0: none is free. */
uint32_t thread_slot_take(void);
void thread_slot_give_back(uint32_t index);

/* Begins the records of threads that existed before the recording. */
void threads_begin_announced(void);

/*
 * Returns the calling thread's ID. Makes no system call, which a seccomp filter could forbid: the C
 * library stores the ID as the owner of a mutex that the thread locks.
 */
uint32_t own_tid(void);

/* Begin the records of the calling thread in the slot that was taken for it; end them. */
void self_begin(uint32_t index, uintptr_t stack_low, uintptr_t stack_end, uint64_t routine);
void self_end(void);

/* MARK: CPU samples */

/* Called when the area is claimed; when a thread begins to be recorded; when it ends. */
void samples_prepare(void);
void samples_begin(void);
void samples_end(void);

/* MARK: The clock */

ALWAYS uint64_t clock_now(void)
{
    struct timespec now;
#if defined(__x86_64__)
    if (LIKELY(preload.has_counter))
        return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    if (LIKELY(preload.has_counter)) {
        uint64_t value;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value)::"memory");
        return value;
    }
#endif
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/*
 * Returns the coarse clock, about a millisecond old at most; 0: it is not being updated. Pairs with
 * the collector's store.
 */
ALWAYS uint64_t clock_coarse(void)
{
    return __atomic_load_n(&preload.area->header.coarse, __ATOMIC_RELAXED);
}

/* Returns the coarse clock if there is one, else the clock. */
ALWAYS uint64_t clock_cheap(void)
{
    uint64_t coarse = clock_coarse();
    return LIKELY(coarse) ? coarse : clock_now();
}

/* MARK: Where a wrapper was called from */

/* Must be used in the wrapper itself, which gets a frame pointer because of it. */
#define CALLER() unwind_caller_of(__builtin_frame_address(0))

/* Returns the number of the caller's call stack; 0: no room, or stacks are not recorded. */
uint32_t stack_of(const struct unwind_start *caller);

/*
 * Returns the number of the caller's call stack from a return address outwards, or of the whole
 * stack if it lacks the address.
 */
uint32_t stack_from(const struct unwind_start *caller, uintptr_t pc);

/* Returns the number of a stack that consists of one return address. */
uint32_t stack_of_place(uintptr_t pc);

/* Returns the number of a text, truncated to SHM_TEXT_MAX bytes; 0: it is empty, or no room. */
uint32_t text_of(const char *text);

/* MARK: Records */

/*
 * Between these two calls the collector does not advance past the thread's last record. False in a
 * signal handler that interrupted the writing of a record.
 */
ALWAYS bool record_begin(void)
{
    if (UNLIKELY(self.slot->writing))
        return false;
    __atomic_store_n(&self.slot->writing, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

ALWAYS void record_end(void)
{
    __atomic_store_n(&self.slot->writing, 0, __ATOMIC_RELEASE);
}

/* Appends a record to the thread's chain; counts it as lost if there is no room. */
void record_put(const struct shm_record *record);

/* Writes a record with the current time. */
void record_now(struct shm_record *record);

/* Records the name of a thread, 0: the calling one, truncated to 15 bytes. */
void record_name(pthread_t thread, const char *name);

/* Returns the next number of a task. */
uint64_t task_number(void);

/* Records the calling thread's heap if it differs from the last record's. */
void heap_tell(void);

/* Bytes allocated before an area was mapped. */
extern int64_t preload_heap_early __attribute__((visibility("hidden")));

/* Writes the changed list of modules into the area. */
void modules_changed(void);

/*
 * Called before a fork, and after it in both processes. modules_inherit writes the parent's list
 * into the child's area.
 */
void modules_before_fork(void);
void modules_after_fork(void);
void modules_inherit(struct shm_area *area);
