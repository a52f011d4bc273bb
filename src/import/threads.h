/*
 * The threads and CPUs of an import; each change of their states writes its event. CPUs are the Ps
 * of write/thread_writer.h.
 *
 * In the first generation, a thread or CPU seen for the first time has existed from the start: its
 * status is written at the generation's first time, on the thread's own M, which has no events yet.
 * Later it has to be created (readers reject a new status in a later generation).
 *
 * Every function keeps the trace consistent: a caller may request any change at any time.
 */
#pragma once

#include "base/objects.h"
#include "import/event.h"
#include "import/stats.h"
#include "write/thread_writer.h"

enum import_state { IMPORT_ABSENT, IMPORT_READY, IMPORT_RUNNING, IMPORT_WAITING };

/* A life of a thread; freed when it ends. */
struct import_thread {
    struct written_thread
        written; /* `g` and `m`: the TID, or another number if the TID is reused */
    int32_t tid;
    uint8_t state; /* enum import_state */
    bool born;     /* its start is in the recording */
    bool exiting;  /* it ends when it leaves its CPU */
    int32_t waker; /* the thread that woke it before it had left its CPU; 0: none */
};

struct import_cpu {
    bool has_first;
    int32_t first;       /* the thread of its first event that has one; has_first */
    uint32_t interrupts; /* nesting depth of interrupts */
};

/* Owned by the model, changed only here. */
struct import_threads {
    struct thread_writer out;
    struct import_stats *stats;
    struct objects threads;  /* TID -> struct import_thread, alive */
    struct objects names;    /* TID -> char[IMPORT_NAME_MAX], the newest */
    struct idmap frames;     /* hash of a frame -> struct frame_id: see frames.c */
    struct import_cpu *cpus; /* one for each of the writer's Ps */
    size_t cpu_room;
    size_t announced; /* number of CPUs that the trace has */
    uint8_t *used;    /* a bit for each TID that has been in the trace */
    uint64_t extra;   /* number of TIDs that were reused */
    bool complete;    /* the whole machine was recorded, including what the idle task did */
    bool failed;      /* out of memory */
};

bool import_threads_init(struct import_threads *all, struct v2_writer *writer,
                         struct import_stats *stats);
void import_threads_dispose(struct import_threads *all);

/* MARK: What the readers know beforehand */

/* Sets the thread's name from here on. In the trace a thread has the name that was the newest when
 * it was first written. */
void import_thread_name(struct import_threads *all, int32_t tid, trail_string name);

/* MARK: Time */

/* Advances to `ns`, and by at least 1 ns; begins a generation if the current one is large. */
void import_threads_at(struct import_threads *all, int64_t ns);

/* MARK: Finding */

/* Returns the thread, which may be absent from the trace; NULL for TID 0 and if out of memory. */
struct import_thread *import_thread_of(struct import_threads *all, int32_t tid);

/* Returns NULL for a number that no CPU has, or if out of memory. */
struct import_cpu *import_cpu_of(struct import_threads *all, int32_t cpu);

/* Returns the thread that runs on the CPU; NULL: none. */
static inline struct import_thread *import_running(const struct import_threads *all, int32_t cpu)
{
    return (struct import_thread *)(void *)all->out.ps[cpu].running; /* its first member */
}

/* MARK: Changes */

/*
 * An event on the CPU shows that the thread runs there. If it is the first event of both, the
 * thread has run there from the start.
 */
void import_thread_is_on(struct import_threads *all, struct import_thread *thread, int32_t cpu);

/* An event on the CPU shows that it is idle. */
void import_cpu_is_idle(struct import_threads *all, int32_t cpu);

/* Makes the thread run. */
void import_thread_run(struct import_threads *all, struct import_thread *thread, int32_t cpu);

/* Makes the thread leave its CPU; frees it if it ends. Does nothing if it does not run. */
void import_thread_leave(struct import_threads *all, struct import_thread *thread,
                         enum import_left left, const struct import_stack *stack);

/* Makes the thread wait for what the words describe (wire/waits.def), with the reason "sync". Does
 * nothing if it does not run. */
void import_thread_wait(struct import_threads *all, struct import_thread *thread,
                        const char *words);

/* Makes a waiting thread ready; `waker` is NULL if there is none or it is not known. */
void import_thread_wake(struct import_threads *all, struct import_thread *waker,
                        struct import_thread *thread, const struct import_stack *stack);

/* Begins a thread; does not touch an earlier one with its TID. `parent` may be NULL. */
void import_thread_begin(struct import_threads *all, struct import_thread *parent, int32_t tid,
                         const struct import_stack *stack);

/* Writes an event of a running thread; nothing if it does not run. */
void import_thread_event(struct import_threads *all, struct import_thread *thread, unsigned type,
                         unsigned count, const uint64_t *args);

/* MARK: Texts and stacks: the trace's ID of each */

uint64_t import_text(struct import_threads *all, const char *text);
uint64_t import_stack_id(struct import_threads *all, const struct import_stack *stack);
uint64_t import_name_stack(struct import_threads *all, const struct import_thread *thread);

/* Forgets the frames of a generation. */
void import_frames_forget(struct import_threads *all);
