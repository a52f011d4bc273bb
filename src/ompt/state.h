/*
 * What OpenMP's threads are in, as far as we were told.
 *
 * A thread has a pile of frames: an implicit task, perhaps in it a work-sharing region, perhaps in that an explicit
 * task, and so on. Its library runs a task to its end, or until it waits, above the one that it interrupts; so
 * the regions that stand for the frames end innermost first, as Go's readers want it. Whatever is told out of
 * order, or not told, ends what lies above first, or is left out.
 *
 *   team   one for each parallel region, from its begin to its end; kept for the next one
 *   task   until it has ended, and the tasks that it created have
 */
#ifndef TRAIL_OMPT_STATE_H
#define TRAIL_OMPT_STATE_H

#include "ompt/omp_tools.h"
#include "shm/openmp.h"

#define MAX_FRAMES 128
#define MAX_HOLDS  16

struct team {
    struct team *next; /* of the thread's free ones */
    uint64_t number;   /* the task that stands for it; 0: it is not recorded */
    const void *place; /* where it begins */
    unsigned size;
    /* Shared by its threads. */
    unsigned arrived;         /* at barriers, in all */
    unsigned tasks;           /* that were created, and have not ended */
    unsigned waits_for_tasks; /* all have arrived: the barrier ends with the last task */
    unsigned ends;            /* it is the barrier at its end */
    uint64_t since;           /* the first of them waits; 0: none does */
    uint32_t last;            /* who arrived last, or ended the last task */
};

enum task_wait { WAITS_NOT, WAITS_FOR_CHILDREN, WAITS_FOR_ALL };

struct task {
    struct task *parent;
    struct team *team; /* NULL: outside of all */
    uint64_t number;   /* of the task that stands for it, or for its team */
    const void *place; /* where an explicit one was created */
    bool explicit;
    bool is_worker; /* implicit, and not of the thread that met the parallel region */
    /* Shared. */
    unsigned uses;     /* itself, and the tasks that it created */
    unsigned children; /* that have not ended */
    unsigned waits;    /* enum task_wait */
    uint64_t since;    /* it waits */
};

struct frame {
    struct task *task;
    const char *region; /* NULL: none is open */
    bool is_work;       /* not the task itself: a part of it */
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

/* The calling thread's; NULL without memory. */
struct thread *thread_here(void);
void thread_gone(void);

/* The innermost frame; NULL: there is none. */
static inline struct frame *frame_top(struct thread *thread)
{
    return thread->depth ? &thread->frames[thread->depth - 1] : NULL;
}

/* The frame of a task itself, or of the innermost part of it; NULL: it is not in the pile. */
struct frame *frame_of(struct thread *thread, const struct task *task);
struct frame *frame_within(struct thread *thread, const struct task *task);
/* Begins a region for it, if it has a name. NULL: the pile is full. */
struct frame *frame_push(struct thread *thread, struct task *task, const char *region,
                         const void *place, bool alone);
/* Ends all that lies above a frame; NULL: of all frames. */
void frame_pop_above(struct thread *thread, const struct frame *frame);
void frame_end_region(struct frame *frame);

/* A wait of the frame's task. It is interrupted while other tasks run above it. */
void frame_wait_begin(struct frame *frame, enum shm_wait wait, const void *object,
                      const void *place, bool alone);
void frame_wait_end(struct frame *frame);
void frame_wait_pause(struct frame *frame);
void frame_wait_resume(struct frame *frame);

struct team *team_new(struct thread *thread, const void *place);
void team_free(struct thread *thread, struct team *team);

struct task *task_new(struct task *parent, struct team *team);
/* It has ended. Who waits for it is let in. */
void task_ended(struct task *task);

/* Workers between two parallel regions wait for this; since when the first of them does. */
extern uint64_t idle_since __attribute__((visibility("hidden")));

#endif
