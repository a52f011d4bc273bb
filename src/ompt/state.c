/* Keeps frames, teams and tasks: see state.h. */
#include "ompt/state.h"

#include <stdlib.h>

const struct openmp_recorder *recorder;
uint64_t idle_since;

/* MARK: Threads */

struct thread *thread_here(void)
{
    void **own = recorder->own();
    if (!*own)
        *own = calloc(1, sizeof(struct thread));
    return *own;
}

void thread_gone(void)
{
    void **own = recorder->own();
    struct thread *thread = *own;
    if (!thread)
        return;
    *own = NULL;
    frame_pop_above(thread, NULL);
    while (thread->teams) {
        struct team *next = thread->teams->next;
        free(thread->teams);
        thread->teams = next;
    }
    free(thread);
}

/* MARK: Frames */

struct frame *frame_of(struct thread *thread, const struct task *task)
{
    for (unsigned i = thread->depth; i-- > 0;) {
        if (thread->frames[i].task == task && !thread->frames[i].is_work)
            return &thread->frames[i];
    }
    return NULL;
}

struct frame *frame_within(struct thread *thread, const struct task *task)
{
    for (unsigned i = thread->depth; i-- > 0;) {
        if (thread->frames[i].task == task)
            return &thread->frames[i];
    }
    return NULL;
}

struct frame *frame_push(struct thread *thread, struct task *task, const char *region,
                         const void *place, bool alone)
{
    struct frame *frame;
    if (thread->depth == MAX_FRAMES)
        return NULL;
    frame = &thread->frames[thread->depth++];
    *frame = (struct frame){.task = task, .region = region};
    if (region)
        recorder->region_begin(task ? task->number : 0, region, place, alone);
    return frame;
}

void frame_end_region(struct frame *frame)
{
    if (frame->region)
        recorder->region_end(frame->task ? frame->task->number : 0, frame->region);
    frame->region = NULL;
}

void frame_pop_above(struct thread *thread, const struct frame *frame)
{
    struct frame *top;
    while ((top = frame_top(thread)) != NULL && top != frame) {
        frame_wait_pause(top);
        frame_end_region(top);
        thread->depth--;
    }
}

/* MARK: Waits of frames */

void frame_wait_begin(struct frame *frame, enum shm_wait wait, const void *object,
                      const void *place, bool alone)
{
    frame->wait = (struct openmp_wait){
        .object = object, .place = place, .wait = wait, .alone = alone && place};
    frame->waits = true;
    recorder->wait_begin(&frame->wait);
}

static void end_wait(struct frame *frame, uint32_t by)
{
    const void *next = NULL;
    if (!frame->waits || !frame->wait.begin)
        return;
    if (frame->wait.wait == SHM_OMP_JOIN || frame->wait.wait == SHM_OMP_WORK)
        next = &idle_since;
    recorder->wait_end(&frame->wait, next, by);
}

void frame_wait_pause(struct frame *frame)
{
    end_wait(frame, 0);
}

void frame_wait_resume(struct frame *frame)
{
    if (frame->waits && !frame->wait.begin)
        recorder->wait_begin(&frame->wait);
}

void frame_wait_end(struct frame *frame)
{
    uint32_t by = 0;
    /* Otherwise the worker has left the parallel region, and its team may be gone. */
    if (frame->waits && frame->wait.wait == SHM_OMP_BARRIER)
        by = __atomic_load_n(&frame->task->team->last, __ATOMIC_RELAXED);
    end_wait(frame, by);
    frame->waits = false;
}

/* MARK: Teams */

struct team *team_new(struct thread *thread, const void *place)
{
    struct team *team = thread->teams;
    if (team)
        thread->teams = team->next;
    else if (!(team = malloc(sizeof *team)))
        return NULL;
    *team = (struct team){.place = place};
    return team;
}

void team_free(struct thread *thread, struct team *team)
{
    team->next = thread->teams;
    thread->teams = team;
}

/* MARK: Tasks */

struct task *task_new(struct task *parent, struct team *team)
{
    struct task *task = malloc(sizeof *task);
    if (!task)
        return NULL;
    *task = (struct task){.parent = parent, .team = team, .uses = 1};
    if (parent) {
        __atomic_fetch_add(&parent->uses, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&parent->children, 1, __ATOMIC_RELAXED);
    }
    return task;
}

/* Acquire and release: the thread that frees the task sees all changes by others. */
static void leave(struct task *task)
{
    while (task && __atomic_sub_fetch(&task->uses, 1, __ATOMIC_ACQ_REL) == 0) {
        struct task *parent = task->parent;
        free(task);
        task = parent;
    }
}

static void let_in(const struct task *task, const void *place)
{
    uint64_t since = __atomic_load_n(&task->since, __ATOMIC_RELAXED);
    recorder->let_in(SHM_OMP_TASKS, task, since, place, true);
}

/*
 * A wait for children ends with the last child. A wait for a group may end with any task; the last
 * one before its end counts.
 */
static void child_ended(struct task *parent, const void *place)
{
    unsigned left = __atomic_sub_fetch(&parent->children, 1, __ATOMIC_ACQ_REL);
    if (left == 0 && __atomic_load_n(&parent->waits, __ATOMIC_ACQUIRE) == WAITS_FOR_CHILDREN)
        let_in(parent, place);
    for (struct task *task = parent; task; task = task->parent) {
        if (__atomic_load_n(&task->waits, __ATOMIC_ACQUIRE) == WAITS_FOR_ALL)
            let_in(task, place);
    }
}

void task_ended(struct task *task)
{
    if (task->explicit)
        recorder->task_end(task->number);
    if (task->parent)
        child_ended(task->parent, task->place);
    leave(task);
}
