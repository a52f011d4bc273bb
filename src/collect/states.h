/*
 * The states of goroutines and Ps; each change writes its event (write/thread_writer.h). A P is a
 * slot of concurrency: a thread that runs has the lowest one that was free when it began to run,
 * and gives it back when it blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/idmap.h"
#include "collect/threads.h"

/* MARK: Waits (wire/waits.def) */

struct trace;

struct wait_kind {
    uint32_t group; /* enum shm_group */
    const char *words, *reason;
};

extern const struct wait_kind wait_kinds[SHM_WAITS];

/* Whether the wait is a blocking system call; otherwise another thread may end it. */
bool wait_is_syscall(const struct collect *c, uint8_t wait);

/* Returns the trace's reason for a wait that is not a system call. */
const char *wait_reason(uint8_t wait);

/* Whether the wait is spent on a CPU, at least at first: it then may have no context switch. */
bool wait_is_spinning(uint8_t wait);

/* The waits at one place, for the summary. */
struct wait_site {
    uint64_t stack;
    uint8_t wait;
    uint64_t count;
    int64_t total_ns, longest_ns;
    /* Of the longest wait: where the lock's holder took it, and the waker if it belongs to the same
     * program. */
    uint64_t holder_pc, waker_stack;
};

/* MARK: Threads */

/* Of one program. Owned by states.c. Zero-initialised: empty. */
struct states {
    struct idmap sites; /* of waits */
    uint64_t alive;     /* number of live threads */
};

/* Returns the thread's ID as an M: its TID, or another number if a live thread already has that. */
uint64_t state_m(struct collect *c, struct thread *thread);

/* Returns a thread that runs on a P; NULL: none. */
struct thread *state_any_running(const struct trace *t);

/* MARK: Events */

void state_event(struct collect *c, struct thread *thread, int64_t ns, unsigned type,
                 unsigned count, const uint64_t *args);

#define EVENT(c, thread, ns, type, ...)                                                            \
    do {                                                                                           \
        const uint64_t args_[] = {__VA_ARGS__};                                                    \
        state_event(c, thread, ns, type, sizeof args_ / sizeof args_[0], args_);                   \
    } while (0)

/* Called when a generation begins: writes the status of everything alive. */
void state_write_statuses(struct trace *t);

/* MARK: States */

/* Ends a moment on a CPU within a wait: such moments are counted, but not shown. */
void state_end_moment(struct oncpu *o, int64_t ns);

/* Changes the state without an event. The time in the previous state goes to the summary. */
void state_enter(struct collect *c, struct thread *thread, enum g_state state, int64_t ns);

void state_take_proc(struct collect *c, struct thread *thread, int64_t ns);
void state_give_proc(struct collect *c, struct thread *thread, int64_t ns);

/* `waker`, with its stack, wakes a waiting thread. */
void state_unblock(struct collect *c, struct thread *waker, struct thread *thread, int64_t ns,
                   uint64_t stack);

/* Makes the thread run, whatever its state. */
void state_run(struct collect *c, struct thread *thread, int64_t ns);

/* Counts a new thread. */
void state_begin(struct collect *c, struct thread *thread);

/* Ends the thread's M and goroutine. */
void state_end(struct collect *c, struct thread *thread, int64_t ns);

/* Returns the entry for waits of a kind at a place; NULL if out of memory. */
struct wait_site *state_wait_site(struct collect *c, uint64_t stack, uint8_t wait);

/* Writes the three places with the longest waits; the unused entries are NULL. */
void state_worst_sites(const struct collect *c, const struct wait_site *worst[3]);

void states_dispose(struct collect *c);
