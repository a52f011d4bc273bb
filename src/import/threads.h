/*
 * The threads and CPUs of an import, each change of their states with its event. CPUs are the Ps of
 * write/thread_writer.h.
 *
 * In the first generation, a thread or CPU that is seen for the first time has been there from the
 * begin: its status is written at the generation's first time, on the thread's own M, which has no
 * events yet. Later it has to be created (readers reject a new status in a later generation).
 *
 * Every function keeps the trace consistent: a caller may ask for any change at any time.
 */
#ifndef TRAIL_IMPORT_THREADS_H
#define TRAIL_IMPORT_THREADS_H

#include "base/idmap.h"
#include "import/event.h"
#include "import/stats.h"
#include "write/thread_writer.h"

enum import_state { IMPORT_ABSENT, IMPORT_READY, IMPORT_RUNNING, IMPORT_WAITING };

/* A life of a thread; freed when it ends. */
struct import_thread {
    struct written_thread
        written; /* `g` and `m`: the TID, or a number of its own if that is used again */
    int32_t tid;
    uint8_t state; /* enum import_state */
    bool born;     /* its begin is in the recording: it was not there before */
    bool exiting;  /* it ends when it leaves its CPU */
    int32_t waker; /* woke it before it had left its CPU; 0: none did */
};

struct import_cpu {
    bool has_first;
    int32_t first;       /* the thread that its first event with a thread is of; has_first */
    uint32_t interrupts; /* that it is in, nested */
};

/* Owned by the model, changed here only. */
struct import_threads {
    struct thread_writer out;
    struct import_stats *stats;
    struct idmap threads;    /* TID -> struct import_thread, alive */
    struct idmap names;      /* TID -> char[IMPORT_NAME_MAX], the newest */
    struct idmap frames;     /* hash of a frame -> struct frame_id: see frames.c */
    struct import_cpu *cpus; /* one for each of the writer's Ps */
    size_t cpu_room;
    size_t announced; /* CPUs, as the trace has them */
    uint8_t *used;    /* a bit for each TID that was in the trace */
    uint64_t extra;   /* numbers of TIDs that were used again */
    bool complete;    /* all of the machine was recorded: what the idle task did is there */
    bool failed;      /* memory is out */
};

bool import_threads_init(struct import_threads *all, struct v2_writer *writer,
                         struct import_stats *stats);
void import_threads_dispose(struct import_threads *all);

/* MARK: What the readers know beforehand */

/* The thread's name from here on. A thread has the name that was the newest when it was first
 * written. */
void import_thread_name(struct import_threads *all, int32_t tid, trail_string name);

/* MARK: Time */

/* Goes on to `ns`, and at least by 1 ns; begins a generation if the present one is large. */
void import_threads_at(struct import_threads *all, int64_t ns);

/* MARK: Finding */

/* Returns the thread, which may be absent from the trace; NULL for TID 0 and if out of memory. */
struct import_thread *import_thread_of(struct import_threads *all, int32_t tid);

/* Returns NULL for a number that no CPU has, and if out of memory. */
struct import_cpu *import_cpu_of(struct import_threads *all, int32_t cpu);

/* The thread that runs on the CPU; NULL: none does. */
static inline struct import_thread *import_running(const struct import_threads *all, int32_t cpu)
{
    return (struct import_thread *)(void *)all->out.ps[cpu].running; /* its first member */
}

/* MARK: Changes */

/*
 * An event on the CPU shows that the thread runs there. If it is the first of both, it has done so
 * from the begin.
 */
void import_thread_is_on(struct import_threads *all, struct import_thread *thread, int32_t cpu);

/* An event on the CPU shows that it is idle. */
void import_cpu_is_idle(struct import_threads *all, int32_t cpu);

/* The thread runs from now on. */
void import_thread_run(struct import_threads *all, struct import_thread *thread, int32_t cpu);

/* The thread leaves its CPU; it is freed if it ends. Nothing if it does not run. */
void import_thread_leave(struct import_threads *all, struct import_thread *thread,
                         enum import_left left, const struct import_stack *stack);

/* The thread waits for what the words say (wire/waits.def), with the reason "sync". Nothing if it
 * does not run. */
void import_thread_wait(struct import_threads *all, struct import_thread *thread,
                        const char *words);

/* A thread that waits is ready; `waker` is NULL if it is not known, or none. */
void import_thread_wake(struct import_threads *all, struct import_thread *waker,
                        struct import_thread *thread, const struct import_stack *stack);

/* A thread begins; a former one with its TID is left as it is. `parent` may be NULL. */
void import_thread_begin(struct import_threads *all, struct import_thread *parent, int32_t tid,
                         const struct import_stack *stack);

/* An event of a thread that runs; nothing if it does not. */
void import_thread_event(struct import_threads *all, struct import_thread *thread, unsigned type,
                         unsigned count, const uint64_t *args);

/* MARK: Texts and stacks: the trace's ID of each */

uint64_t import_text(struct import_threads *all, const char *text);
uint64_t import_stack_id(struct import_threads *all, const struct import_stack *stack);
uint64_t import_name_stack(struct import_threads *all, const struct import_thread *thread);

/* The frames of a generation are forgotten. */
void import_frames_forget(struct import_threads *all);

#endif
