/*
 * The state of OpenMP's threads, as far as the library reports it.
 *
 * A thread has a stack of frames: an implicit task, in it perhaps a work-sharing region, in that
 * perhaps an explicit task, and so on. The library runs a task to its end, or until it waits, on
 * top of the task that it interrupts; so the regions of the frames end innermost first, as Go's
 * readers require. An end that is reported out of order ends the frames above it first, or is left
 * out.
 *
 *   team   one for each parallel region, from begin to end; then kept for reuse
 *   task   lives until it and the tasks that it created have ended
 */
#pragma once

#include "ompt/omp_tools.h"
#include "shm/openmp.h"

#define MAX_FRAMES 128
#define MAX_HOLDS  16

struct team {
    struct team *next; /* in the thread's list of free ones */
    uint64_t number;   /* the recorded task that stands for the region; 0: none */
    const void *place; /* where the region begins */
    unsigned size;
    /* Shared by the team's threads. */
    unsigned arrived;         /* arrivals at all barriers so far */
    unsigned tasks;           /* explicit tasks that have not ended */
    unsigned waits_for_tasks; /* all threads have arrived: the barrier ends with the last task */
    unsigned ends;            /* the barrier is the one at the region's end */
    uint64_t since;           /* when the first thread began to wait; 0: none waits */
    uint32_t last;            /* the thread that arrived last, or ended the last task */
};

enum task_wait { WAITS_NOT, WAITS_FOR_CHILDREN, WAITS_FOR_ALL };

struct task {
    struct task *parent;
    struct team *team; /* NULL: outside of all parallel regions */
    uint64_t number;   /* the recorded task that stands for it, or for its team */
    const void *place; /* where an explicit task was created */
    bool explicit;
    bool is_worker; /* implicit, on a thread that did not encounter the parallel region itself */
    /* Shared by threads. */
    unsigned uses;     /* references: by itself, and by the tasks that it created */
    unsigned children; /* child tasks that have not ended */
    unsigned waits;    /* enum task_wait */
    uint64_t since;    /* when its wait began */
};

struct frame {
    struct task *task;
    const char *region; /* NULL: no region is open */
    bool is_work;       /* a part of the task, not the task itself */
    struct openmp_wait wait;
    bool waits; /* also while other tasks run above it */
};

struct thread {
    struct frame frames[MAX_FRAMES];
    unsigned depth;
    struct team *teams; /* free ones */
    struct openmp_wait lock;
    struct openmp_hold holds[MAX_HOLDS];
    unsigned held;
};

/* The recorder of this process; set before the first callback. */
extern const struct openmp_recorder *recorder __attribute__((visibility("hidden")));

/* Returns the calling thread's state; NULL: no memory. */
struct thread *thread_here(void);
void thread_gone(void);

/* Returns the innermost frame; NULL: there is none. */
static inline struct frame *frame_top(struct thread *thread)
{
    return thread->depth ? &thread->frames[thread->depth - 1] : NULL;
}

/* Return the frame of a task itself, and of its innermost part; NULL: the thread has none. */
struct frame *frame_of(struct thread *thread, const struct task *task);
struct frame *frame_within(struct thread *thread, const struct task *task);
/* Pushes a frame, and begins a region for it if it has a name. NULL: the stack is full. */
struct frame *frame_push(struct thread *thread, struct task *task, const char *region,
                         const void *place, bool alone);
/* Ends all frames above a frame; NULL: all frames. */
void frame_pop_above(struct thread *thread, const struct frame *frame);
void frame_end_region(struct frame *frame);

/*
 * Begin, end, pause and resume a wait of the frame's task, which pauses while tasks run above it.
 */
void frame_wait_begin(struct frame *frame, enum shm_wait wait, const void *object,
                      const void *place, bool alone);
void frame_wait_end(struct frame *frame);
void frame_wait_pause(struct frame *frame);
void frame_wait_resume(struct frame *frame);

struct team *team_new(struct thread *thread, const void *place);
void team_free(struct thread *thread, struct team *team);

struct task *task_new(struct task *parent, struct team *team);
/* Called when the task has ended: wakes the threads that wait for it. */
void task_ended(struct task *task);

/*
 * The object for which workers wait between parallel regions. Its value is the time at which the
 * first began to wait; 0: none waits.
 */
extern uint64_t idle_since __attribute__((visibility("hidden")));
